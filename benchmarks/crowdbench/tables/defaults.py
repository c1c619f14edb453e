"""Every learner and embedder with its defaults, and what people write themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from crowdbench.baselines import VotesThenLR
from crowdbench.sets import LearningSet
from crowdbench.table import Row, Table
from crowdbench.tables._defaults import REAL, SIMULATED, columns
from crowdwise import embed, learn
from crowdwise.aggregate import IBCC
from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.evaluate.scores import balanced_accuracy
from crowdwise.typing import Array, Floats

BASELINES = {
    "majority vote + LR": "majority",
    "vote shares + LR": "shares",
    "IBCC + LR": "ibcc",
}
NETWORK = "IBCC + network"
START = "AutoClassifier"
LEAST = 1e-12  # a probability that still has a logarithm
# What had been seen before defaults were what they are; a fit chooses by held-out labels alone.
SEEN = {
    START: "how it searches, that plain regressions count beside it and that it is never surer "
    "than the mean of its members was settled with test figures of these sets in view.",
    "learners": "how they choose penalties, starts, rounds and encoders by held-out labels was "
    "settled with test accuracies of these sets in view.",
}


class EmbeddedLR(BaseEstimator):
    """An embedder, then the regression of the baselines on IBCC's posterior."""

    def __init__(self, embedder: Any) -> None:
        self.embedder = embedder

    def fit(self, X: Array, votes: Annotations) -> Self:
        self.embedder_ = clone(self.embedder).fit(X, votes)
        self.regression_ = VotesThenLR("ibcc").fit(self.embedder_.transform(X), votes)
        return self

    def predict_proba(self, X: Array) -> Floats:
        return self.regression_.predict_proba(self.embedder_.transform(X))


def measure(model: Any, data: LearningSet, seed: int) -> dict[str, float]:
    """Scores on the test part; seconds are those of fitting alone."""
    assert data.y_test is not None
    begin = time.perf_counter()
    model.fit(data.X, data.annotations)
    seconds = time.perf_counter() - begin
    proba = np.asarray(model.predict_proba(data.X_test))
    truth = locate(data.annotations.classes, data.y_test)
    given = proba[np.arange(len(truth)), truth]
    return {
        "accuracy": float(np.mean(proba.argmax(axis=1) == truth)),
        "balanced accuracy": balanced_accuracy(proba, truth),
        "log loss": float(-np.log(np.maximum(given, LEAST)).mean()),
        "fit seconds": seconds,
    }


def baseline(targets: str) -> Callable[[str], Any]:
    return lambda column: VotesThenLR(targets)


def network(column: str) -> Any:
    """The baseline on IBCC's posterior, with a layer of 128 rectified units."""
    return learn.TwoStage(IBCC(), learn.NetClassifier(truth=learn.MLP((128,))))


def learner(name: str) -> Callable[[str], Any]:
    return lambda column: getattr(learn, name)()


def embedder(name: str) -> Callable[[str], Any]:
    return lambda column: EmbeddedLR(getattr(embed, name)())


def row(make: Callable[[str], Any], name: str) -> Row:
    """A row on all columns, or on those that it can get through in minutes."""
    said = SEEN[START] if name == START else SEEN["learners"] if name in SEARCHING else ""
    more = CURVED if name == "RLL" else []
    chosen = [*REAL, *SMALL, *more] if name in SLOW else None
    return Row(
        make, columns=chosen, not_blind=dict.fromkeys([*ON_REAL, *more], said) if said else ""
    )


COLUMNS = columns()
ON_REAL = [name for name in COLUMNS if name.partition(",")[0] in REAL]
# Those whose rules of choice were changed with test accuracies in view.
SEARCHING = {"Raykar", "LIA", "ICED", "SpeeLFC", "SpeeLFCD", "TraceReg", "CrowdLayer", "MBEM"}
SEARCHING |= {"RLL", "NeuCrowd"}
SMALL = [name for name in COLUMNS if name.partition(",")[0] in {"hotel", "mgc", "bluebirds"}]
# Where a network may find what a regression cannot.
CURVED = [name for name in COLUMNS if name.partition(" ")[0] in SIMULATED and "5 labels" in name]
# These take ten times as long as others: they have the columns with all labels, and a few more.
SLOW = {"AnnotMix", "Committee", "MaDL", "SpeeLFCD", "CrowdLayer", "CrowdAR", *embed.EMBEDDERS}
ROWS = {
    **{title: Row(baseline(targets)) for title, targets in BASELINES.items()},
    NETWORK: Row(network, columns=[*REAL, *CURVED]),
    START: row(learner(START), START),
    "AutoClassifier, one round": row(lambda column: learn.AutoClassifier(n_rounds=1), START),
    **{name: row(learner(name), name) for name in learn.LEARNERS if name != START},
    **{f"{name} + LR": row(embedder(name), name) for name in embed.EMBEDDERS},
}
TABLE = Table(
    name="defaults",
    title="Every learner and embedder with its defaults",
    source="Our own: real crowds whose tasks have features, and simulated ones.",
    about=(
        "Nothing is set, for any row or column. Baselines are a logistic regression of "
        "scikit-learn's on standardized features, its penalty by five-fold cross-validation, on "
        "each task's majority label, on its shares of labels, or on IBCC's posterior. Behind an "
        "embedder stands the last of them. Sets without a published split are cut anew with each "
        "seed, two fifths of the tasks with a truth for testing."
    ),
    rows=ROWS,
    columns=COLUMNS,
    measure=measure,
    metrics=("accuracy", "balanced accuracy"),
    losses=("log loss", "fit seconds"),
    seeds=5,
    quick_seeds=1,
    quick_rows=(*BASELINES, START, "SpeeLFC", "LIA", "Raykar"),
    quick_columns=("hotel", "mgc", "bluebirds", "hotel, 1 label", "usps 1:10, 2 labels"),
    overall=tuple(REAL),
)
