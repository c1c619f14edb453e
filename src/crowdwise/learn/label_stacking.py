"""A committee whose members are weighed by the labels of tasks that they never saw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from crowdwise.inference import normalize
from crowdwise.learn.penalty_path import softmax_inplace
from crowdwise.typing import Floats

POWERS = 2.0 ** np.arange(-1.0, 3.0, 0.5)  # of a member: from half to four times as sure
LAST_POWERS = 2.0 ** np.arange(-2.0, 1.01, 0.125)  # of their mean
N_STEPS = 200
BALANCING_STEPS = 5
N_DRAWS = 300  # of tasks, to see which member is best
EVIDENCE = 0.25  # how much labels count there, since those of a task err together
LEAST = 1e-30  # a probability that still has a logarithm
POWER_PRIOR = 1.0  # log-likelihood that doubling or halving a power must win, from 1


@dataclass(frozen=True)
class Sharpening:
    """Probabilities to a power, times factors that keep classes as frequent as they are.

    A power alone would make frequent classes more frequent, from round to round.
    """

    power: Floats  # (member,): more than 1 for one that is too unsure of itself
    factor: Floats  # (member, class)

    @classmethod
    def balance(cls, members: Floats, power: Floats, usual: Floats) -> Self:
        """Factors under which the mean over tasks and one more, the usual, is as usual."""
        log = np.log(np.maximum(members, LEAST)) * power[:, None]
        log_factor = np.log(usual) * (1.0 - power[:, None])
        for _ in range(BALANCING_STEPS):
            mean = normalize(softmax_inplace(log + log_factor).sum(axis=0) + usual)
            log_factor = log_factor + np.log(usual / mean)
        return cls(power, np.exp(log_factor))

    def apply(self, members: Floats) -> Floats:
        """Sharpened probabilities, (task, member, class)."""
        log = np.log(np.maximum(members, LEAST)) * self.power[:, None]
        return softmax_inplace(log + np.log(self.factor))


@dataclass(frozen=True)
class Stack:
    """How probabilities of several members become one."""

    each: Sharpening
    weight: Floats  # (member,), sums to one
    last: Sharpening  # of their mean

    @classmethod
    def choose(cls, members: Floats, likelihood: Floats, prior: Floats) -> Self:
        """What makes the labels of all tasks most likely.

        ``members`` are P(truth) of tasks they never saw, (task, member, class);
        ``likelihood`` is P(labels | truth) up to a factor per task, (task, truth);
        ``prior`` is in how many tasks more each member is taken to be right.
        """
        usual = usual_classes(members)
        each = choose_sharpening(members, likelihood, POWERS, usual)
        sharpened = each.apply(members)
        weight = choose_weights(sharpened, likelihood, prior)
        mean = np.einsum("imk,m->ik", sharpened, weight)[:, None]
        return cls(each, weight, choose_sharpening(mean, likelihood, LAST_POWERS, usual))

    def cautious(self) -> Self:
        """The same, but never surer than the mean of its members.

        By the labels of workers who err together, anything is too unsure; on real crowds
        most do.
        """
        if self.last.power[0] <= 1.0:
            return self
        return replace(self, last=Sharpening(np.ones(1), np.ones_like(self.last.factor)))

    def mix(self, members: Floats) -> Floats:
        """P(truth) by all members together, (task, class)."""
        mean = np.einsum("imk,m->ik", self.each.apply(members), self.weight)
        return self.last.apply(mean[:, None])[:, 0]


def usual_classes(members: Floats) -> Floats:
    """How frequent classes are, by all members and one more task."""
    return normalize(members.mean(axis=1).sum(axis=0) + 1.0 / members.shape[2])


def log_evidence(members: Floats, likelihood: Floats) -> Floats:
    """Log P(labels of a task) by each member, up to a term per task, (task, member)."""
    return np.log(np.maximum(np.einsum("imk,ik->im", members, likelihood), LEAST))


def choose_sharpening(
    members: Floats, likelihood: Floats, powers: Floats, usual: Floats
) -> Sharpening:
    """The power of each member under which labels are most likely."""
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
    """The mixture of members under which labels are most likely, by EM, (member,)."""
    evidence = np.exp(log_evidence(members, likelihood))
    weight = np.full(evidence.shape[1], 1.0 / evidence.shape[1])
    for _ in range(N_STEPS):
        share = evidence * weight
        weight = normalize((share / share.sum(axis=1, keepdims=True)).sum(axis=0) + prior)
    return weight


def choose_best(members: Floats, likelihood: Floats, rng: np.random.RandomState) -> Floats:
    """P(best) of each member, judged as it is, (member,).

    How likely they make the labels of tasks that were drawn at random decides, over and over:
    a clear winner gets all, and members that few labels cannot tell apart get equal parts
    (pseudo-BMA+ of Yao, Vehtari, Simpson and Gelman 2018).
    """
    evidence = EVIDENCE * log_evidence(members, likelihood)
    drawn = rng.exponential(size=(N_DRAWS, len(evidence))) @ evidence
    return softmax_inplace(drawn).mean(axis=0)
