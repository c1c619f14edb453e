"""A committee whose members are weighted by the labels of tasks that they never saw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from crowdwise.inference import normalize
from crowdwise.learn.penalty_path import softmax_inplace
from crowdwise.typing import Floats

POWERS = 2.0 ** np.arange(-1.0, 3.0, 0.5)  # to sharpen a member by: from half to four times
LAST_POWERS = 2.0 ** np.arange(-2.0, 1.01, 0.125)  # of their mean
N_STEPS = 200
BALANCING_STEPS = 5
N_DRAWS = 300  # bootstrap draws of tasks to find the best member
EVIDENCE = 0.25  # weight of labels in these, since a task's labels err together
LEAST = 1e-30  # smallest probability of which logarithms are taken
POWER_PRIOR = 1.0  # log-likelihood gain required to double or halve a power, from 1


@dataclass(frozen=True)
class Sharpening:
    """Probabilities raised to a power, times factors that keep the class frequencies.

    A power alone would make frequent classes more frequent from round to round.
    """

    power: Floats  # (member,): more than 1 for an underconfident one
    factor: Floats  # (member, class)

    @classmethod
    def balance(cls, members: Floats, power: Floats, usual: Floats) -> Self:
        """Find factors that keep the mean over tasks, plus one more, at class frequencies."""
        log = np.log(np.maximum(members, LEAST)) * power[:, None]
        log_factor = np.log(usual) * (1.0 - power[:, None])
        for _ in range(BALANCING_STEPS):
            mean = normalize(softmax_inplace(log + log_factor).sum(axis=0) + usual)
            log_factor = log_factor + np.log(usual / mean)
        return cls(power, np.exp(log_factor))

    def apply(self, members: Floats) -> Floats:
        """Return sharpened probabilities, (task, member, class)."""
        log = np.log(np.maximum(members, LEAST)) * self.power[:, None]
        return softmax_inplace(log + np.log(self.factor))


@dataclass(frozen=True)
class Stack:
    """How the probabilities of several members are combined."""

    each: Sharpening
    weight: Floats  # (member,), sums to one
    last: Sharpening  # of the mean

    @classmethod
    def choose(cls, members: Floats, likelihood: Floats, prior: Floats) -> Self:
        """Choose what makes the labels of all tasks most likely.

        ``members`` are P(truth) of tasks they never saw, (task, member, class);
        ``likelihood`` is P(labels | truth) up to a factor per task, (task, truth);
        ``prior`` is how many tasks each member is assumed to get right in advance.
        """
        usual = usual_classes(members)
        each = choose_sharpening(members, likelihood, POWERS, usual)
        sharpened = each.apply(members)
        weight = choose_weights(sharpened, likelihood, prior)
        mean = np.einsum("imk,m->ik", sharpened, weight)[:, None]
        return cls(each, weight, choose_sharpening(mean, likelihood, LAST_POWERS, usual))

    def cautious(self) -> Self:
        """Return the same, but never more confident than the mean of its members.

        By the labels of workers who err together, everything is underconfident; on real crowds,
        most workers do.
        """
        if self.last.power[0] <= 1.0:
            return self
        return replace(self, last=Sharpening(np.ones(1), np.ones_like(self.last.factor)))

    def mix(self, members: Floats) -> Floats:
        """Return P(truth) by all members together, (task, class)."""
        mean = np.einsum("imk,m->ik", self.each.apply(members), self.weight)
        return self.last.apply(mean[:, None])[:, 0]


def usual_classes(members: Floats) -> Floats:
    """Return class frequencies by all members, plus one more task."""
    return normalize(members.mean(axis=1).sum(axis=0) + 1.0 / members.shape[2])


def log_evidence(members: Floats, likelihood: Floats) -> Floats:
    """Return log P(labels of a task) by each member, up to a constant, (task, member)."""
    return np.log(np.maximum(np.einsum("imk,ik->im", members, likelihood), LEAST))


def choose_sharpening(
    members: Floats, likelihood: Floats, powers: Floats, usual: Floats
) -> Sharpening:
    """Choose each member's power so that labels are most likely."""
    tried = [
        Sharpening.balance(members, np.full(members.shape[1], power), usual) for power in powers
    ]
    scores = [
        log_evidence(one.apply(members), likelihood).sum(axis=0)
        - POWER_PRIOR * np.log2(one.power) ** 2
        for one in tried
    ]
    best = np.argmax(scores, axis=0)
    factor = np.stack([tried[number].factor[member] for member, number in enumerate(best)])
    return Sharpening(powers[best], factor)


def choose_weights(members: Floats, likelihood: Floats, prior: Floats) -> Floats:
    """Choose the mixture of members that makes labels most likely, by EM, (member,)."""
    evidence = np.exp(log_evidence(members, likelihood))
    weight = np.full(evidence.shape[1], 1.0 / evidence.shape[1])
    for _ in range(N_STEPS):
        share = evidence * weight
        weight = normalize((share / share.sum(axis=1, keepdims=True)).sum(axis=0) + prior)
    return weight


def choose_best(members: Floats, likelihood: Floats, rng: np.random.RandomState) -> Floats:
    """Return P(best) of each member as it is, (member,).

    Tasks are resampled again and again, and the member that makes their labels most likely wins:
    a clear winner gets everything, and members that few labels cannot tell apart get equal parts
    (pseudo-BMA+ of Yao, Vehtari, Simpson and Gelman 2018).
    """
    evidence = EVIDENCE * log_evidence(members, likelihood)
    drawn = rng.exponential(size=(N_DRAWS, len(evidence))) @ evidence
    return softmax_inplace(drawn).mean(axis=0)
