"""What weighted votes share: agreement with a vote, rounds of voting, and their shares."""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from crowdwise import progress
from crowdwise.base.aggregator import Aggregator, by_worker
from crowdwise.base.traits import Traits
from crowdwise.inference.engines.engine import CELL, Engine, Posterior
from crowdwise.typing import Floats

SETTLED = 1e-9  # a round that moves every weight by less than this share of the largest is the last


class WeightedVote(Aggregator):
    """A method whose workers have ``weights_`` in a vote, by how often they agree with it.

    The probability of a class is its share of the weight.
    """

    _axes = {**Aggregator._axes, "weights_": ("workers_",), "agreement_": ("workers_",)}
    traits = Traits(learns_from_gold=True, compact=True)
    weights_: Floats
    agreement_: Floats

    @property
    def skills_(self) -> pd.Series:
        """Share of each worker's labels that agree with the vote."""
        check_is_fitted(self)
        return by_worker(self.agreement_, self.workers_)

    def _posterior(self, engine: Engine) -> Posterior:
        return engine.signed_shares(self.weights_)

    def _memory(self, engine: Engine) -> int:
        return super()._memory(engine) + CELL * engine.n_workers * engine.n_classes**2

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"weights_": self.weights_}


class RepeatedVote(WeightedVote):
    """A vote that counts all workers the same, then votes by their agreement with the last.

    A method file fills in ``_weigh``. Rounds end after ``max_iter`` of them, or once the
    weights have settled.
    """

    max_iter: int

    @abstractmethod
    def _weigh(self, agreed: Floats, given: Floats) -> Floats:
        """Weight of workers who gave so many labels, of which so many agreed."""

    def _fit(self, engine: Engine) -> Posterior:
        weights, self.n_iter_ = np.ones(engine.n_workers), 0
        name = f"{type(self).__name__}, at most"
        for _ in progress.track(range(self.max_iter), name):
            before, self.n_iter_ = weights, self.n_iter_ + 1
            agreed, given = count_agreement(engine, before)
            weights = self._weigh(agreed, given)
            if have_settled(before, weights):
                break
        self.weights_, self.agreement_ = weights, agreement_rate(agreed, given)
        return self._posterior(engine)


def count_agreement(engine: Engine, weights: Floats) -> tuple[Floats, Floats]:
    """How many labels of each worker agree with the weighted vote, and how many there are.

    A label that is one of ``m`` tied for the lead agrees by ``1 / m``. Where the truth is
    known, it takes the vote's place.
    """
    scaled = weights / max(np.abs(weights).max(), np.finfo(np.float64).tiny)
    votes = np.zeros(engine.n_classes), scaled, np.zeros_like(scaled)
    sums = engine.sweep_coins(*votes, hard=True)
    return sums.right, sums.given


def agreement_rate(agreed: Floats, given: Floats) -> Floats:
    """Agreed / given; the whole crowd's share for a worker who gave no label."""
    crowd = np.full_like(given, agreed.sum() / given.sum())
    return np.divide(agreed, given, out=crowd, where=given > 0)


def have_settled(before: Floats, after: Floats) -> bool:
    """Whether a round left the weights where they were."""
    return bool((np.abs(after - before) <= SETTLED * np.abs(after).max()).all())
