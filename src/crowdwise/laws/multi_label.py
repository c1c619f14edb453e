"""A multi-label learner in the place of a learner of one label, so that the same laws apply."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from crowdwise.annotations import Annotations
from crowdwise.laws.checks import save_and_load
from crowdwise.laws.quick import Model
from crowdwise.typing import Array, FeaturesLike, Floats, GoldLike

YES, NO = "is the second class", "is the first class"


class OneLabelName(BaseEstimator):
    """What a multi-label learner infers about the first of two label names, as two classes.

    The annotations of two classes become two label names, one the opposite of the other. So the
    learner must share what it learns between them, and the laws can be asked about one.

    Parameters
    ----------
    learner : learner
        A learner with ``traits.multi_label``, such as :class:`crowdwise.learn.LIAML`.
    """

    def __init__(self, learner: Model) -> None:
        self.learner = learner

    @property
    def traits(self) -> Model:
        return self.learner.traits

    def fit(
        self,
        X: FeaturesLike,
        annotations: Annotations,
        worker_features: FeaturesLike = None,
        gold: GoldLike = None,
    ) -> Self:
        known = None if gold is None else {YES: gold}
        model = clone(self.learner).fit(X, two_names(annotations), worker_features, known)
        return self._show(model)

    def _show(self, model: Model) -> Self:
        self.model_ = model
        self.posterior_ = both(model.posterior_[YES].to_numpy())
        self.confusion_ = model.confusion_[0]
        self.worker_accuracy_ = model.worker_accuracy_[YES]
        return self

    def predict(self, X: FeaturesLike) -> Array:
        return self.model_.predict(X)[YES].to_numpy()

    def predict_proba(self, X: FeaturesLike) -> Floats:
        return both(self.model_.predict_proba(X)[YES].to_numpy())

    def predict_worker_proba(self, X: FeaturesLike, workers: ArrayLike | None = None) -> Floats:
        return both(self.model_.predict_worker_proba(X, workers)[:, :, 0])

    def predict_worker_accuracy(self, X: FeaturesLike, workers: ArrayLike | None = None) -> Floats:
        right: Floats = self.model_.predict_worker_accuracy(X, workers)[:, :, 0]
        return right

    def score(self, X: FeaturesLike, y: Annotations | Array) -> float:
        known = two_names(y) if isinstance(y, Annotations) else pd.DataFrame({YES: y})
        return float(self.model_.score(X, known))

    def save_and_load(self) -> OneLabelName:
        """The same model from a file."""
        return OneLabelName(self.learner)._show(save_and_load(self.model_))


def two_names(votes: Annotations) -> dict[str, Annotations]:
    """Annotations of two classes as those of two label names, one the opposite of the other."""
    soft = None if votes.soft is None else votes.soft[:, ::-1]
    label = (votes.n_classes - 1 - votes.label).astype(votes.label.dtype)
    return {YES: votes, NO: replace(votes, label=label, soft=soft)}


def both(yes: Floats) -> Floats:
    """Probabilities of the two classes, from those of the second."""
    return np.stack([1.0 - yes, yes], axis=-1)
