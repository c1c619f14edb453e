"""What learners with a classifier for every worker share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.inference.rows import LabelRows
from crowdwise.inference.simplex import one_hot
from crowdwise.learn._linear import LinearLearner
from crowdwise.typing import Floats, Ints


class PersonalLearner(LinearLearner):
    """A learner in which every worker labels by a classifier of their own.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features + 1, n_classes)
        Weights of the shared classifier; the last row is the intercept.
    worker_weights_ : ndarray of shape (n_workers, n_features + 1, n_classes)
        Weights of each worker's.
    """

    worker_weights_: Floats

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"worker_weights_": self.worker_weights_}

    def predict_worker_proba(self, X: Any, workers: Any = None) -> Floats:
        """What each worker would say, shape (n_rows, n_workers, n_classes)."""
        weights, design = self._models()[self._worker_codes(workers)], self._design(X)
        n_workers, n_columns, n_classes = weights.shape
        logits = design @ weights.transpose(1, 0, 2).reshape(n_columns, -1)
        return softmax(logits.reshape(-1, n_workers, n_classes), axis=2)

    def predict_worker_accuracy(self, X: Any, workers: Any = None) -> Floats:
        """How likely each worker is right, shape (n_rows, n_workers)."""
        labels = self.predict_worker_proba(X, workers)
        return np.einsum("tk,twk->tw", self.predict_proba(X), labels)

    def _label_proba(self, X: Any, row: Ints, worker: Ints) -> Floats:
        models, design = self._models(), self._design(X)
        proba = np.empty((len(row), len(self.classes_)))
        for number in np.unique(worker):
            mine = worker == number
            proba[mine] = softmax(design[row[mine]] @ models[number], axis=1)
        return proba

    def _models(self) -> Floats:
        """The workers' classifiers, and the shared one for a worker never seen."""
        check_is_fitted(self)
        return np.concatenate([self.worker_weights_, self.weights_[None]])


@dataclass(frozen=True)
class Labeled:
    """The tasks of the shared classifier (gold) and of each worker, with their labels."""

    design: tuple[Any, ...]  # a matrix for each classifier, one row a label
    target: tuple[Floats, ...]  # (row, class): the label's weight

    @classmethod
    def of(cls, design: Any, votes: Annotations, gold: Ints | None) -> Self:
        rows, n_classes = LabelRows.of(votes), votes.n_classes
        order = np.argsort(rows.worker, kind="stable")
        edges = np.searchsorted(rows.worker[order], np.arange(1, votes.n_workers))
        mine = np.split(order, edges)
        known = np.full(votes.n_tasks, -1) if gold is None else gold
        target = one_hot(rows.label, n_classes) * rows.weight[:, None]
        return cls(
            (design[known >= 0], *(design[rows.task[some]] for some in mine)),
            (one_hot(known[known >= 0], n_classes), *(target[some] for some in mine)),
        )

    def loss(self, weights: Floats) -> tuple[float, Floats]:
        """Minus the log-likelihood of all labels, and its slope.

        A loop over classifiers, each a matrix product: one product for all of them would be
        as many times larger as there are workers.
        """
        value, slope = 0.0, np.empty_like(weights)
        for number, (design, target) in enumerate(zip(self.design, self.target, strict=True)):
            log_class = log_softmax(design @ weights[number], axis=1)
            value -= float((target * log_class).sum())
            mass = target.sum(axis=1, keepdims=True)
            slope[number] = design.T @ (mass * np.exp(log_class) - target)
        return value, slope


@dataclass(frozen=True)
class LabeledByMost:
    """The same where most workers label most tasks: every task once, with all labels of it."""

    design: Any  # (task, column)
    target: Floats  # (task, classifier, class): weight of the labels

    @classmethod
    def of(cls, design: Any, votes: Annotations, gold: Ints | None) -> Self:
        rows = LabelRows.of(votes)
        target = np.zeros((votes.n_tasks, votes.n_workers + 1, votes.n_classes))
        if gold is not None:
            known = np.flatnonzero(gold >= 0)
            target[known, 0, gold[known]] = 1.0
        np.add.at(target, (rows.task, rows.worker + 1, rows.label), rows.weight)
        return cls(design, target)

    def loss(self, weights: Floats) -> tuple[float, Floats]:
        """As above, in one product for all classifiers."""
        n, n_columns, n_classes = weights.shape
        logits = self.design @ weights.transpose(1, 0, 2).reshape(n_columns, -1)
        log_class = log_softmax(logits.reshape(-1, n, n_classes), axis=2)
        value = -float((self.target * log_class).sum())
        mass = self.target.sum(axis=2, keepdims=True)
        rest = (mass * np.exp(log_class) - self.target).reshape(len(log_class), -1)
        slope: Floats = np.asarray(self.design.T @ rest)
        return value, slope.reshape(n_columns, n, n_classes).transpose(1, 0, 2).copy()


def labeled_tasks(design: Any, votes: Annotations, gold: Ints | None) -> Labeled | LabeledByMost:
    """The labels of every classifier, in the form that is quicker to go through."""
    cells = votes.n_tasks * votes.n_workers
    kind = LabeledByMost if cells <= 2 * votes.n_annotations else Labeled
    return kind.of(design, votes, gold)
