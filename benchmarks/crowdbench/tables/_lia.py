"""What the LIA tables share: their sets at every redundancy, and their methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crowdbench.measures import known_truth, on_training_tasks
from crowdbench.pairs import pair_features
from crowdbench.sets import LearningSet, crowd, learning_set
from crowdbench.table import Column, Published
from crowdwise import learn
from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import Aggregator
from crowdwise.learn import MLP, NetClassifier, Training
from crowdwise.typing import Floats

SOURCE = "Platanios et al. (2020), Learning from imperfect annotations, arXiv:2004.03473."
SETS = {"BB": "bluebirds", "WS": "wordsim", "RTE": "rte"}
REDUNDANCY = {"BB": (2, 5, 10, 20, 39), "WS": (2, 5, 10), "RTE": (2, 5, 10)}
MEDICAL_SETS = {"MC": "medical_causes", "MT": "medical_treats"}
MEDICAL = {"MC": (2, 5, 10), "MT": (2, 5, 10)}
BODY = MLP(hidden=(16, 16, 16, 16), activation="selu")
TRAINING = Training(optimizer="amsgrad", learning_rate=1e-3)
WIDE = MLP(hidden=(32, 32, 32, 32), activation="selu")  # on the medical sets


@lru_cache(maxsize=4)
def whole(name: str) -> LearningSet:
    """A set with all its labels."""
    if name in MEDICAL:
        return medical(name, "adjudicated")
    data = learning_set(SETS[name], features="stored")
    data = replace(data, X=data.X / np.abs(data.X).max())  # as the authors do
    return with_soft_scores(data) if name == "WS" else data


def with_soft_scores(data: LearningSet) -> LearningSet:
    """Word similarity with its ratings: 7 out of 10 is seven parts yes and three parts no."""
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
    """A column for every set and redundancy; the seed decides which labels are kept."""

    def draw(name: str, redundancy: int) -> Callable[[int], LearningSet]:
        def make(seed: int) -> LearningSet:
            data = load(name)
            return replace(data, annotations=data.annotations.subsample(redundancy, seed))

        return make

    return {
        f"{name} R={redundancy}": Column(draw(name, redundancy), redrawn=True)
        for name, redundancies in sizes.items()
        for redundancy in redundancies
    }


def paper(
    figures: Mapping[str, Sequence[Any]], sizes: Mapping[str, Sequence[int]]
) -> dict[str, Any]:
    """Percent and standard error (or None) by set, one pair per redundancy."""
    return {
        f"{name} R={redundancy}": {
            "accuracy": Published(value / 100, None if error is None else error / 100)
        }
        for name, pairs in figures.items()
        for redundancy, (value, error) in zip(sizes[name], pairs, strict=True)
    }


def on_its_tasks(model: Any, data: LearningSet, seed: int) -> dict[str, float]:
    """How well the truths of the labeled tasks are inferred, and by the classifier alone."""
    if isinstance(model, TrueLabels):
        return model.score(data)
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
    if isinstance(model, WordLIA):
        return words_in_common(data)
    if isinstance(model, EmbeddedTwoStage):
        return np.eye(len(data.X), dtype=np.float32)
    return data.X


class LIAE(learn.LIA):
    """LIA without features: learned embeddings of tasks."""


class WordLIA(learn.LIA):
    """LIA on the words that two sentences share, instead of embeddings of both."""


def words_in_common(data: LearningSet) -> Floats:
    """Features of sentence pairs from their words, in the order of the tasks."""
    items = crowd(data.name).items
    assert items is not None
    pairs = items.loc[data.annotations.tasks]
    return pair_features(pairs["premise"], pairs["hypothesis"], pairs["rte_task"])


class EmbeddedTwoStage(learn.TwoStage):
    """Two stages without features: the classifier learns an embedding of every task."""


def body_for(name: str) -> MLP:
    """LIA's network for a set: the paper has wider layers for the medical ones."""
    return WIDE if name in MEDICAL else BODY


def two_stage(aggregator: Any, kind: Any = learn.TwoStage, body: MLP = BODY) -> Any:
    """Two stages: an aggregator, then LIA's classifier on its labels."""
    training = Training(optimizer="amsgrad", learning_rate=1e-3, epochs=200)
    scale = kind is learn.TwoStage
    return kind(aggregator, NetClassifier(truth=body, scale=scale, training=training))


