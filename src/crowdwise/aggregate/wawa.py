"""Wawa: worker agreement with aggregate, then a weighted vote."""

from crowdwise.base import DEVICES, LiveUpdates, RepeatedVote, at_least
from crowdwise.base.weighted_vote import agreement_rate
from crowdwise.errors import ParameterError, explain
from crowdwise.inference import MemoryEngine, Sums, clamp, share_best
from crowdwise.inference.engines import CoinSums
from crowdwise.typing import Floats


class Wawa(RepeatedVote):
    """Infer truths by a vote in which workers count by their agreement with the majority.

    A majority vote gives first labels, the share of a worker's labels that agree with them
    is the worker's weight, and a weighted vote gives the result.

    Parameters
    ----------
    max_iter : int, default=1
        Rounds of weighing workers and voting again. With more than one, workers' agreement with
        the previous weighted vote is used; rounds end early once the weights have settled.
    device : str, optional
        "cuda" or "cuda:1" to sweep on a GPU (needs PyTorch), "cpu" for the same code without
        one; by default in compiled code on this machine's cores.

    Attributes
    ----------
    weights_ : ndarray of shape (n_workers,)
        Weight of each worker; the same as ``skills_``.
    skills_ : Series
        Share of each worker's labels that agree with the previous vote, or with gold. A label
        that is one of ``m`` tied for the lead agrees by ``1 / m``.
    n_iter_ : int
        Number of rounds.

    Notes
    -----
    The maths::

        weight[w] = share of w's labels that agree with the majority
        truth[i] = argmax over k of sum over w of weight[w] * [w gave i the label k]

    Works when a weighted vote has to be explained in one sentence, and the majority is mostly
    right.

    Fails when there are many spammers, since at chance a worker still has weight 1 / K or more;
    and when the majority is wrong about a class.

    References
    ----------
    Appen (2021). Calculating worker agreement with aggregate (Wawa).
    https://success.appen.com/hc/en-us/articles/202703205

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, -1, 0]]  # tasks x workers
    >>> Wawa().fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    _updates = LiveUpdates()
    _parameter_constraints = {
        "max_iter": [at_least(1)],
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        max_iter: int = 1,
        device: str | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.device = device

    def _weigh(self, agreed: Floats, given: Floats) -> Floats:
        return agreement_rate(agreed, given)

    def _learn(self, sums: Sums, crowd: Floats) -> None:
        if self.max_iter > 1:
            raise ParameterError(
                explain(
                    f"Wawa(max_iter={self.max_iter}) cannot be updated: only one round can.",
                    fix="use max_iter=1, or fit again",
                )
            )
        coins = CoinSums.of(sums)
        self.weights_ = self.agreement_ = agreement_rate(coins.right, coins.given)

    def _count(self, engine: MemoryEngine, posterior: Floats) -> Floats:
        return share_best(clamp(engine.shares(), engine.gold))
