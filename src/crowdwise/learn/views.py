"""Views of features: axes of plain, scaled and kernel features, learned without labels."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import torch
from scipy.linalg import eigh
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.utils import check_random_state
from sklearn.utils.sparsefuncs import mean_variance_axis

from crowdwise.base.params import Constraints, at_least
from crowdwise.learn.softmax_regression import Matrix
from crowdwise.nets.features import as_features
from crowdwise.typing import FeaturesLike, Floats, RandomState

SAMPLE = 8192  # rows for learning the axes
WIDEST = 2000  # features, above which axes are found from products of that many rows
FAINT = 1e-6  # axes with less than this share of the variance of the first are left out


class PrincipalAxes(BaseEstimator):
    """Centered features along their principal axes, scaled to a mean squared norm of one.

    Parameters
    ----------
    standardize : bool, default=True
        Whether to divide features by their standard deviation first.
    rank : int, default=600
        Maximum number of axes.
    random_state : int or RandomState, optional
        Random seed for choosing the rows to learn axes from, if there are over a few thousand.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "standardize": ["boolean"],
        "rank": [at_least(1)],
        "random_state": ["random_state"],
    }

    def __init__(
        self, *, standardize: bool = True, rank: int = 600, random_state: RandomState = None
    ) -> None:
        self.standardize = standardize
        self.rank = rank
        self.random_state = random_state

    def fit(self, X: Matrix) -> Self:
        """Learn the axes; a single one if all rows are equal."""
        wide = X.shape[1] > WIDEST
        rows = sample_rows(X, WIDEST if wide else SAMPLE, self.random_state)
        self.mean_, deviation = spread(rows)
        scale = np.zeros_like(deviation)
        np.divide(1.0, deviation if self.standardize else 1.0, out=scale, where=deviation > 0)
        scaled = rows * scale if issparse(rows) else (rows - self.mean_) * scale
        find = axes_by_rows if rows.shape[0] <= X.shape[1] else axes_by_columns
        axes, variance = find(scaled, self.mean_ * scale if issparse(rows) else None, self.rank)
        total = max(float(variance.sum()), 1e-30)
        self.axes_: Floats = (scale[:, None] * axes / np.sqrt(total)).astype(np.float32)
        return self

    def transform(self, X: Matrix) -> Floats:
        """Return coordinates of every row along the axes, shape (n_rows, rank)."""
        if issparse(X):
            return np.asarray(X @ self.axes_ - self.mean_ @ self.axes_, dtype=np.float32)
        return (X - self.mean_) @ self.axes_


class KernelAxes(BaseEstimator):
    """Principal axes of a Gaussian kernel of the rows, approximated by some of them.

    The width of the kernel is the median distance between rows.

    Parameters
    ----------
    n_landmarks : int, default=800
        Number of rows that all others are compared with (Nyström's method).
    rank : int, default=400
        Maximum number of axes.
    random_state : int or RandomState, optional
        Random seed for choosing these rows.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_landmarks": [at_least(1)],
        "rank": [at_least(1)],
        "random_state": ["random_state"],
    }

    def __init__(
        self, *, n_landmarks: int = 800, rank: int = 400, random_state: RandomState = None
    ) -> None:
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.random_state = random_state

    def fit(self, X: Floats) -> Self:
        """Learn the axes from dense rows."""
        rng = check_random_state(self.random_state)
        self.landmarks_: Floats = sample_rows(X, self.n_landmarks, rng)
        apart = euclidean_distances(self.landmarks_, squared=True)
        apart = apart[np.triu_indices_from(apart, k=1)]
        middle = float(np.median(apart[apart > 0])) if (apart > 0).any() else 1.0
        self.gamma_ = 1.0 / middle
        near = rbf_kernel(self.landmarks_, gamma=self.gamma_).astype(np.float64)
        value, vector = strongest(near, self.rank)
        whiten = vector / np.sqrt(value)
        rows = self._near(sample_rows(X, SAMPLE, rng)) @ whiten
        turned = PrincipalAxes(standardize=False, rank=self.rank).fit(rows)
        self.axes_: Floats = (whiten @ turned.axes_).astype(np.float32)
        self.offset_: Floats = (turned.mean_ @ turned.axes_).astype(np.float32)
        return self

    def transform(self, X: Floats) -> Floats:
        """Return coordinates of every row along the axes, shape (n_rows, rank)."""
        return self._near(X) @ self.axes_ - self.offset_

    def _near(self, X: Floats) -> Floats:
        if not len(X):
            return np.zeros((0, len(self.landmarks_)), dtype=np.float32)
        return rbf_kernel(X, self.landmarks_, gamma=self.gamma_)


def as_rows(X: FeaturesLike) -> Matrix:
    """Return features as single-precision rows, sparse if they are; dense ones are not copied."""
    if issparse(X):
        return csr_array(as_features(X).source, dtype=np.float32)
    features = as_features(X)
    whole = isinstance(features.source, torch.Tensor) and features.order is None
    rows = features.source if whole else features.table()
    return rows.float().flatten(1).cpu().numpy()


def identify(X: Matrix) -> Floats:
    """Return a nearly unique number for each row, wherever it stands."""
    key: Floats = X @ np.cos(np.arange(X.shape[1])).astype(np.float32)
    return key


def sample_rows(X: Matrix, size: int, random_state: RandomState) -> Matrix:
    """Return at most ``size`` random rows, in order."""
    if X.shape[0] <= size:
        return X
    chosen = check_random_state(random_state).choice(X.shape[0], size, replace=False)
    return X[np.sort(chosen)]


def spread(rows: Matrix) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of every feature."""
    if issparse(rows):
        mean, variance = mean_variance_axis(rows.astype(np.float64), axis=0)
    else:
        mean = rows.mean(axis=0, dtype=np.float64)
        variance = rows.var(axis=0, dtype=np.float64)
    rounding = variance <= (1e-6 * np.abs(mean)) ** 2  # rounding error of a constant feature
    return mean.astype(np.float32), np.sqrt(np.where(rounding, 0, variance)).astype(np.float32)


def axes_by_columns(rows: Matrix, mean: Floats | None, rank: int) -> tuple[Floats, Floats]:
    """Return principal axes and variances from products of columns; ``mean`` is subtracted."""
    moments = rows.T @ rows / rows.shape[0]
    moments = np.asarray(moments.todense() if issparse(moments) else moments, dtype=np.float64)
    if mean is not None:
        moments -= np.outer(mean, mean)
    variance, axes = strongest(moments, rank)
    return axes, variance


def axes_by_rows(rows: Matrix, mean: Floats | None, rank: int) -> tuple[Floats, Floats]:
    """Do the same from products of rows, for more columns than rows."""
    products = rows @ rows.T / rows.shape[0]
    products = np.asarray(products.todense() if issparse(products) else products, dtype=np.float64)
    if mean is not None:  # center both rows and columns
        products -= products.mean(axis=0)
        products -= products.mean(axis=1, keepdims=True)
    variance, vector = strongest(products, rank)
    axes = rows.T @ vector
    if mean is not None:
        axes -= np.outer(mean, vector.sum(axis=0))
    return axes / np.sqrt(np.maximum(variance, 1e-30) * rows.shape[0]), variance


def strongest(matrix: Floats, rank: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues of a symmetric matrix, with vectors; at least one."""
    size = len(matrix)
    value, vector = eigh(matrix, subset_by_index=[max(size - rank, 0), size - 1])
    kept = value > max(FAINT * value[-1], 0.0)
    kept[-1] = True
    return np.maximum(value[kept], 0.0), vector[:, kept]
