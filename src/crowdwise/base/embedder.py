"""The verbs that every embedder shares, with a network behind them or not."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import pandas as pd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from crowdwise.base.learner import LearnerTraits
from crowdwise.errors import ParameterError, explain
from crowdwise.persist import Savable, save
from crowdwise.persist.registry import Tree, learned_attributes
from crowdwise.typing import AnnotationsLike, Array, FeaturesLike, Floats, GoldLike


class Embedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Learn a representation of tasks from their features and disagreeing labels.

    A method fills in ``fit`` and ``_transform``.

    Attributes
    ----------
    classes_, workers_, tasks_ : ndarray
        Names, in the order of every learned array.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | labels) of the training tasks.
    confidence_ : ndarray of shape (n_tasks,)
        Confidence in the class of each training task; 0 for tasks without labels.
    size_ : int
        Dimension of the representation.
    feature_shape_ : tuple of int
        Shape of one task's features.
    n_features_in_, feature_names_in_ : int and ndarray
        Number of features where they are rows of numbers, and their names in a frame.
    """

    traits: ClassVar[LearnerTraits] = LearnerTraits(random_per=("task",))
    # Names along the axes of learned arrays; what a file holds is checked against them.
    _axes: ClassVar[Mapping[str, tuple[str, ...]]] = Savable._axes
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    classes_: Array
    workers_: Array
    tasks_: Array
    posterior_: Floats
    confidence_: Floats
    size_: int
    feature_shape_: tuple[int, ...]

    @classmethod
    def recipe(cls, name: str, **changes: Any) -> Self:
        """The method with settings of its paper or code; ``recipes`` lists the names."""
        if name not in cls.recipes:
            known = ", ".join(cls.recipes) or "none; it is used as it is"
            raise ParameterError(explain(f"{cls.__name__} has no recipe {name!r}.", expected=known))
        return cls(**{**copy.deepcopy(dict(cls.recipes[name])), **changes})

    @abstractmethod
    def fit(self, X: FeaturesLike, annotations: AnnotationsLike, gold: GoldLike = None) -> Self:
        """Learn from features and annotations; a failure leaves the model as it was."""

    def transform(self, X: FeaturesLike) -> Floats | pd.DataFrame:
        """The representation of every row, shape (n_rows, size).

        A frame gives a frame with the same index, so that a later step finds its tasks by name.
        """
        check_is_fitted(self)
        found = self._transform(X)
        if isinstance(X, pd.DataFrame):
            return pd.DataFrame(found, index=X.index, columns=self.get_feature_names_out())
        return found

    def fit_transform(
        self, X: FeaturesLike, annotations: AnnotationsLike, gold: GoldLike = None
    ) -> Floats | pd.DataFrame:
        """Same as ``fit(X, annotations, gold).transform(X)``."""
        return self.fit(X, annotations, gold).transform(X)

    @abstractmethod
    def _transform(self, X: FeaturesLike) -> Floats:
        """The representation of every row, shape (n_rows, size)."""

    @property
    def _n_features_out(self) -> int:
        return self.size_

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, without pickle; ``crowdwise.load`` reads it.

        Parameters
        ----------
        path : str or Path
            Where to; what is there is replaced once the new file is complete.
        """
        save(self, path)

    def _worker_rows(self) -> Mapping[str, Array]:
        """Learned arrays with one row per worker, by the name of their attribute."""
        return {}

    def _task_rows(self) -> Mapping[str, Array]:
        """Learned arrays with one row per task, by the name of their attribute."""
        return {}

    def _learned(self) -> Tree:
        """Learned attributes by name, as values that a file can hold."""
        return learned_attributes(self)

    def _restore(self, learned: Tree) -> None:
        """Take back what :meth:`_learned` gave."""
        self.__dict__.update(learned)
