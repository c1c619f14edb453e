"""What weighted votes share: agreement with a vote, rounds of voting, and their shares."""

from abc import abstractmethod
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.annotations.cells import count_votes, normalize_votes
from crowdwise.base.aggregator import Aggregator, Traits, by_worker
from crowdwise.inference.simplex import gold_mask
from crowdwise.inference.sweep import em_pass
from crowdwise.typing import Array, Floats, Ints

SETTLED = 1e-9  # a round that moves every weight by less than this share of the largest is the last


class WeightedVote(Aggregator):
    """A method whose workers have ``weights_`` in a vote, by how often they agree with it.

    The probability of a class is its share of the weight.
    """

    traits = Traits(learns_from_gold=True)
    _per_worker = ("weights_",)
    weights_: Floats
    agreement_: Floats

    @property
    def skills_(self) -> pd.Series:
        """Share of each worker's labels that agree with the vote."""
        check_is_fitted(self)
        return by_worker(self.agreement_, self.workers_)

    def _posterior(self, annotations: Annotations) -> Floats:
        return vote_shares(annotations, self.weights_)


class RepeatedVote(WeightedVote):
    """A vote that counts all workers the same, then votes by their agreement with the last.

    A method file fills in ``_weigh``. Rounds end after ``max_iter`` of them, or once the
    weights have settled.
    """

    max_iter: int

    @abstractmethod
    def _weigh(self, agreed: Floats, given: Floats) -> Floats:
        """Weight of workers who gave so many labels, of which so many agreed."""

    def _fit(self, annotations: Annotations, gold: Ints | None) -> Floats:
        mask = gold_mask(gold, annotations.n_classes)
        weights, self.n_iter_ = np.ones(annotations.n_workers), 0
        for _ in range(self.max_iter):
            before, self.n_iter_ = weights, self.n_iter_ + 1
            agreed, given = agreement(annotations, before, mask)
            weights = self._weigh(agreed, given)
            if settled(before, weights):
                break
        self.weights_, self.agreement_ = weights, share(agreed, given)
        return self._posterior(annotations)


def agreement(
    annotations: Annotations, weights: Floats, mask: Floats | None = None
) -> tuple[Floats, Floats]:
    """How many labels of each worker agree with the weighted vote, and how many there are.

    A label that is one of ``m`` tied for the lead agrees by ``1 / m``. Where the truth is
    known, by the mask of :func:`gold_mask`, it takes the vote's place.
    """
    n_classes = annotations.n_classes
    scaled = weights / max(np.abs(weights).max(), np.finfo(np.float64).tiny)
    table = scaled[:, None, None] * np.eye(n_classes)  # (worker, truth, label)
    step = em_pass(annotations.cells, np.zeros(n_classes), table, offset=mask, hard=True)
    return np.einsum("wkk->w", step.counts), step.counts.sum(axis=(1, 2))


def share(agreed: Floats, given: Floats) -> Floats:
    """Agreed / given; the whole crowd's share for a worker who gave no label."""
    crowd = np.full_like(given, agreed.sum() / given.sum())
    return np.divide(agreed, given, out=crowd, where=given > 0)


def settled(before: Floats, after: Floats) -> Array:
    """Whether a round left the weights where they were."""
    return (np.abs(after - before) <= SETTLED * np.abs(after).max()).all()


def vote_shares(annotations: Annotations, weights: Floats) -> Floats:
    """Share of the weight that speaks for each class.

    A negative weight speaks for all classes but the label; that lifts all classes of a task
    alike, so the winner is that of the plain weighted sum. Where all workers of a task
    weigh nothing, they count the same.
    """
    own = weights[annotations.worker]
    if annotations.weight is not None:
        own = own * annotations.weight
    votes = count_votes(replace(annotations, weight=own))  # (task, class)
    if (weights < 0).any():
        against = np.bincount(annotations.task, np.minimum(own, 0.0), annotations.n_tasks)
        votes = np.maximum(votes - against[:, None], 0.0)
    light = votes.sum(axis=1) <= 0
    if light.any():
        votes[light] = annotations[light].votes()
    return normalize_votes(votes)
