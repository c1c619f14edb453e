"""RLL by the number of negatives in a group, on stand-ins."""

from crowdbench.table import Row, Table
from crowdbench.tables._embed import over_folds
from crowdbench.tables._rll import ABOUT, CLASS, COLUMNS, SOURCE, paper, rll
from crowdwise.embed import RandomGroups

PAPER = {
    2: ((0.809, 0.852), (0.699, 0.813)),
    3: ((0.888, 0.915), (0.879, 0.920)),
    4: ((0.831, 0.875), (0.757, 0.855)),
    5: ((0.803, 0.851), (0.750, 0.846)),
}
TABLE = Table(
    name="rll-table2",
    title="RLL's Table II, on stand-ins: RLL-Bayesian with k negatives",
    source=SOURCE,
    about=ABOUT,
    rows={f"k = {k}": Row(rll(groups=RandomGroups(negatives=k)), paper(*PAPER[k])) for k in PAPER},
    columns=COLUMNS,
    measure=over_folds,
    metrics=("accuracy", "F1"),
    pairs=(("k = 3", "k = 2"), ("k = 3", "k = 4"), ("k = 3", "k = 5")),
    quick_columns=(CLASS,),
)
