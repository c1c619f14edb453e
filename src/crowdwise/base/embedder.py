"""The shared methods of embedders, with or without a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import pandas as pd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from crowdwise.base.recipes import find_recipe
from crowdwise.base.traits import LearnerTraits
from crowdwise.persist import Savable
from crowdwise.typing import AnnotationsLike, Array, FeaturesLike, Floats, GoldLike


class Embedder(Savable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Learn a representation of tasks from their features and disagreeing labels.

    A method implements ``fit`` and ``_transform``.

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
        Number of features if they are rows of numbers, and their names if in a frame.
    """

    traits: ClassVar[LearnerTraits] = LearnerTraits(random_per=("task",))
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
        """Make the method with the settings of its paper or code; ``recipes`` lists the names."""
        return cls(**{**find_recipe(cls, cls.recipes, name), **changes})

    @abstractmethod
    def fit(self, X: FeaturesLike, annotations: AnnotationsLike, gold: GoldLike = None) -> Self:
        """Learn from features and annotations; a failure leaves the model unchanged."""

    def transform(self, X: FeaturesLike) -> Floats | pd.DataFrame:
        """Return the representation of every row, shape (n_rows, size).

        A frame gives a frame with the same index, so that later steps can match tasks by name.
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
        """Return the representation of every row, shape (n_rows, size)."""

    @property
    def _n_features_out(self) -> int:
        return self.size_
