"""RLL by the number of labels per task, on stand-ins."""

from crowdbench.table import Column, Published, Row, Table
from crowdbench.tables._embed import over_folds
from crowdbench.tables._rll import ABOUT, CLASSROOM, SOURCE, classroom, probe, rll, stand_in
from crowdwise.embed import Certain

PAPER = {
    "oral": {1: (0.826, 0.873), 3: (0.876, 0.922), 5: (0.888, 0.915)},
    "class": {1: (0.727, 0.842), 3: (0.758, 0.840), 5: (0.879, 0.920)},
}
FIGURES = {
    f"{name} (stand-in), d = {d}": {"accuracy": Published(pair[0]), "F1": Published(pair[1])}
    for name, by_size in PAPER.items()
    for d, pair in by_size.items()
}
TABLE = Table(
    name="rll-table3",
    title="RLL's Table III, on stand-ins: d labels per task",
    source=SOURCE,
    about=ABOUT,
    rows={
        "SoftProb": Row(probe(targets="soft")),
        "RLL": Row(rll(confidence=Certain())),
        "RLL+Bayesian": Row(rll(), FIGURES),
    },
    columns={
        f"{name} (stand-in), d = {d}": Column(stand_in(name, d), redrawn=True, stand_in=True)
        for name, by_size in PAPER.items()
        for d in by_size
    }
    | {f"{CLASSROOM}, d = {d}": Column(classroom(d), redrawn=True) for d in (1, 3)},
    measure=over_folds,
    metrics=("accuracy", "F1"),
    pairs=(("RLL+Bayesian", "RLL"), ("RLL+Bayesian", "SoftProb")),
    quick_columns=("class (stand-in), d = 1",),
)
