"""Iterative weighted majority vote: weights that grow from chance."""

from crowdwise.base import DEVICES, RepeatedVote, at_least
from crowdwise.base.weighted_vote import agreement_rate
from crowdwise.typing import Floats


class IWMV(RepeatedVote):
    """Infer truths by votes in which workers count by how far they are above chance.

    With ``K`` classes, a worker whose labels agree with the previous vote by a share ``a``
    has weight ``K * a - 1`` in the next: none at chance, and a negative one below it. This is
    a first-order approximation of the log-odds that would be optimal for even errors.

    Parameters
    ----------
    max_iter : int, default=100
        Maximum number of rounds of voting and weighing; they end once the weights are stable,
        usually within ten.
    device : str, optional
        "cuda" or "cuda:1" to sweep on a GPU (needs PyTorch), "cpu" for the same code without
        one; by default in compiled code on this machine's cores.

    Attributes
    ----------
    weights_ : ndarray of shape (n_workers,)
        Weight of each worker; negative for one who is mostly wrong.
    skills_ : Series
        Share of each worker's labels that agree with the previous vote, or with gold. A label
        that is one of ``m`` tied for the lead agrees by ``1 / m``.
    n_iter_ : int
        Number of rounds.

    Notes
    -----
    The maths::

        weight[w] = K * (share of w's labels that agree with the vote) - 1

    Works when a fast and simple method is wanted that beats majority vote: unsystematic
    errors, three labels per task or more.

    Fails when the majority is wrong for whole classes, since weights start from it; and when
    workers favor a class.

    References
    ----------
    Li and Yu (2014). Error rate bounds and iterative weighted majority voting for
    crowdsourcing. doi:10.48550/arXiv.1411.4086

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [-1, -1, 0]]  # tasks x workers
    >>> IWMV().fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    _parameter_constraints = {
        "max_iter": [at_least(1)],
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        max_iter: int = 100,
        device: str | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.device = device

    def _weigh(self, agreed: Floats, given: Floats) -> Floats:
        return above_chance(agreement_rate(agreed, given), len(self.classes_))


def above_chance(agreement: Floats, n_classes: int) -> Floats:
    """Return workers' weights (their algorithm 1): 0 at chance, K - 1 for one who never errs."""
    return n_classes * agreement - 1.0
