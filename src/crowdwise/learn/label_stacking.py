"""A committee whose members are weighed by the labels of tasks that they never saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from crowdwise.inference import normalize
from crowdwise.typing import Floats

POWERS = 2.0 ** np.arange(-1.0, 3.0, 0.5)  # of a member: from half to four times as sure
LAST_POWERS = 2.0 ** np.arange(-2.0, 1.01, 0.125)  # of their mean
N_STEPS = 200
LEAST = 1e-30  # a probability that still has a logarithm
POWER_PRIOR = 1.0  # log-likelihood that doubling or halving a power must win, from 1


@dataclass(frozen=True)
class Stack:
    """How probabilities of several members become one: powers, weights, and a last power."""

    power: Floats  # (member,): more than 1 for one that is too unsure of itself
    weight: Floats  # (member,), sums to one
    last_power: float

    @classmethod
    def choose(cls, members: Floats, likelihood: Floats, prior: Floats) -> Self:
        """What makes the labels of all tasks most likely.

        ``members`` are P(truth) of tasks they never saw, (task, member, class);
        ``likelihood`` is P(labels | truth) up to a factor per task, (task, truth);
        ``prior`` is in how many tasks more each member is taken to be right.
        """
        power = choose_power(members, likelihood, POWERS)
        weight = choose_weights(sharpen(members, power), likelihood, prior)
        mean = cls(power, weight, 1.0).mix(members)[:, None]
        return cls(power, weight, float(choose_power(mean, likelihood, LAST_POWERS)[0]))

    def mix(self, members: Floats) -> Floats:
        """P(truth) by all members together, (task, class)."""
        mean = np.einsum("imk,m->ik", sharpen(members, self.power), self.weight)
        return sharpen(mean, self.last_power)


def sharpen(proba: Floats, power: Floats | float) -> Floats:
    """Probabilities to a power, scaled to sum to one."""
    log = np.log(np.maximum(proba, LEAST)) * np.asarray(power)[..., None]
    log -= log.max(axis=-1, keepdims=True)
    np.exp(log, out=log)
    log /= log.sum(axis=-1, keepdims=True)
    return log


def log_evidence(members: Floats, likelihood: Floats) -> Floats:
    """Log P(labels of a task) by each member, up to a term per task, (task, member)."""
    return np.log(np.maximum(np.einsum("imk,ik->im", members, likelihood), LEAST))


def choose_power(members: Floats, likelihood: Floats, powers: Floats) -> Floats:
    """The power of each member under which labels are most likely, (member,)."""
    scores = [
        log_evidence(sharpen(members, power), likelihood).sum(axis=0)
        - POWER_PRIOR * np.log2(power) ** 2
        for power in powers
    ]
    return powers[np.argmax(scores, axis=0)]


def choose_weights(members: Floats, likelihood: Floats, prior: Floats) -> Floats:
    """The mixture of members under which labels are most likely, by EM, (member,)."""
    evidence = np.exp(log_evidence(members, likelihood))
    weight = np.full(evidence.shape[1], 1.0 / evidence.shape[1])
    for _ in range(N_STEPS):
        share = evidence * weight
        weight = normalize((share / share.sum(axis=1, keepdims=True)).sum(axis=0) + prior)
    return weight
