"""Fit a method and score it: what most tables do for a row and a column."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import f1_score, roc_auc_score

from crowdbench.sets import LearningSet
from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.evaluate.scores import accuracy, balanced_accuracy, macro_f1
from crowdwise.typing import Array, Floats, Ints

FOLDS = 5  # of held-out labels


def on_test_tasks(model: Any, data: LearningSet, seed: int) -> dict[str, float]:
    """Scores on the test part, and how well the truths of the training tasks are inferred."""
    X, X_test = data.X, data.X_test
    model.fit(X, data.annotations)
    predicted = model.predict(X_test)
    found = {
        "accuracy": float(np.mean(predicted == data.y_test)),
        "macro F1": float(f1_score(data.y_test, predicted, average="macro", zero_division=0.0)),
        "training": float("nan"),
        "confusion error": confusion_error(model, data),
    }
    if getattr(model, "posterior_", None) is not None:
        found["training"] = on_training_tasks(model.posterior_, data)["accuracy"]
    if data.annotations.n_classes == 2 and hasattr(model, "predict_proba"):
        found["AUC"] = float(roc_auc_score(data.y_test, model.predict_proba(X_test)[:, 1]))
    return found


def on_held_out_labels(
    model: Any, data: LearningSet, fold: int, X: Any = "those of the set"
) -> dict[str, float]:
    """Mean log probability of a fifth of the labels, by the posterior from the others.

    No truth is used.
    """
    votes = data.annotations
    tested = np.random.default_rng(0).integers(FOLDS, size=len(votes.label)) == fold
    model.fit(data.X if isinstance(X, str) else X, votes.filter(~tested))
    return {"held-out": label_likelihood(model.posterior_, model.confusion_, votes, tested)}


def on_held_out_tasks(model: Any, data: LearningSet, fold: int) -> dict[str, float]:
    """Mean log probability of the labels of a fifth of the tasks, by the classifier.

    No truth is used.
    """
    votes = data.annotations
    tested = np.random.default_rng(0).integers(FOLDS, size=votes.n_tasks)[votes.task] == fold
    model.fit(data.X, votes.filter(~tested))
    belief = model.predict_proba(data.X)
    return {"held-out": label_likelihood(belief, model.confusion_, votes, tested)}


def label_likelihood(belief: Floats, confusion: Floats, votes: Annotations, tested: Array) -> float:
    """Mean log probability of some labels, from P(truth) of tasks and P(label | truth)."""
    expected = np.einsum("nk,nkl->nl", belief[votes.task[tested]], confusion[votes.worker[tested]])
    given = np.eye(votes.n_classes)[votes.label[tested]]
    if votes.soft is not None:
        given = votes.soft[tested]
    return float((given * np.log(np.maximum(expected, 1e-9))).sum(axis=1).mean())


def on_training_tasks(posterior: Floats, data: LearningSet) -> dict[str, float]:
    """Scores of a posterior on the training tasks that have a truth; ties share the credit."""
    rows, truth = known_truth(data)
    return {
        "accuracy": accuracy(posterior[rows], truth),
        "macro F1": macro_f1(posterior[rows], truth),
        "balanced accuracy": balanced_accuracy(posterior[rows], truth),
    }


def known_truth(data: LearningSet) -> tuple[Ints, Ints]:
    """Rows of the training tasks whose truth is known, and their class numbers."""
    votes = data.annotations
    rows = locate(votes.tasks, data.truth.index.to_numpy())
    truth = locate(votes.classes, data.truth.to_numpy())
    kept = (rows >= 0) & (truth >= 0)
    return rows[kept], truth[kept]


def confusion_error(model: Any, data: LearningSet, n_busiest: int = 6) -> float:
    """Mean absolute error of the learned confusion matrices of the busiest workers."""
    learned = getattr(model, "confusion_", None)
    votes = data.annotations
    if learned is None or learned.shape[1:] != (votes.n_classes, votes.n_classes):
        return float("nan")
    counts = empirical_counts(data)
    busiest = np.argsort(-counts.sum(axis=(1, 2)))[:n_busiest]
    rows = counts[busiest].sum(axis=2, keepdims=True)
    empirical = counts[busiest] / np.maximum(rows, 1)
    return float(np.abs(learned[busiest] - empirical)[rows[:, :, 0] > 0].mean())


def empirical_counts(data: LearningSet) -> Floats:
    """How often each worker gave each label to tasks of each true class."""
    votes = data.annotations
    rows, truth = known_truth(data)
    by_task: Array = np.full(votes.n_tasks, -1)
    by_task[rows] = truth
    known = by_task[votes.task] >= 0
    counts = np.zeros((votes.n_workers, votes.n_classes, votes.n_classes))
    place = (votes.worker[known], by_task[votes.task][known], votes.label[known])
    np.add.at(counts, place, 1.0)
    return counts
