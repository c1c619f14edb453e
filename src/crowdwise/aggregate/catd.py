"""CATD: weights that allow for how little is known of a worker."""

import numpy as np
from scipy.special import gammaincinv

from crowdwise.base import RepeatedVote, at_least, between, more_than
from crowdwise.typing import Floats


class CATD(RepeatedVote):
    """Infer truths by votes in which workers with few labels are trusted with care.

    A worker's weight is one over the upper end of a confidence interval of the error
    variance, so of two workers who err alike the one with more labels counts more.

    Parameters
    ----------
    significance : float, default=0.05
        One minus the level of the confidence interval (alpha). Smaller is more careful with
        workers who gave few labels; at 0 nobody is trusted more than another.
    smoothing : float, default=0.01
        Errors added to each worker's, so that one who never disagreed has a finite weight.
        The smaller, the more such workers overrule all others, however few labels they gave.
    max_iter : int, default=100
        Most rounds of voting and weighing; they end once the weights have settled.

    Attributes
    ----------
    weights_ : ndarray of shape (n_workers,)
        How much each worker counts.
    skills_ : Series
        Share of each worker's labels that agree with the vote before, or with gold. A label
        that is one of ``m`` tied for the lead agrees by ``1 / m``.
    n_iter_ : int
        Rounds taken.

    Notes
    -----
    The maths::

        weight[w]
            = chi2 quantile(significance / 2, labels of w) / (disagreements of w + smoothing)
        truth[i] = argmax over k of sum over w of weight[w] * [w gave i the label k]

    Works when a few workers give most labels and many give a handful: the handful is not
    trusted for a lucky start.

    Fails when the frequent workers are the poor ones, who gain weight by their number of
    labels; and when workers favour a class.

    References
    ----------
    Li, Li, Gao, Su, Zhao, Demirbas, Fan and Han (2014). A confidence-aware approach for
    truth discovery on long-tail data. PVLDB 8(4). doi:10.14778/2735496.2735505

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, -1, 0]]  # tasks x workers
    >>> CATD().fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    _parameter_constraints = {
        "significance": [between(0.0, 1.0)],
        "smoothing": [more_than(0.0)],
        "max_iter": [at_least(1)],
    }

    def __init__(
        self, *, significance: float = 0.05, smoothing: float = 0.01, max_iter: int = 100
    ) -> None:
        self.significance = significance
        self.smoothing = smoothing
        self.max_iter = max_iter

    def _weigh(self, agreed: Floats, given: Floats) -> Floats:
        return careful_weights(given - agreed + self.smoothing, given, self.significance)


def careful_weights(errors: Floats, given: Floats, significance: float) -> Floats:
    """Weight of a worker: the ``significance / 2`` quantile of chi-squared over the errors."""
    freedom = np.maximum(given, np.finfo(np.float64).tiny)  # without labels, no weight
    return 2.0 * gammaincinv(freedom / 2.0, significance / 2.0) / errors
