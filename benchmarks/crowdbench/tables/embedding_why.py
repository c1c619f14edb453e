"""When representations help, and why."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crowdbench.sets import LearningSet, learning_set
from crowdbench.table import Column, Row, Table
from crowdbench.tables._embed import STRENGTHS, Probe, brief
from crowdbench.tables._neucrowd import HOTEL, SYN1, as_learning_set
from crowdbench.tables._rll import CLASSROOM, ORAL, classroom, stand_in
from crowdbench.tables._why import Case, measure_case
from crowdwise import simulate
from crowdwise.embed import (
    MLE,
    RLL,
    Bayesian,
    Certain,
    CosineSoftmax,
    Encoder,
    EveryClass,
    HardGroups,
    NeuCrowd,
    OneClass,
    RandomGroups,
)
from crowdwise.learn import MLP, NetClassifier, Training

BENT, ONE_LABEL = "oral (stand-in), bent", "Syn1, 1 label per task"
CHOSEN = (HOTEL, SYN1, ONE_LABEL)  # have validation tasks
RELU = Encoder(activation="relu")
WIDE = Encoder((256, 128), activation="relu", dropout=0.5)
LINEAR = Encoder((32,), activation="none")
NETWORK = NetClassifier(
    truth=MLP((64, 32), activation="relu", dropout=0.2),
    training=Training(learning_rate=1e-3, batch_size=64, epochs=30, weight_decay=1e-3),
)


def case(
    embedder: Any = None, *, decay: float = 1e-3, targets: str = "hard", **settings: Any
) -> Callable[[str], Case]:
    """A method; the penalty of its regression is as in the tables that this one explains."""
    return lambda column: Case(
        Probe(
            embedder,
            targets=targets,
            choices=(decay,),
            strengths=STRENGTHS if column in CHOSEN else (1.0,),
        ),
        **settings,
    )


def rll(
    *columns: str, epochs: int = 8, decay: float = 1e-3, targets: str = "hard", **changes: Any
) -> Row:
    """RLL as in its tables, with changes."""
    embedder = RLL(groups_per_epoch=6000, training=brief(epochs), **changes)
    return Row(case(embedder, decay=decay, targets=targets), columns=columns or LEARNED)


def neucrowd(*columns: str, epochs: int = 2, **changes: Any) -> Row:
    """NeuCrowd as in its tables, with changes."""
    return Row(case(NeuCrowd(training=brief(epochs), **changes)), columns=columns)


def syn1(seed: int, redundancy: int | None = None) -> LearningSet:
    """NeuCrowd's first simulated set, with ``redundancy`` labels per training task."""
    data = as_learning_set(simulate.neucrowd("syn1", random_state=seed))
    if redundancy is None:
        return data
    return replace(data, annotations=data.annotations.subsample(redundancy, seed))


