"""Calibration: whether confidence matches accuracy."""

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from crowdwise.errors import ParameterError
from crowdwise.evaluate.intervals import Estimate, check_interval, normal, wilson
from crowdwise.evaluate.truth_alignment import (
    Predictions,
    Truths,
    align_predictions,
    correct_shares,
    keep_known,
)
from crowdwise.typing import Floats, Ints

BINS = ("mass", "width")


def reliability_table(
    predicted: Predictions,
    truth: Truths,
    *,
    n_bins: int = 10,
    bins: str = "mass",
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Compare confidence with accuracy, in bins of confidence.

    Parameters
    ----------
    predicted, truth
        As for :func:`crowdwise.evaluate.score`; confidence is the largest probability.
    n_bins : int, default=10
        Number of bins; fewer if many tasks have the same confidence.
    bins : {"mass", "width"}, default="mass"
        Whether bins hold equal numbers of tasks or have equal widths.
    confidence : float, default=0.95
        Coverage of the (Wilson) interval around each accuracy.

    Returns
    -------
    DataFrame
        One row per nonempty bin: from, to, n_tasks, confidence, accuracy, low, high.

    Examples
    --------
    >>> import pandas as pd
    >>> proba = pd.DataFrame({"no": [0.9, 0.8, 0.6, 0.3], "yes": [0.1, 0.2, 0.4, 0.7]})
    >>> table = reliability_table(proba, {0: "no", 1: "no", 2: "yes", 3: "yes"}, n_bins=2)
    >>> table[["n_tasks", "confidence", "accuracy"]].round(2).values.tolist()
    [[2.0, 0.65, 0.5], [2.0, 0.85, 1.0]]
    """
    known = align_predictions(predicted, truth)
    edges = bin_edges(known.posterior.max(axis=1), n_bins, bins)
    size, trust, right = bin_rows(known.posterior, known.truth, edges).sum(axis=0).reshape(3, -1)
    held = size > 0
    low, high = wilson(right[held], size[held], confidence)
    columns = {
        "from": edges[:-1][held],
        "to": edges[1:][held],
        "n_tasks": size[held].astype(np.int64),
        "confidence": trust[held] / size[held],
        "accuracy": right[held] / size[held],
        "low": low,
        "high": high,
    }
    return pd.DataFrame(columns).rename_axis(index="bin")


def expected_calibration_error(
    posterior: Floats, truth: Ints, *, n_bins: int = 10, bins: str = "mass"
) -> float:
    """Compute the mean gap between confidence and accuracy over bins, weighted by tasks.

    It is biased upward: a perfectly calibrated model scores above 0 when bins hold few tasks.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015). Obtaining well calibrated probabilities using
    Bayesian binning. AAAI. doi:10.1609/aaai.v29i1.9602
    """
    posterior, truth = keep_known(posterior, truth)
    edges = bin_edges(posterior.max(axis=1), n_bins, bins)
    return float(calibration_error(bin_rows(posterior, truth, edges).sum(axis=0)[None])[0])


def bin_edges(trust: Floats, n_bins: int, bins: str) -> Floats:
    """Return the edges of the bins of confidence."""
    if bins not in BINS:
        raise ParameterError(
            f"bins={bins!r} is unknown.\n  expected: {', '.join(BINS)}"
            "\n  fix:      leave bins out for bins of equal width"
        )
    if n_bins < 1:
        raise ParameterError(
            f"n_bins={n_bins} is too small.\n  expected: 1 or more"
            "\n  fix:      leave bins out for bins of equal width"
        )
    steps = np.linspace(0, 1, n_bins + 1)
    if bins == "width":
        return steps
    edges = np.unique(np.quantile(trust, steps, method="inverted_cdf"))
    return np.array([0.0, *edges[1:-1], 1.0])


def bin_rows(posterior: Floats, truth: Ints, edges: Floats) -> csr_array:
    """Return for each task, in the columns of its bin, 1, its confidence, and its correctness."""
    trust = posterior.max(axis=1)
    n_bins, n_tasks = len(edges) - 1, len(trust)
    place = np.clip(np.searchsorted(edges, trust, side="left") - 1, 0, n_bins - 1)
    column = place[:, None] + n_bins * np.arange(3)
    cells = np.column_stack([np.ones(n_tasks), trust, correct_shares(posterior, truth)])
    indptr = 3 * np.arange(n_tasks + 1)
    return csr_array((cells.reshape(-1), column.reshape(-1), indptr), shape=(n_tasks, 3 * n_bins))


def calibration_error(sums: Floats) -> Floats:
    """Compute the gap between confidence and accuracy from the sums of :func:`bin_rows`."""
    size, trust, right = np.split(sums, 3, axis=1)
    return np.abs(trust - right).sum(axis=1) / size.sum(axis=1)


def confidence_auroc(posterior: Floats, truth: Ints, confidence: float = 0.95) -> Estimate:
    """Estimate the chance that a correct label has more confidence than a wrong one.

    The interval comes from the influence of each task and equals DeLong's when no task is
    tied. A task with tied labels is partly correct and partly wrong.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988). Comparing the areas under two or more
    correlated receiver operating characteristic curves. Biometrics 44(3). doi:10.2307/2531595
    """
    check_interval(0, confidence)
    posterior, truth = keep_known(posterior, truth)
    trust, right = posterior.max(axis=1), correct_shares(posterior, truth)
    wrong = 1 - right
    n_right, n_wrong = right.sum(), wrong.sum()
    if min(n_right, n_wrong) < 1e-9:
        what = "correct" if n_right else "wrong"
        return Estimate(np.nan, n_tasks=len(truth), note=f"Every label is {what}.")
    wrong_below, right_above = _below(trust, wrong), n_right - _below(trust, right)
    area = float((right * wrong_below).sum() / (n_right * n_wrong))
    pull = (right * wrong_below + wrong * right_above) / (n_right * n_wrong)
    influence = pull - area * (right / n_right + wrong / n_wrong)
    low, high = normal(area, float(np.sqrt(np.sum(influence**2))), confidence)
    return Estimate(area, max(low, 0.0), min(high, 1.0), len(truth))


def _below(trust: Floats, weight: Floats) -> Floats:
    """Return the weight of the tasks below each one's confidence, plus half of its ties."""
    _, level = np.unique(trust, return_inverse=True)
    at = np.bincount(level, weight)
    return (np.cumsum(at) - at / 2)[level]
