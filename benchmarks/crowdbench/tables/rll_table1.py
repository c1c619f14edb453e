"""RLL's comparison, on stand-ins."""

from collections.abc import Callable
from typing import Any

from crowdbench.table import Row, Table
from crowdbench.tables._embed import brief, over_folds
from crowdbench.tables._rll import ABOUT, CLASS, COLUMNS, SOURCE, paper, probe, rll
from crowdwise.aggregate import GLAD, DawidSkene
from crowdwise.embed import MLE, Bayesian, Certain, Contrastive, CosineSoftmax, RelationNet, Triplet
from crowdwise.learn import Training

KINDS: dict[str, Callable[[Any], Any]] = {
    "SiameseNet": lambda aggregator: Contrastive(aggregator=aggregator, training=brief(10)),
    "TripletNet": lambda aggregator: Triplet(aggregator=aggregator, training=brief(10)),
    "RelationNet": lambda aggregator: RelationNet(
        aggregator=aggregator,
        groups_per_epoch=160,
        training=Training(learning_rate=1e-3, batch_size=16, epochs=10, weight_decay=1e-3),
    ),
}
PAPER = {
    "SiameseNet": ((0.802, 0.859), (0.719, 0.836)),
    "TripletNet": ((0.847, 0.889), (0.750, 0.857)),
    "RelationNet": ((0.843, 0.890), (0.730, 0.842)),
    "SiameseNet+EM": ((0.798, 0.856), (0.727, 0.842)),
    "SiameseNet+GLAD": ((0.815, 0.871), (0.727, 0.842)),
    "TripletNet+EM": ((0.843, 0.887), (0.727, 0.842)),
    "TripletNet+GLAD": ((0.843, 0.890), (0.667, 0.792)),
    "RelationNet+EM": ((0.860, 0.899), (0.727, 0.842)),
    "RelationNet+GLAD": ((0.854, 0.889), (0.730, 0.842)),
}
AGGREGATORS = {"": None, "+EM": DawidSkene(), "+GLAD": GLAD()}


def two_stage(name: str) -> Row:
    kind, plus, rule = name.partition("+")
    aggregator = AGGREGATORS[plus + rule]
    return Row(probe(KINDS[kind](aggregator), aggregator=aggregator), paper(*PAPER[name]))


TABLE = Table(
    name="rll-table1",
    title="RLL's Table I, on stand-ins",
    source=SOURCE,
    about=ABOUT,
    rows={
        "MV": Row(probe()),
        "SoftProb": Row(probe(targets="soft"), paper((0.815, 0.869), (0.758, 0.810))),
        "EM": Row(probe(aggregator=DawidSkene()), paper((0.843, 0.887), (0.606, 0.698))),
        "GLAD": Row(probe(aggregator=GLAD()), paper((0.831, 0.881), (0.697, 0.773))),
        **{name: two_stage(name) for name in PAPER},
        "RLL": Row(rll(confidence=Certain()), paper((0.871, 0.901), (0.818, 0.880))),
        "RLL+MLE": Row(rll(confidence=MLE()), paper((0.871, 0.903), (0.848, 0.902))),
        "RLL+Bayesian": Row(rll(), paper((0.888, 0.915), (0.879, 0.920))),
        "RLL+Bayesian, tuned eta": Row(
            rll(loss=CosineSoftmax(), etas=(1.0, 3.0, 10.0)), paper((0.888, 0.915), (0.879, 0.920))
        ),
        "RLL+Bayesian, as the code does it": Row(rll("code")),
        "RLL+Bayesian, posterior": Row(
            rll(confidence=Bayesian(evidence="posterior"), aggregator=DawidSkene())
        ),
    },
    columns=COLUMNS,
    measure=over_folds,
    metrics=("accuracy", "F1"),
    pairs=(
        ("RLL+Bayesian", "RLL+MLE"),
        ("RLL+Bayesian", "RLL"),
        ("RLL+Bayesian", "SoftProb"),
        ("RLL+Bayesian, posterior", "RLL+Bayesian"),
    ),
    quick_rows=("MV", "TripletNet", "RLL", "RLL+Bayesian"),
    quick_columns=(CLASS,),
)
