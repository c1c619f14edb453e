"""Features that separate the classes, and the difficulty of tasks that follows from them."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from crowdwise.errors import ParameterError, explain
from crowdwise.typing import Floats, Ints, RandomState


def class_features(
    truth: ArrayLike,
    n_features: int = 10,
    *,
    separation: float = 2.0,
    bend: float = 0.0,
    n_factors: int | None = None,
    noise: float = 0.5,
    random_state: RandomState = None,
) -> Floats:
    """Draw features of tasks with known truth, shape (n_tasks, n_features).

    A few hidden factors, normal around a center for each class, are mixed into many
    features, so that these are correlated like measured ones.

    Parameters
    ----------
    truth : array of shape (n_tasks,)
        Class numbers.
    n_features : int, default=10
        Number of features.
    separation : float, default=2
        Distance between the centers of two classes, in standard deviations of the factors:
        0 carries no information, and the best classifier of two equally frequent classes is
        right with probability Phi(separation / 2) before ``noise``.
    bend : float, default=0
        Splits each class into two clusters, this far to either side of its center, which
        linear classifiers cannot use.
    n_factors : int, optional
        Number of factors, at least twice the number of classes; by default that, but no fewer
        than 10.
    noise : float, default=0.5
        Standard deviation of each feature's own noise.
    random_state : int or RandomState, optional
        Random seed.

    Examples
    --------
    >>> class_features([0, 1, 1, 2], n_features=5, random_state=0).shape
    (4, 5)
    """
    rng = check_random_state(random_state)
    codes = np.asarray(truth)
    n_tasks, n_classes = len(codes), int(codes.max()) + 1
    n_factors = max(2 * n_classes, 10) if n_factors is None else n_factors
    if n_features < 1 or n_factors < 2 * n_classes:
        raise ParameterError(
            explain(
                f"n_features={n_features} and n_factors={n_factors} do not fit together.",
                expected=f"1 or more features, {2 * n_classes} or more factors",
                fix="give more features or factors",
            )
        )
    factors = rng.standard_normal((n_tasks, n_factors))
    rows = np.arange(n_tasks)
    factors[rows, codes] += separation / np.sqrt(2)  # corners of a simplex
    factors[rows, n_classes + codes] += bend * rng.choice([-1, 1], size=n_tasks)
    mixing = rng.standard_normal((n_factors, n_features)) / np.sqrt(n_factors)
    return factors @ mixing + noise * rng.standard_normal((n_tasks, n_features))


def margin_difficulty(X: ArrayLike, truth: ArrayLike, *, spread: float = 0.5) -> Floats:
    """Return difficulties of tasks that follow from their features, shape (n_tasks,).

    A task is hard if it is not much closer to the center of its own class than to the next
    one. The logarithm has mean 0 and standard deviation ``spread``.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.9], [2.0], [2.2]]
    >>> margin_difficulty(X, [0, 0, 0, 1, 1]).argmax()  # the one in the middle
    np.int64(2)
    """
    table = np.asarray(X, dtype=np.float64)
    classes, number = np.unique(np.asarray(truth), return_inverse=True)
    if spread < 0:
        raise ParameterError(
            f"The spread of difficulties is {spread}.\n  expected: 0 or more"
            "\n  fix:      give 0 for equally hard tasks"
        )
    if len(classes) < 2:
        raise ParameterError(
            "All tasks are of one class.\n  expected: at least two classes"
            "\n  fix:      draw more tasks, or even shares of the classes"
        )
    own, other = center_distances(table, number)
    margin = other - own
    return np.exp(-spread * (margin - margin.mean()) / max(margin.std(), 1e-12))


def center_distances(X: Floats, number: Ints) -> tuple[Floats, Floats]:
    """Return each task's distance to the center of its class, and to the next center."""
    count = np.bincount(number)
    centers = np.zeros((len(count), X.shape[1]))
    np.add.at(centers, number, X)
    centers /= count[:, None]
    square = (X**2).sum(axis=1)[:, None] - 2 * X @ centers.T + (centers**2).sum(axis=1)
    distance = np.sqrt(np.maximum(square, 0))
    own = np.take_along_axis(distance, number[:, None], axis=1)[:, 0]
    np.put_along_axis(distance, number[:, None], np.inf, axis=1)
    return own, distance.min(axis=1)
