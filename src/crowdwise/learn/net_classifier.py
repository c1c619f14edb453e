"""A network as an ordinary classifier, for the second of two stages."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.base.params import checks_params
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.noise import NoNoise
from crowdwise.learn.objectives import PerLabel
from crowdwise.nets.features import remember_columns, take
from crowdwise.nets.modules import NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import Array, FeaturesLike, Floats, RandomState


class NetClassifier(ClassifierMixin, BaseEstimator):
    """Learn a truth model from one label per row, like scikit-learn's classifiers.

    Uses the same truth models and the same training as the learners from crowds, so that
    ``TwoStage(MajorityVote(), NetClassifier(truth=…))`` is a fair baseline for them.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    penalty : float or "auto", default="auto"
        Regularization of the classifier; see :class:`crowdwise.learn.CrowdClassifier`.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``CrowdClassifier.default_training`` if not given.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    learner_ : CrowdClassifier
        The fitted network, with ``net_``, ``history_`` and ``search_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(NetClassifier(random_state=0).fit(X, y).score(X, y) > 0.95)
    True
    """

    _parameter_constraints = CrowdClassifier._parameter_constraints

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        penalty: float | str = "auto",
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.penalty = penalty
        self.scale = scale
        self.training = training
        self.random_state = random_state

    @checks_params
    def fit(self, X: FeaturesLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows of features and their classes."""
        classes, code = np.unique(np.asarray(y), return_inverse=True)
        weight = np.ones(len(code)) if sample_weight is None else np.asarray(sample_weight)
        counts = np.flatnonzero(weight > 0)
        labels = Annotations.from_codes(
            np.arange(len(counts)),
            np.zeros(len(counts), dtype=np.int64),
            code[counts],
            classes=np.arange(len(classes)),
            weight=weight[counts],
        )
        rows = X if len(counts) == len(weight) else take(X, counts)
        if hasattr(rows, "reset_index"):  # rows are matched by position, whatever their names
            rows = rows.reset_index(drop=True)
        one_worker = CrowdClassifier(
            **self.get_params(deep=False), noise=NoNoise(), objective=PerLabel()
        )
        self.learner_ = one_worker.fit(rows, labels)
        self.classes_ = classes
        known = vars(self.learner_)
        remember_columns(self, known.get("feature_names_in_"), known.get("n_features_in_"))
        return self

    def predict_proba(self, X: FeaturesLike) -> Floats:
        """Return P(class | features) of every row, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        return self.learner_.predict_proba(X)

    def predict(self, X: FeaturesLike) -> Array:
        """Return the most probable class of every row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
