"""The shared part of weighted votes: agreement with a vote, rounds of voting, and shares."""

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

SETTLED = 1e-9  # rounds end once every weight moves by less than this share of the largest


class WeightedVote(Aggregator):
    """A method whose workers have ``weights_`` in a vote, by how often they agree with it.

    The probability of a class is its share of the total weight.
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
    """A vote that first counts all workers equally, then by their agreement with the last vote.

    A method implements ``_weigh``. There are at most ``max_iter`` rounds, or fewer if the
    weights settle before.
    """

    max_iter: int

    @abstractmethod
    def _weigh(self, agreed: Floats, given: Floats) -> Floats:
        """Return the weights of workers, given how many of their labels agreed."""

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
    """Count each worker's labels that agree with the weighted vote, and all labels.

    A label that is one of ``m`` tied for the lead agrees by ``1 / m``. A known truth
    replaces the vote.
    """
    scaled = weights / max(np.abs(weights).max(), np.finfo(np.float64).tiny)
    votes = np.zeros(engine.n_classes), scaled, np.zeros_like(scaled)
    sums = engine.sweep_coins(*votes, hard=True)
    return sums.right, sums.given


def agreement_rate(agreed: Floats, given: Floats) -> Floats:
    """Return agreed / given; the whole crowd's share for a worker without labels."""
    crowd = np.full_like(given, agreed.sum() / given.sum())
    return np.divide(agreed, given, out=crowd, where=given > 0)


def have_settled(before: Floats, after: Floats) -> bool:
    """Return whether a round left the weights unchanged."""
    return bool((np.abs(after - before) <= SETTLED * np.abs(after).max()).all())
