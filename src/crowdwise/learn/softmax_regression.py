"""The shared part of learners with a linear classifier: scaled features, softmax regression."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, hstack, issparse
from scipy.special import log_softmax, softmax
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from crowdwise.base.fitting import column_names, refuse_other_columns, refuse_width
from crowdwise.base.params import Constraints
from crowdwise.errors import AnnotationError, explain
from crowdwise.learn.confusion_learner import ConfusionLearner
from crowdwise.nets.features import as_features
from crowdwise.typing import FeaturesLike, Floats

Matrix: TypeAlias = Floats | csr_array  # of features, one row per task


class LinearLearner(ConfusionLearner):
    """A learner whose classifier is a softmax regression on scaled features.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features + 1, n_classes)
        Weights of the scaled features; the last row is the intercept.
    """

    _parameter_constraints: ClassVar[Constraints] = {"scale": ["boolean"]}
    scale: bool
    weights_: Floats

    def predict_proba(self, X: FeaturesLike) -> Floats:
        """Return P(truth | features) of every row, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        return softmax(self._design(X) @ self.weights_, axis=1)

    def _learn_design(self, X: FeaturesLike) -> Matrix:
        """Return the design matrix of the training rows, which determine the scale."""
        table = as_table(X)
        self.n_features_in_ = table.shape[1]
        # Centering would fill a sparse matrix, so it is only scaled.
        self.scaler_ = StandardScaler(with_mean=not issparse(table)).fit(table)
        return self._design(X)

    def _design(self, X: FeaturesLike) -> Matrix:
        """Return scaled features with a column of ones."""
        refuse_other_columns(column_names(X), getattr(self, "feature_names_in_", None))
        table = as_table(X)
        refuse_width(table.shape[1], self.n_features_in_)
        if self.scale and table.shape[0]:  # scikit-learn refuses to scale nothing
            table = self.scaler_.transform(table)
        ones = np.ones((table.shape[0], 1))
        return hstack([table, ones], format="csr") if issparse(table) else np.hstack([table, ones])


def as_table(X: FeaturesLike) -> Matrix:
    """Return features as a matrix of doubles, sparse if they are."""
    features = as_features(X)
    if issparse(X):
        return csr_array(X, dtype=np.float64)
    if len(features.shape) != 1:
        raise AnnotationError(
            explain(
                f"Features of shape {features.shape} are not rows of numbers.",
                expected="a table with one row per task",
                fix="flatten X, or choose a method that accepts a truth model of your own",
            )
        )
    return features.table(bytes_each=24).double().numpy()  # as they are, scaled, with a one


def softmax_regression(
    design: Matrix, target: Floats, ridge: float, start: Floats, max_iter: int = 1000
) -> Floats:
    """Maximize ``sum target * log softmax(design @ w) - ridge / 2 |w|^2``; return the weights.

    ``target`` has each row's weight of every class; rows need not sum to one. The last
    column of the design is the intercept, which is not penalized.
    """
    mass = target.sum(axis=1, keepdims=True)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(start.shape)
        log_class = log_softmax(design @ weights, axis=1)
        slope = design.T @ (mass * np.exp(log_class) - target)
        slope[:-1] += ridge * weights[:-1]
        value = penalty(weights, ridge) - (target * log_class).sum()
        return value, slope.reshape(-1)

    options = {"maxiter": max_iter, "ftol": 1e-12, "gtol": 1e-6 * max(mass.sum(), 1.0)}
    found = minimize(loss, start.reshape(-1), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(start.shape)


def penalty(weights: Floats, ridge: float) -> float:
    """Return half the ridge times the squared weights, without the intercept's."""
    return 0.5 * ridge * float((weights[:-1] ** 2).sum())
