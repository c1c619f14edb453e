"""CATD: weights that account for how little is known about a worker."""

import numpy as np
from scipy.special import gammaincinv

from crowdwise.base import DEVICES, RepeatedVote, at_least, between, more_than
from crowdwise.typing import Floats


class CATD(RepeatedVote):
    """Infer truths by votes in which workers with few labels are trusted cautiously.

    A worker's weight is one over the upper end of a confidence interval of the error
    variance, so of two workers with the same error rate the one with more labels counts more.

    Parameters
    ----------
    significance : float, default=0.05
        One minus the level of the confidence interval (alpha). Smaller values are more cautious
        about workers with few labels; at 0 all workers count equally.
    smoothing : float, default=0.01
        Errors added to each worker's, so that one who never disagreed has a finite weight.
        The smaller it is, the more such workers overrule others, however few labels they gave.
    max_iter : int, default=100
        Maximum number of rounds of voting and weighing; they end once the weights are stable.
    device : str, optional
        "cuda" or "cuda:1" to sweep on a GPU (needs PyTorch), "cpu" for the same code without
        one; by default in compiled code on this machine's cores.

    Attributes
    ----------
    weights_ : ndarray of shape (n_workers,)
        Weight of each worker.
    skills_ : Series
        Share of each worker's labels that agree with the previous vote, or with gold. A label
        that is one of ``m`` tied for the lead agrees by ``1 / m``.
    n_iter_ : int
        Number of rounds.

    Notes
    -----
    The maths::

        weight[w]
            = chi2 quantile(significance / 2, labels of w) / (disagreements of w + smoothing)
        truth[i] = argmax over k of sum over w of weight[w] * [w gave i the label k]

    Works when a few workers give most labels and many give a handful: a worker with a handful
    of labels is not trusted for agreeing on those.

    Fails when the most active workers are poor, since they gain weight with their number of
    labels; and when workers favor a class.

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
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        significance: float = 0.05,
        smoothing: float = 0.01,
        max_iter: int = 100,
        device: str | None = None,
    ) -> None:
        self.significance = significance
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.device = device

    def _weigh(self, agreed: Floats, given: Floats) -> Floats:
        return cautious_weights(given - agreed + self.smoothing, given, self.significance)


def cautious_weights(errors: Floats, given: Floats, significance: float) -> Floats:
    """Return workers' weights: the ``significance / 2`` quantile of chi-squared over errors."""
    freedom = np.maximum(given, np.finfo(np.float64).tiny)  # without labels, no weight
    return 2.0 * gammaincinv(freedom / 2.0, significance / 2.0) / errors
