"""ICED's comparison again with workers of three difficulties."""

from crowdbench.plain import without_search
from crowdbench.table import Table
from crowdbench.tables._iced import GSAD, SOURCE, USPS, columns, on_balanced_test
from crowdbench.tables.iced_table2 import BEST, ROWS

# The first is slow; the others were tuned for, or belong to, other crowds.
LEFT_OUT = ("CPC", "MBEM (authors' code)", "ICED (settings by held-out labels)")
TABLE = Table(
    name="iced-difficulty",
    title="Classifiers from imbalanced crowds: easy, medium and hard workers",
    source=SOURCE,
    about=(
        "As Table 2, but workers' accuracies are uniform from 0.6 to 0.95 (easy), from 0.5 to "
        "0.9 (medium), or from 0.5 to 0.9 with 30 % of workers below chance (hard)."
    ),
    rows=without_search({name: row for name, row in ROWS.items() if name not in LEFT_OUT}),
    columns=columns(["easy", "medium", "hard"], (USPS, GSAD)),
    measure=on_balanced_test,
    metrics=("accuracy", "macro F1", "minority F1", "minority recall", "training"),
    pairs=[("ICED (network prior)", name) for name in BEST],
    quick_rows=("MV + LR", "ICED (network prior)"),
    quick_columns=("USPS-Syn, medium",),
)
