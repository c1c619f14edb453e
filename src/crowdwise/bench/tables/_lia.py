"""What the LIA tables share: their sets at every redundancy, and their methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crowdwise import learn
from crowdwise.aggregate._base import Aggregator
from crowdwise.bench.measures import known_truth, on_training_tasks
from crowdwise.bench.sets import LearningSet, crowd, learning_set
from crowdwise.bench.table import Column, Published
from crowdwise.data import Annotations
from crowdwise.learn import MLP, NetClassifier, Training

SOURCE = "Platanios et al. (2020), Learning from imperfect annotations, arXiv:2004.03473."
SETS = {"BB": "bluebirds", "WS": "wordsim", "RTE": "rte"}
REDUNDANCY = {"BB": (2, 5, 10, 20, 39), "WS": (2, 5, 10), "RTE": (2, 5, 10)}
MEDICAL_SETS = {"MC": "medical_causes", "MT": "medical_treats"}
MEDICAL = {"MC": (2, 5, 10), "MT": (2, 5, 10)}
BODY = MLP(hidden=(16, 16, 16, 16), activation="selu")


@lru_cache(maxsize=4)
def whole(name: str) -> LearningSet:
    """A set with all its labels."""
    if name in MEDICAL:
        return medical(name, "adjudicated")
    data = learning_set(SETS[name], features="stored")
    data = replace(data, X=data.X / np.abs(data.X).max())  # as the authors do
    return with_soft_scores(data) if name == "WS" else data


def with_soft_scores(data: LearningSet) -> LearningSet:
    """Word similarity with its ratings: one of 7 in 10 is seven parts yes and three parts no."""
    raw = crowd("wordsim", variant="raw").annotations
    yes = np.asarray(raw.classes, dtype=np.float64)[raw.label] / 10.0
    votes = Annotations.from_codes(
        raw.task,
        raw.worker,
        (yes >= 0.5).astype(np.int64),
        tasks=raw.tasks,
        workers=raw.workers,
        classes=data.annotations.classes,
        soft=np.column_stack([1.0 - yes, yes]),
    )
    return replace(data, annotations=votes)


def columns(
    sizes: Mapping[str, Sequence[int]], load: Callable[[str], LearningSet]
) -> dict[str, Any]:
    """A column for every set and redundancy; which labels are kept differs by seed."""

    def drawn(name: str, redundancy: int) -> Callable[[int], LearningSet]:
        def make(seed: int) -> LearningSet:
            data = load(name)
            return replace(data, annotations=data.annotations.subsample(redundancy, seed))

        return make

    return {
        f"{name} R={redundancy}": Column(drawn(name, redundancy), redrawn=True)
        for name, redundancies in sizes.items()
        for redundancy in redundancies
    }


def paper(
    figures: Mapping[str, Sequence[Any]], sizes: Mapping[str, Sequence[int]]
) -> dict[str, Any]:
    """Percent and standard error by set, one pair a redundancy; an error of None is not given."""
    return {
        f"{name} R={redundancy}": {
            "accuracy": Published(value / 100, None if error is None else error / 100)
        }
        for name, pairs in figures.items()
        for redundancy, (value, error) in zip(sizes[name], pairs, strict=True)
    }


def on_its_tasks(model: Any, data: LearningSet, seed: int) -> dict[str, float]:
    """How well the truth of the labelled tasks is found, and by the classifier alone."""
    if isinstance(model, TrueLabels):
        return model.right(data)
    if isinstance(model, Aggregator):
        return on_training_tasks(model.fit(data.annotations).posterior_, data)
    X = features_for(model, data)
    model.fit(X, data.annotations)
    if isinstance(model, learn.TwoStage):
        return on_training_tasks(model.predict_proba(X), data)
    found = on_training_tasks(model.posterior_, data)
    if X is not None:
        found["classifier"] = on_training_tasks(model.predict_proba(X), data)["accuracy"]
    return found


def features_for(model: Any, data: LearningSet) -> Any:
    """The features that a method sees: none for LIA-E, the task's number for two stages."""
    if isinstance(model, LIAE):
        return None
    if isinstance(model, EmbeddedTwoStage):
        return np.eye(len(data.X), dtype=np.float32)
    return data.X


class LIAE(learn.LIA):
    """LIA without features: learned embeddings of tasks."""


class EmbeddedTwoStage(learn.TwoStage):
    """Two stages without features: the classifier learns an embedding of every task."""


def starred(aggregator: Any, kind: Any = learn.TwoStage) -> Any:
    """Two stages: an aggregator, then LIA's classifier on its labels."""
    training = Training(optimizer="amsgrad", learning_rate=1e-3, epochs=200)
    scale = kind is learn.TwoStage
    return kind(aggregator, NetClassifier(truth=BODY, scale=scale, training=training))


def lia(features: str, rounds: tuple[int, int], finish: tuple[str | None, int]) -> learn.LIA:
    """LIA with features standardised, as they are, or none; EM rounds and epochs; fine-tuning.

    With ``"linear"`` features are as they are and networks have no hidden layer.
    """
    kind = LIAE if features == "none" else learn.LIA
    bodies: dict[str, Any] = {}
    if features == "linear":
        bodies = {"truth": "linear", "difficulty": MLP(hidden=())}
    return kind(
        **bodies,
        scale=features == "standardised",
        em_rounds=rounds[0],
        em_epochs=rounds[1],
        marginal=finish[0],
        marginal_epochs=finish[1],
    )


# By held-out labels: see the table lia-settings.
FINISH: dict[str, tuple[str | None, int]] = {"BB": ("annotation", 100)}
LINEAR = ("BB", "RTE")


def chosen(column: str, *, features: bool) -> learn.LIA:
    """LIA with the settings chosen for a set."""
    name = column.split(maxsplit=1)[0]
    kind = "as they are" if features else "none"
    return lia(kind, (5, 40), FINISH.get(name, (None, 0)))


def linear(column: str) -> learn.LIA:
    """The same without hidden layers, on the sets where held-out labels prefer that."""
    name = column.split(maxsplit=1)[0]
    return lia("linear", (5, 40), FINISH.get(name, (None, 0)))


class TrueLabels(BaseEstimator):
    """No method: a logistic regression that is given truths, to see what features can tell."""

    def right(self, data: LearningSet) -> dict[str, float]:
        """Scores on tasks that it did not learn from, in five folds."""
        rows, truth = known_truth(data)
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
        proba = cross_val_predict(model, data.X[rows], truth, cv=5, method="predict_proba")
        said = np.zeros((data.annotations.n_tasks, proba.shape[1]))
        said[rows] = proba
        return on_training_tasks(said, data)


def finished(marginal: str | None, *, features: bool = True) -> learn.LIA:
    """LIA with or without fine-tuning, all else the same."""
    return lia("as they are" if features else "none", (5, 40), (marginal, 100))


@lru_cache(maxsize=4)
def medical(name: str, truth: str) -> LearningSet:
    """Causes or treats, scored by one of its truths."""
    data = learning_set(MEDICAL_SETS[name], features="stored", truth=truth, cut=False)
    return replace(data, X=data.X / np.abs(data.X).max())
