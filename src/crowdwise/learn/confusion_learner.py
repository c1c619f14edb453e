"""The shared part of learners without a network: a posterior and confusion matrices."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations, keep_counting
from crowdwise.base.aggregator import by_worker
from crowdwise.base.fitting import (
    all_or_nothing,
    column_names,
    in_task_order,
)
from crowdwise.base.learner import Learner, WorkersLike
from crowdwise.base.params import Constraints, checks_params
from crowdwise.inference import MemoryEngine, Sweep, clamp, log_of, pooled_confusion
from crowdwise.io import as_annotations, as_gold
from crowdwise.io.accept import in_rows_of, refuse_too_many_classes
from crowdwise.nets.features import remember_columns
from crowdwise.typing import AnnotationsLike, FeaturesLike, Floats, GoldLike, Ints

ROWS_AT_ONCE = 1 << 16


class ConfusionLearner(Learner):
    """A learner without a network, whose workers have confusion matrices.

    A method implements ``_fit`` and ``predict_proba``.

    Attributes
    ----------
    classes_, workers_, tasks_ : ndarray
        Names, in the order of every learned array.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth) of the training tasks, given what the method knows about them.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth); the axes are worker, truth, label.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks, by this model.
    """

    _parameter_constraints: ClassVar[Constraints] = {}
    posterior_: Floats
    confusion_: Floats

    @checks_params
    def fit(
        self,
        X: FeaturesLike,
        annotations: AnnotationsLike,
        worker_features: FeaturesLike = None,
        gold: GoldLike = None,
    ) -> Self:
        """Learn from features and annotations.

        Parameters
        ----------
        X : array, sparse matrix or frame
            One row per task, in the order of ``annotations.tasks`` (or a frame indexed by task).
        annotations : Annotations, frame, array, dict or path
            Labels by workers; tasks without any are allowed.
        worker_features : None
            Not used; for interchangeability with other methods.
        gold : mapping, Series, frame or array, optional
            Known truths of some tasks: the classifier learns from them, and so does the rest.
        """
        votes = keep_counting(as_annotations(annotations))
        refuse_too_many_classes(type(self).__name__, votes, tables=True)
        known = None if gold is None else as_gold(gold, votes)
        X = in_task_order(in_rows_of(X, annotations), votes.tasks)
        with all_or_nothing(self):
            self.classes_, self.workers_, self.tasks_ = votes.classes, votes.workers, votes.tasks
            remember_columns(self, column_names(X), None)  # their number is up to the method
            posterior, self.confusion_ = self._fit(X, votes, known)
            self.posterior_ = clamp(posterior, known)
        return self

    @abstractmethod
    def _fit(self, X: FeaturesLike, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        """Learn; return P(truth) of each task, and P(label | truth) of each worker."""

    @property
    def worker_accuracy_(self) -> pd.Series:
        check_is_fitted(self)
        right = np.einsum("wkk,k->w", self.confusion_, self.posterior_.mean(axis=0))
        return by_worker(right, self.workers_, "accuracy")

    def predict_worker_proba(self, X: FeaturesLike, workers: WorkersLike | None = None) -> Floats:
        """Return P(label) by each worker, shape (n_rows, n_workers, n_classes)."""
        tables = self._tables()[self._worker_codes(workers)]
        return np.einsum("tk,wkl->twl", self.predict_proba(X), tables)

    def predict_worker_accuracy(
        self, X: FeaturesLike, workers: WorkersLike | None = None
    ) -> Floats:
        """Return the probability that each worker is right, shape (n_rows, n_workers)."""
        tables = self._tables()[self._worker_codes(workers)]
        return np.einsum("tk,wkk->tw", self.predict_proba(X), tables)

    def _label_proba(self, X: FeaturesLike, row: Ints, worker: Ints) -> Floats:
        truth, tables = self.predict_proba(X), self._tables()
        labels = np.empty((len(row), len(self.classes_)))
        for start in range(0, len(row), ROWS_AT_ONCE):  # each row needs a whole temporary matrix
            some = slice(start, start + ROWS_AT_ONCE)
            labels[some] = np.einsum("rk,rkl->rl", truth[row[some]], tables[worker[some]])
        return labels

    def _tables(self) -> Floats:
        """Return the confusion matrices, with their average for an unknown worker."""
        check_is_fitted(self)
        return np.concatenate([self.confusion_, self.confusion_.mean(axis=0, keepdims=True)])


def expect(votes: Annotations, log_class: Floats, confusion: Floats, gold: Ints | None) -> Sweep:
    """Run the E-step: P(truth | features, labels) of each task, and expected labels."""
    return MemoryEngine(votes, gold).expect(log_class, log_of(confusion))


def infer_truths(votes: Annotations, proba: Floats, gold: Ints | None) -> tuple[Floats, Floats]:
    """Return P(truth | features, labels) and confusion matrices, without a noise model.

    One step of Dawid and Skene's, with the classifier's probabilities as each task's prior.
    """
    start = pooled_confusion(votes, clamp(proba, gold))
    posterior = expect(votes, log_of(proba), start, gold).posterior
    return posterior, pooled_confusion(votes, posterior)
