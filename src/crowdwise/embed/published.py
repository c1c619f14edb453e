"""Deviations of RLL's and NeuCrowd's published code, as parts for their recipes."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import Tensor

from crowdwise.base.params import at_least
from crowdwise.embed.confidence import MLE, Belief, Confidence
from crowdwise.embed.groups import Groups, GroupTasks, Pool, Sampler, Setting
from crowdwise.embed.hard_groups import (
    HardGroups,
    HardnessNet,
    HardSampler,
    SafeGroups,
    WrappedSampler,
    inner_sampler,
    largest,
    neighbor_support,
)
from crowdwise.typing import Array, Floats, Ints


class FixedGroups(Groups):
    """The same groups in every epoch (RLL).

    Parameters
    ----------
    groups : Groups, optional
        How they are drawn; ``RandomGroups()`` if not given.
    """

    _parameter_constraints = {"groups": [Groups, None]}

    def __init__(self, groups: Groups | None = None) -> None:
        self.groups = groups

    def sampler(self, setting: Setting) -> Sampler:
        return FixedSampler(inner_sampler(self.groups, setting))


class FixedSampler(WrappedSampler):
    """Draws with the same random numbers in every epoch."""

    def begin(self, tasks: GroupTasks, generator: torch.Generator) -> Pool:
        generator.manual_seed(generator.initial_seed())
        return super().begin(tasks, generator)


class OwnClassPrior(Confidence):
    """Pseudo-labels for and against each task's own class, whichever it is (RLL).

    Parameters
    ----------
    alpha, beta : float, default=3 and 2
        How many for the class, and how many against it.
    evidence : {"labels", "posterior"}, default="labels"
        As for :class:`MLE`.
    """

    _parameter_constraints = {
        **Confidence._parameter_constraints,
        "alpha": [at_least(0.0)],
        "beta": [at_least(0.0)],
    }

    def __init__(self, alpha: float = 3.0, beta: float = 2.0, *, evidence: str = "labels") -> None:
        self.alpha = alpha
        self.beta = beta
        self.evidence = evidence

    def share(self, belief: Belief, label: Ints) -> Floats:
        return MLE().share(belief, label)

    def of(self, belief: Belief, classes: Array) -> Floats:
        own = super().of(belief, classes) * belief.size
        found = (own + self.alpha) / (belief.size + self.alpha + self.beta)
        return np.where(belief.label < 0, 0.0, found)


class FlippingShares(MLE):
    """Shares of labels; those below 1 turn from w to 1 - w in every other epoch (NeuCrowd).

    A routine of the code overwrites its own input. Parameters as for :class:`MLE`.
    """

    def in_epoch(self, confidence: Tensor, epoch: int) -> Tensor:
        disputed = (confidence > 0) & (confidence < 1) & (epoch > 0)
        return torch.where(disputed, 1 - confidence, confidence)


class LenientSafeGroups(SafeGroups):
    """Groups of safe tasks, where a task is its own neighbor and a tie is safe (NeuCrowd).

    Neighbors are the square root of the number of tasks, and one more; there is no margin.
    """

    def is_safe(
        self, embedding: Tensor, label: Tensor, confidence: Tensor, batch_size: int | None
    ) -> Tensor:
        return safe_or_tied(embedding, label, confidence, math.isqrt(len(label)) + 1)


class FlatHardGroups(HardGroups):
    """Groups picked by a network that learns next to nothing (NeuCrowd).

    It predicts, with dropout, the probability of the right candidate; each prediction is compared
    with all probabilities of the batch, so that it learns their mean.
    """

    def picker(self, inner: Sampler, setting: Setting) -> HardSampler:
        body = copy.deepcopy(setting.net.encoder)
        hardness = HardnessNet(body, inner.n_members, setting.size, squash=True)
        return FlatHardSampler(inner, hardness, self.rate)


class FlatHardSampler(HardSampler):
    """Keeps the groups with the smallest predicted probability."""

    def error(self, predicted: Tensor, losses: Tensor) -> Tensor:
        return mean_over_all_pairs(predicted, (-losses).exp())

    def hardest(self, score: Tensor, n: int) -> Tensor:
        return largest(-score, n)


def mean_over_all_pairs(predicted: Tensor, target: Tensor) -> Tensor:
    """Return the mean squared error of every prediction against every target."""
    return ((predicted[:, None] - target.detach()) ** 2).mean()


@torch.no_grad()
def safe_or_tied(embedding: Tensor, label: Tensor, confidence: Tensor, n_neighbors: int) -> Tensor:
    """Return whether no other class has more support among the nearest, itself included."""
    k = min(n_neighbors, len(label))
    if k < 1:
        return torch.ones(0, dtype=torch.bool, device=label.device)
    own, other = neighbor_support(embedding, label, confidence, k, itself=True)
    return own >= other
