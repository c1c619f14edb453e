"""The verbs that every learner shares, with a network behind them or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
import pandas as pd
from scipy.special import xlogy
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations, refuse_empty
from crowdwise.annotations.names import as_names, locate
from crowdwise.base.aggregator import by_worker
from crowdwise.base.fitting import all_or_nothing, column_names, in_task_order, remember_columns
from crowdwise.base.params import checks_params
from crowdwise.inference import MemoryEngine, Sweep, clamp, log_of, pooled_confusion
from crowdwise.io import as_annotations, as_gold
from crowdwise.io.accept import align_to_model
from crowdwise.persist import Savable
from crowdwise.typing import Array, Floats, Ints

ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class LearnerTraits:
    """What a learner promises, for the laws and the documentation to read."""

    # What random numbers are drawn for one by one: "row" (of the annotations), "task", "worker".
    # Another order of these means other luck; without it only rounding differs.
    luck: tuple[str, ...] = ()


class CrowdLearner(Savable, ClassifierMixin, BaseEstimator, ABC):
    """A classifier learned from features and disagreeing labels, as scikit-learn knows them."""

    traits: ClassVar[LearnerTraits] = LearnerTraits()
    classes_: Array
    workers_: Array
    tasks_: Array

    @abstractmethod
    def predict_proba(self, X: Any) -> Floats:
        """P(truth | features) of every row, shape (n_rows, n_classes)."""

    @abstractmethod
    def _label_proba(self, X: Any, row: Ints, worker: Ints) -> Floats:
        """P(label | features, worker), one line for each given row of X and worker number.

        The number after the last worker stands for one who was never seen.
        """

    def predict(self, X: Any) -> Array:
        """Most probable class of every row."""
        proba = self.predict_proba(X)  # which sees to it that there is something to ask
        return self.classes_[proba.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy against truths; mean log-likelihood per label against annotations."""
        if isinstance(y, Annotations) or is_table(y):
            return self.log_likelihood(X, y)
        return float(super().score(X, y, sample_weight))

    def log_likelihood(self, X: Any, annotations: Any) -> float:
        """Mean log P(label | features, worker) of annotations, an honest score without truth."""
        votes = as_annotations(annotations)
        return self._log_likelihood(in_task_order(X, votes.tasks), votes)

    def _log_likelihood(self, X: Any, votes: Annotations) -> float:
        """The same, for one row per task in their order."""
        check_is_fitted(self)
        refuse_empty(votes, "score by")
        known, _ = align_to_model(votes, self.workers_, self.classes_, "average")
        proba = self._label_proba(X, known.task, known.worker)
        given = np.eye(len(self.classes_))[known.label] if known.soft is None else known.soft
        evidence = xlogy(given, proba).sum(axis=1)  # (row,)
        return float(np.average(evidence, weights=known.weight))

    def _worker_codes(self, workers: Any) -> Ints:
        """Numbers of the named workers; a name never seen is the unknown worker."""
        if workers is None:
            return np.arange(len(self.workers_))
        found = locate(self.workers_, worker_names(workers))
        return np.where(found < 0, len(self.workers_), found)


class PlainLearner(CrowdLearner):
    """A learner without a network, whose workers have confusion matrices.

    A method fills in ``_fit`` and ``predict_proba``.

    Attributes
    ----------
    classes_, workers_, tasks_ : ndarray
        Names, in the order of every learned array.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth) of the training tasks, from what the method knows of them.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth); the axes are worker, truth, label.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks, by this model.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    posterior_: Floats
    confusion_: Floats

    @checks_params
    def fit(self, X: Any, annotations: Any, worker_features: Any = None, gold: Any = None) -> Self:
        """Learn from features and annotations.

        Parameters
        ----------
        X : array, sparse matrix or frame
            One row per task, in the order of ``annotations.tasks`` (or a frame indexed by task).
        annotations : Annotations, frame, array, dict or path
            Labels by workers; tasks without any are allowed.
        worker_features : None
            Not used; here for methods to be exchanged freely.
        gold : mapping, Series, frame or array, optional
            Known truths of some tasks: the classifier learns from them, and so does the rest.
        """
        votes = as_annotations(annotations)
        refuse_empty(votes)
        known = None if gold is None else as_gold(gold, votes)
        X = in_task_order(X, votes.tasks)
        with all_or_nothing(self):
            self.classes_, self.workers_, self.tasks_ = votes.classes, votes.workers, votes.tasks
            remember_columns(self, column_names(X), None)  # how many, a method finds out
            posterior, self.confusion_ = self._fit(X, votes, known)
            self.posterior_ = clamp(posterior, known)
        return self

    @abstractmethod
    def _fit(self, X: Any, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        """Learn; return P(truth) of each task, and P(label | truth) of each worker."""

    @property
    def worker_accuracy_(self) -> pd.Series:
        check_is_fitted(self)
        right = np.einsum("wkk,k->w", self.confusion_, self.posterior_.mean(axis=0))
        return by_worker(right, self.workers_, "accuracy")

    def predict_worker_proba(self, X: Any, workers: Any = None) -> Floats:
        """What each worker would say, shape (n_rows, n_workers, n_classes)."""
        tables = self._tables()[self._worker_codes(workers)]
        return np.einsum("tk,wkl->twl", self.predict_proba(X), tables)

    def predict_worker_accuracy(self, X: Any, workers: Any = None) -> Floats:
        """How likely each worker is right, shape (n_rows, n_workers)."""
        tables = self._tables()[self._worker_codes(workers)]
        return np.einsum("tk,wkk->tw", self.predict_proba(X), tables)

    def _label_proba(self, X: Any, row: Ints, worker: Ints) -> Floats:
        truth, tables = self.predict_proba(X), self._tables()
        labels = np.empty((len(row), len(self.classes_)))
        for start in range(0, len(row), ROWS_AT_ONCE):  # each row needs a whole matrix in passing
            some = slice(start, start + ROWS_AT_ONCE)
            labels[some] = np.einsum("rk,rkl->rl", truth[row[some]], tables[worker[some]])
        return labels

    def _tables(self) -> Floats:
        """The confusion matrices, and their average for a worker never seen."""
        check_is_fitted(self)
        return np.concatenate([self.confusion_, self.confusion_.mean(axis=0, keepdims=True)])


def is_table(y: Any) -> bool:
    """Whether these are annotations in a frame, array or mapping, and not a column of truths."""
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return len(frame.columns) > 1
    return isinstance(y, Mapping) or (np.ndim(y) == 2 and np.shape(y)[1] > 1)


def worker_names(workers: Any) -> Array:
    """Names in the order in which they were asked for; a single one may stand for itself."""
    if np.ndim(workers) == 0 and not isinstance(workers, Set):
        workers = [workers.item() if isinstance(workers, np.ndarray) else workers]
    return as_names(workers)


def expect(votes: Annotations, log_class: Floats, confusion: Floats, gold: Ints | None) -> Sweep:
    """E-step: P(truth | features, labels) of each task, and the labels to be expected."""
    return MemoryEngine(votes, gold).expect(log_class, log_of(confusion))


def judged(votes: Annotations, proba: Floats, gold: Ints | None) -> tuple[Floats, Floats]:
    """P(truth | features, labels) and confusion matrices, for methods without a noise model.

    One step of Dawid and Skene's, with the classifier's probabilities as each task's prior.
    """
    start = pooled_confusion(votes, clamp(proba, gold))
    posterior = expect(votes, log_of(proba), start, gold).posterior
    return posterior, pooled_confusion(votes, posterior)
