"""Intervals: how far a figure may be from the one that more data would give."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import betaincinv, ndtr, ndtri
from sklearn.utils import check_random_state

from crowdwise.errors import ParameterError
from crowdwise.typing import Array, Floats, RandomState

MOST_UNITS = 4096  # more rows than this are resampled in groups
MOST_CELLS = 1 << 24  # numbers held at once
NAN = float("nan")


class IntervalSettings(TypedDict, total=False):
    """Settings of intervals; see :func:`bootstrap`."""

    n_resamples: int
    confidence: float
    random_state: RandomState


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, and the number of tasks it is based on.

    Attributes
    ----------
    value, low, high : float
        The number and its interval; NaN if there is none.
    n_tasks : int
        Number of tasks used.
    note : str
        Why there is no number, or something to know about it, such as the order of classes.
    """

    value: float
    low: float = NAN
    high: float = NAN
    n_tasks: int = 0
    note: str = ""

    def __float__(self) -> float:
        return float(self.value)


def bootstrap(
    rows: Floats | csr_array,
    statistic: Callable[[Floats], Floats],
    *,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> tuple[float, float]:
    """Return a bootstrap interval of a statistic of column sums, resampling rows.

    The interval is Efron's bias-corrected and accelerated one (BCa). Agreement is bounded
    and skewed, and plain percentiles miss the truth more often: in simulations with 20 tasks
    and rare classes, 95% intervals of kappa covered it in 89% of cases, BCa's in 92%. The
    sums without each row are available anyway, so the correction costs next to nothing.

    Rows beyond 4,096 are first summed into that many random groups, and the groups are
    resampled. The spread of the sums stays the same, with an error of about 1%.

    Parameters
    ----------
    rows : array or sparse array of shape (n, n_columns)
        The contribution of each task to the sums.
    statistic : callable
        Takes sums of shape (m, n_columns) and returns m values, NaN where undefined.
    n_resamples : int, default=1000
        Number of resamples; 0 for no interval.
    confidence : float, default=0.95
        Coverage of the interval.
    random_state : int or RandomState, default=0
        Random seed.

    References
    ----------
    Efron (1987). Better bootstrap confidence intervals. JASA 82(397).
    doi:10.1080/01621459.1987.10478410
    """
    check_interval(n_resamples, confidence)
    if not n_resamples or rows.shape[0] < 2:
        return NAN, NAN
    rng = check_random_state(random_state)
    rows = group_rows(rows, min(MOST_UNITS, max(MOST_CELLS // rows.shape[1], 200)), rng)
    value = float(statistic(rows.sum(axis=0, keepdims=True))[0])
    draws = draw_resamples(rows.shape[0], rows.shape[1], n_resamples, rng)
    drawn = np.concatenate([statistic(weights @ rows) for weights in draws])
    drawn = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or not len(drawn):
        return NAN, NAN
    if np.ptp(drawn) < 1e-12:
        return value, value
    left_out = statistic(rows.sum(axis=0) - rows)
    low, high = np.quantile(drawn, bca_levels(value, drawn, left_out, confidence))
    return float(low), float(high)


def bca_levels(value: float, drawn: Floats, left_out: Floats, confidence: float) -> Floats:
    """Return the quantiles of the resampled values that bound the interval."""
    below = (np.sum(drawn < value) + 0.5 * np.sum(drawn == value)) / len(drawn)
    bias = ndtri(np.clip(below, 0.5 / len(drawn), 1 - 0.5 / len(drawn)))
    pull = left_out[np.isfinite(left_out)]
    pull = pull.mean() - pull
    spread = np.sum(pull**2) ** 1.5
    skew = np.sum(pull**3) / (6 * spread) if spread > 0 else 0.0
    tails = bias + ndtri(np.array([0.5 - confidence / 2, 0.5 + confidence / 2]))
    levels: Floats = ndtr(bias + tails / np.maximum(1 - skew * tails, 1e-3))
    return levels


def group_rows(rows: Floats | csr_array, most: int, rng: np.random.RandomState) -> Floats:
    """Sum the rows in at most this many random groups of similar size, as a dense array."""
    n = rows.shape[0]
    table = csr_array(rows)
    if n <= most:
        return table.toarray()
    group = rng.permutation(n) * most // n
    membership = csr_array((np.ones(n), (group, np.arange(n))), shape=(most, n))
    return (membership @ table).toarray()


def draw_resamples(
    n: int, width: int, n_resamples: int, rng: np.random.RandomState
) -> Iterator[Floats]:
    """Draw how often each of ``n`` rows occurs, in blocks of shape (resamples, n)."""
    at_once = max(MOST_CELLS // max(4 * n, width), 1)
    for done in range(0, n_resamples, at_once):
        size = min(at_once, n_resamples - done)
        cell = rng.randint(0, n, (size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(cell.reshape(-1), minlength=size * n)
        yield times.reshape(size, n).astype(np.float64)


def wilson(right: ArrayLike, total: ArrayLike, confidence: float = 0.95) -> tuple[Array, Array]:
    """Return Wilson's interval of a share, from counts; 0 to 1 if the total is 0.

    References
    ----------
    Wilson (1927). Probable inference, the law of succession, and statistical inference.
    JASA 22(158). doi:10.1080/01621459.1927.10502953

    Examples
    --------
    >>> low, high = wilson(9, 10)
    >>> print(f"{low:.2f} to {high:.2f}")
    0.60 to 0.98
    """
    check_interval(0, confidence)
    right, total = np.asarray(right, dtype=np.float64), np.asarray(total, dtype=np.float64)
    z2 = ndtri(0.5 + confidence / 2) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(total > 0, right / total, 0.5)
        half = np.sqrt(z2 * (share * (1 - share) * total + z2 / 4)) / (total + z2)
    middle = (share * total + z2 / 2) / (total + z2)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def credible(right: ArrayLike, total: ArrayLike, confidence: float = 0.95) -> tuple[Array, Array]:
    """Return the interval of a share under Jeffreys' prior; counts need not be whole numbers.

    Near 0 and 1 it is widened to include the share itself.

    References
    ----------
    Brown, Cai and DasGupta (2001). Interval estimation for a binomial proportion. Statistical
    Science 16(2). doi:10.1214/ss/1009213286
    """
    right, total = np.asarray(right, dtype=np.float64), np.asarray(total, dtype=np.float64)
    a, b = right + 0.5, np.maximum(total - right, 0) + 0.5
    low, high = betaincinv(a, b, 0.5 - confidence / 2), betaincinv(a, b, 0.5 + confidence / 2)
    share = np.divide(right, total, out=np.full(a.shape, 0.5), where=total > 0).clip(0.0, 1.0)
    return np.minimum(low, share), np.maximum(high, share)


def normal(value: float, error: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of a number with a known standard error."""
    half = float(ndtri(0.5 + confidence / 2)) * error
    return value - half, value + half


def check_interval(n_resamples: int, confidence: float) -> None:
    """Refuse invalid interval settings."""
    if n_resamples < 0:
        raise ParameterError(
            f"n_resamples={n_resamples} is too small.\n  expected: 0 or more"
            "\n  fix:      give n_resamples=0 for no interval"
        )
    if not 0 < confidence < 1:
        raise ParameterError(
            f"confidence={confidence} is out of range.\n  expected: between 0 and 1, such as 0.95"
            "\n  fix:      give confidence=0.95"
        )
