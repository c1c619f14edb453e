"""LIA's settings in the tables are those that its settings table found best."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from crowdbench.results import settings
from crowdbench.tables import _lia, lia_medical, lia_settings, lia_table2

RESULTS = Path(__file__).parents[2] / "benchmarks/results/lia-settings.json"
KINDS = {
    "LIA": ("as they are", False),
    "LIA-E": ("none", False),
    "LIA (linear networks)": ("linear", False),
    "LIA (words in common)": ("words in common", False),
    "LIA-E, weight decay": ("none", True),
    "LIA (linear networks), weight decay": ("linear", True),
    "LIA (words in common), weight decay": ("words in common", True),
}


@pytest.fixture(scope="module")
def held_out():
    """Mean log probability of held-out labels, by set, features, decay or not, and row."""
    found = defaultdict(lambda: defaultdict(list))
    for run in json.loads(RESULTS.read_text())["runs"]:
        kind = run["row"].split(";")[0], "decay" in run["row"]
        found[run["column"], kind][run["row"]].append(run["figures"]["held-out"])
    return {
        place: {row: np.mean(values) for row, values in rows.items()}
        for place, rows in found.items()
    }


PLACES = [
    (table, row, column)
    for table in (lia_table2.TABLE, lia_medical.TABLE)
    for row, column in table.cells()
    if row in KINDS
]


@pytest.mark.parametrize(
    ("table", "row", "column"), PLACES, ids=[f"{row} on {column}" for _, row, column in PLACES]
)
def test_the_best_by_held_out_labels_is_used(held_out, table, row, column):
    name = column.split()[0]
    rows = held_out[name, KINDS[row]]
    best = lia_settings.TABLE.rows[max(rows, key=rows.get)].make(name)
    assert settings(table.rows[row].make(column)) == settings(best)


def test_weight_decay_is_shown_where_held_out_labels_prefer_it(held_out):
    best = {place: max(rows.values()) for place, rows in held_out.items()}
    better = {
        (features, name)
        for name, (features, decay) in best
        if decay and best[name, (features, True)] > best[name, (features, False)]
    }
    assert set(_lia.DECAYED) == better
