"""LIA's ablation: without fine-tuning on the marginal likelihood, without features."""

from crowdbench.plain import without_search
from crowdbench.table import Row, Table
from crowdbench.tables._lia import (
    REDUNDANCY,
    SOURCE,
    columns,
    fine_tune,
    on_its_tasks,
    paper,
    whole,
)
from crowdbench.tables.lia_table2 import PUBLISHED

WITHOUT = {
    "BB": [(71.9, 0.9), (74.9, 0.4), (76.9, 0.5), (77.5, 0.4), (79.1, 0.2)],
    "WS": [(88.7, 0.8), (91.0, 0.6), (93.3, 0.0)],
    "RTE": [(63.8, 0.1), (67.5, 0.1), (69.6, 0.1)],
}
TABLE = Table(
    name="lia-table3",
    title="LIA's Table 3: fine-tuning on the marginal likelihood, and features",
    source=SOURCE,
    about="Five EM rounds everywhere; rows differ only in the part they name.",
    rows=without_search(
        {
            "LIA (tuned on annotations)": Row(
                lambda column: fine_tune("annotation"), paper(PUBLISHED["LIA"], REDUNDANCY)
            ),
            "LIA (tuned on tasks)": Row(lambda column: fine_tune("task")),
            "LIA (not tuned)": Row(lambda column: fine_tune(None), paper(WITHOUT, REDUNDANCY)),
            "LIA-E (tuned on annotations)": Row(
                lambda column: fine_tune("annotation", features=False),
                paper(PUBLISHED["LIA-E"], REDUNDANCY),
            ),
            "LIA-E (not tuned)": Row(lambda column: fine_tune(None, features=False)),
        }
    ),
    columns=columns(REDUNDANCY, whole),
    measure=on_its_tasks,
    metrics=("accuracy", "classifier"),
    pairs=(
        ("LIA (tuned on annotations)", "LIA (not tuned)"),
        ("LIA (tuned on annotations)", "LIA (tuned on tasks)"),
        ("LIA (tuned on annotations)", "LIA-E (tuned on annotations)"),
    ),
    quick_columns=("BB R=5", "WS R=10", "RTE R=10"),
)