ERRING = (ORAL, BENT, SYN1, ONE_LABEL)  # where the truth is not the majority label itself
LEARNED = (ORAL, BENT, CLASSROOM, HOTEL, SYN1)
COLUMNS = {
    ORAL: Column(stand_in("oral"), redrawn=True, about="as in RLL's tables"),
    BENT: Column(
        lambda seed: simulate.stand_in("oral", bend=3.0, random_state=seed),
        redrawn=True,
        about="the same with two distant clusters in each class, which no linear classifier can "
        "separate",
    ),
    CLASSROOM: Column(
        classroom(),
        redrawn=True,
        about="real; five of six tasks are of class 1, the class of the anchors",
    ),
    HOTEL: Column(lambda _seed: learning_set("hotel"), about="as in NeuCrowd's tables"),
    SYN1: Column(syn1, redrawn=True, about="as in NeuCrowd's tables"),
    ONE_LABEL: Column(
        lambda seed: syn1(seed, 1),
        redrawn=True,
        about="the same with one label per training task, so that many training labels are wrong",
    ),
}
TABLE = Table(
    name="embedding-why",
    title="When representations help, and why",
    source="Explains the tables of RLL and NeuCrowd.",
    about=(
        "Settings are those of these tables unless the row says otherwise; rows from *1 epoch* on "
        "are variants of RLL+Bayesian. This table chose no setting in this repository: it "
        "uses training tasks and upper bounds to find out what limits the methods. *Training "
        "labels*: the share of the training tasks' majority labels that the classifier "
        "reproduces; *labels right*: the share of these labels that are true. *Cosine across*: "
        "mean cosine between training tasks of different classes. *Given chance*: the probability "
        "that confidence alone gives to the right candidate of a group when all vectors are "
        "equal; one in four where confidence does not matter. *Safe if right*, *safe if wrong*: "
        "the share of tasks that NeuCrowd would keep at the end, among those whose majority "
        "label is true and among the others."
    ),
    notes=(
        "True labels are an upper bound and not a method: in practice nobody has them.",
        "The network has layers of 64 and 32 rectified units and a softmax: 30 epochs of "
        "cross-entropy on the same majority labels.",
        "The questions, the bend, the network and the wide encoder were settled after seeing test "
        "figures of two draws: this table explains, and does not rank.",
    ),
    rows={
        "LR": Row(case()),
        "LR, all labels": Row(case(targets="soft"), columns=LEARNED),
        "LR, true labels": Row(case(gold=True), columns=ERRING),
        "network": Row(case(network=NETWORK)),
        "network, true labels": Row(case(network=NETWORK, gold=True), columns=ERRING),
        "RLL": rll(confidence=Certain()),
        "RLL+MLE": rll(CLASSROOM, confidence=MLE()),
        "RLL+Bayesian": rll(),
        "1 epoch": rll(ORAL, HOTEL, epochs=1),
        "4 epochs": rll(ORAL, HOTEL, epochs=4),
        "32 epochs": rll(HOTEL, epochs=32),
        "100 times the weight decay": rll(ORAL, HOTEL, decay=0.1),
        "linear encoder": rll(ORAL, BENT, HOTEL, SYN1, encoder=LINEAR),
        "ReLU encoder": rll(ORAL, BENT, HOTEL, SYN1, encoder=RELU),
        "wide ReLU encoder": rll(HOTEL, SYN1, encoder=WIDE),
        "all labels behind it": rll(HOTEL, targets="soft"),
        "even prior": rll(CLASSROOM, confidence=Bayesian((2.5, 2.5))),
        "every class anchors": rll(CLASSROOM, groups=RandomGroups(anchors=EveryClass())),
        "the rarer class anchors": rll(CLASSROOM, groups=RandomGroups(anchors=OneClass(0))),
        "confidence as a multiplier": rll(CLASSROOM, loss=CosineSoftmax(form="multiplier")),
        "NeuCrowd": neucrowd(HOTEL, ONE_LABEL),
        "NeuCrowd, 1 epoch": neucrowd(HOTEL, ONE_LABEL, epochs=1),
        "NeuCrowd, cosines": neucrowd(HOTEL, loss=CosineSoftmax()),
        "NeuCrowd-SA": neucrowd(ONE_LABEL, groups=HardGroups()),
    },
    columns=COLUMNS,
    measure=measure_case,
    metrics=(
        "accuracy",
        "AUC",
        "training labels",
        "labels right",
        "cosine across",
        "confidence in 1",
        "confidence in 0",
        "given chance",
        "safe if right",
        "safe if wrong",
    ),
    pairs=(
        ("RLL+Bayesian", "LR"),
        ("RLL+Bayesian", "network"),
        ("RLL+Bayesian", "RLL"),
        ("network", "LR"),
        ("even prior", "RLL+Bayesian"),
        ("every class anchors", "RLL+Bayesian"),
        ("wide ReLU encoder", "LR"),
        ("wide ReLU encoder", "network"),
        ("NeuCrowd", "NeuCrowd-SA"),
    ),
    quick_rows=("LR", "network", "RLL+Bayesian"),
    quick_columns=(BENT,),
    quick_seeds=1,
)