def lia(
    features: str,
    rounds: tuple[int, int],
    finish: tuple[str | None, int],
    weight_decay: float = 0.0,
    body: MLP = BODY,
) -> learn.LIA:
    """LIA with features standardized, as they are, or none; EM rounds and epochs; fine-tuning.

    With ``"linear"`` features are as they are and the networks have no hidden layer; with
    ``"words in common"`` they are those of :func:`words_in_common`.
    """
    kind = {"none": LIAE, "words in common": WordLIA}.get(features, learn.LIA)
    linear = features == "linear"
    return kind(
        truth="linear" if linear else "auto" if body is BODY else body,  # the paper's
        difficulty=MLP(hidden=()) if linear else body,
        training=clone(TRAINING).set_params(weight_decay=weight_decay),
        scale=features == "standardized",
        objective=learn.EM(*rounds, *finish),
    )


@dataclass(frozen=True)
class Settings:
    """What differs from set to set: how LIA is fine-tuned, and the weight decay."""

    finish: tuple[str | None, int] = (None, 0)
    weight_decay: float = 0.0


# The best of the table lia-settings, by held-out labels, for features and a set; else (None, 0).
BEST = {
    ("as they are", "BB"): Settings(("annotation", 100)),
    ("as they are", "MT"): Settings(("annotation", 100)),
    ("linear", "BB"): Settings(("annotation", 100)),
    ("linear", "WS"): Settings(("task", 100)),
    ("none", "BB"): Settings(("task", 100)),
}
# The same with weight decay, where held-out labels prefer that.
DECAYED = {
    ("linear", "BB"): Settings(("task", 300), 0.003),
    ("none", "BB"): Settings(("task", 300), 0.003),
    ("none", "RTE"): Settings(("task", 100), 0.003),
    ("words in common", "RTE"): Settings(("task", 300), 0.003),
}


def with_best_settings(features: str, *, decay: bool = False) -> Callable[[str], learn.LIA]:
    """LIA with the best settings for features and a column's set."""

    def make(column: str) -> learn.LIA:
        place = features, column.split(maxsplit=1)[0]
        best = DECAYED[place] if decay else BEST.get(place, Settings())
        return lia(features, (5, 40), best.finish, best.weight_decay, body_for(place[1]))

    return make


def by_the_paper(column: str) -> learn.LIA:
    """LIA with ten rounds of 1,000 steps, then 1,000 on the marginal likelihood.

    On the sets of its columns a batch of 1,024 holds all tasks, so that an epoch is a step.
    """
    return lia("as they are", (10, 1000), ("annotation", 1000))


class TrueLabels(BaseEstimator):
    """Not a method: a logistic regression on truths, to see how much the features predict."""

    def __init__(self, *, words: bool = False) -> None:
        self.words = words

    def score(self, data: LearningSet) -> dict[str, float]:
        """Scores on held-out tasks, in five folds."""
        rows, truth = known_truth(data)
        X = words_in_common(data) if self.words else data.X
        # The strength of its penalty is chosen by the truths of the training tasks.
        regression = GridSearchCV(
            LogisticRegression(max_iter=1000), {"C": np.logspace(-4, 0, 5)}, scoring="neg_log_loss"
        )
        model = make_pipeline(StandardScaler(), regression)
        proba = cross_val_predict(model, X[rows], truth, cv=5, method="predict_proba")
        predicted = np.zeros((data.annotations.n_tasks, proba.shape[1]))
        predicted[rows] = proba
        return on_training_tasks(predicted, data)


def fine_tune(marginal: str | None, *, features: bool = True) -> learn.LIA:
    """LIA with or without fine-tuning, all else the same."""
    return lia("as they are" if features else "none", (5, 40), (marginal, 100))


@lru_cache(maxsize=4)
def medical(name: str, truth: str) -> LearningSet:
    """The relation causes or treats, scored by one of its truths."""
    data = learning_set(MEDICAL_SETS[name], features="stored", truth=truth, cut=False)
    return replace(data, X=data.X / np.abs(data.X).max())
