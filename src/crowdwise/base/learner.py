"""The shared methods of learners, with or without a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self, TypeAlias, cast

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import xlogy
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations, keep_counting
from crowdwise.annotations.names import as_names, locate
from crowdwise.annotations.truth_names import warn_unseen_truths
from crowdwise.base.fitting import in_order_of, in_task_order
from crowdwise.base.traits import LearnerTraits
from crowdwise.inference.posteriors import as_frame
from crowdwise.io import as_annotations
from crowdwise.io.accept import align_to_model, in_rows_of
from crowdwise.persist import Savable, save
from crowdwise.persist.registry import Tree, learned_attributes
from crowdwise.persist.soundness import Axes
from crowdwise.typing import AnnotationsLike, Array, FeaturesLike, Floats, Ints

WorkersLike: TypeAlias = Hashable | Sequence[Hashable] | Array  # a name, or several


class Learner(ClassifierMixin, BaseEstimator, ABC):
    """A classifier learned from features and disagreeing labels, with scikit-learn's methods.

    A learner implements ``fit(X, annotations, worker_features=None, gold=None)`` and the abstract
    methods here; predictions, scores and saving follow.

    Attributes
    ----------
    classes_, workers_, tasks_ : ndarray
        Names, in the order of every learned array.
    probas_ : DataFrame
        P(truth | features, labels) of the training tasks, task x class.
    """

    # Names of the axes of learned arrays, to check what a file contains.
    _axes: ClassVar[Mapping[str, Axes]] = Savable._axes
    classes_: Array
    workers_: Array
    tasks_: Array
    posterior_: Floats

    @property
    def probas_(self) -> pd.DataFrame:
        check_is_fitted(self)
        return as_frame(self.posterior_, self.tasks_, self.classes_)

    @property
    def traits(self) -> LearnerTraits:
        """The learner's promises."""
        return LearnerTraits()

    def set_params(self, **params: object) -> Self:
        """Set parameters; ``part__name`` changes a copy of the part, which may be shared."""
        own = self.get_params(deep=False)
        for part in {name.partition("__")[0] for name in params if "__" in name} - params.keys():
            if hasattr(own.get(part), "get_params"):
                setattr(self, part, clone(own[part]))
        return super().set_params(**params)

    @abstractmethod
    def predict_proba(self, X: FeaturesLike) -> Floats:
        """Return P(truth | features) of every row, shape (n_rows, n_classes)."""

    @abstractmethod
    def _label_proba(self, X: FeaturesLike, row: Ints, worker: Ints) -> Floats:
        """Return P(label | features, worker) for each given row of X and worker number.

        The number after the last worker means an unknown one.
        """

    def predict(self, X: FeaturesLike) -> Array:
        """Return the most probable class of every row."""
        proba = self.predict_proba(X)  # which also checks that the model is fitted
        return self.classes_[proba.argmax(axis=1)]

    def score(
        self, X: FeaturesLike, y: AnnotationsLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Accuracy against truths; mean log-likelihood per label against annotations.

        Truths in a series are matched to the rows of a frame by their names, if it has any.
        """
        if isinstance(y, Annotations) or is_table(y):
            return self.log_likelihood(X, y)
        truths, weight = (
            in_order_of(X, own, what) for own, what in ((y, "y"), (sample_weight, "sample_weight"))
        )
        found = float(super().score(X, truths, weight))
        warn_unseen_truths(np.ravel(y), self.classes_, "all predictions for them are wrong")
        return found

    def log_likelihood(self, X: FeaturesLike, annotations: AnnotationsLike) -> float:
        """Return the mean log P(label | features, worker), which needs no truths."""
        votes = as_annotations(annotations)
        X = in_task_order(in_rows_of(X, annotations), votes.tasks)
        return self._log_likelihood(X, votes)

    def _log_likelihood(self, X: FeaturesLike, votes: Annotations) -> float:
        """Do the same for one row per task in order."""
        check_is_fitted(self)
        votes = keep_counting(votes, "score by")
        known, _ = align_to_model(votes, self.workers_, self.classes_, "average")
        proba = self._label_proba(X, known.task, known.worker)
        given = np.eye(len(self.classes_))[known.label] if known.soft is None else known.soft
        evidence = xlogy(given, proba).sum(axis=1)  # (row,)
        return float(np.average(evidence, weights=known.weight))

    def _worker_codes(self, workers: WorkersLike | None) -> Ints:
        """Return the numbers of named workers; other names mean the unknown worker."""
        if workers is None:
            return np.arange(len(self.workers_))
        found = locate(self.workers_, worker_names(workers))
        return np.where(found < 0, len(self.workers_), found)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, without pickle; ``crowdwise.load`` reads it.

        Parameters
        ----------
        path : str or Path
            The file to write; an existing one is replaced once the new file is complete.
        """
        save(self, path)

    def _worker_rows(self) -> Mapping[str, Array]:
        """Return learned arrays with one row per worker, by attribute name."""
        return {}

    def _task_rows(self) -> Mapping[str, Array]:
        """Return learned arrays with one row per task, by attribute name."""
        return {}

    def _learned(self) -> Tree:
        """Return learned attributes by name, as values that a file can store."""
        return learned_attributes(self)

    def _restore(self, learned: Tree) -> None:
        """Restore what :meth:`_learned` returned."""
        self.__dict__.update(learned)


def is_table(y: AnnotationsLike) -> bool:
    """Return whether these are annotations, as frame, array or mapping, and not truths."""
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return len(frame.columns) > 1
    return isinstance(y, Mapping) or (np.ndim(y) == 2 and np.shape(y)[1] > 1)


def worker_names(workers: WorkersLike) -> Array:
    """Return names in the order given; a single name may stand alone."""
    if isinstance(workers, np.ndarray):
        return as_names(workers if workers.ndim else [workers.item()])
    if isinstance(workers, Iterable) and not isinstance(workers, str | bytes):
        return as_names(cast("Sequence[Hashable]", workers))  # refuses a set
    return as_names([workers])
