"""Confidence of answers when workers err together, calibrated by known truths if any."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdwise.inference.simplex import normalize
from crowdwise.typing import Floats, Ints

POWERS = np.geomspace(0.2, 3.0, 19)  # tried if there are known truths
BELIEF = 20.0  # weight of the given settings, in known truths
SECOND = 0.1  # weight of a second base, before known truths are used
ROUNDS = 60  # of EM to find the weights


@dataclass(frozen=True)
class Confidence:
    """How posteriors and the shares of labels are combined in an answer.

    ``n`` labels of a task count as ``n / (1 + (n - 1) * dependence)`` independent ones, as in
    a survey of people with this correlation (Kish's design effect).
    """

    dependence: float  # correlation of the labels of a task
    shares: float  # weight of each task's own share of labels
    power: float = 1.0  # of the posteriors, besides that from dependence
    second: float = 0.0  # weight of the posterior of a second base

    def sharpen(self, posterior: Floats, n_labels: Floats) -> Floats:
        """Adjust the posterior's confidence for dependence, and by the power."""
        power = self.power / (1.0 + (np.maximum(n_labels, 1.0) - 1.0) * self.dependence)
        return normalize(posterior ** power[:, None])

    def answer(
        self, posterior: Floats, share: Floats, n_labels: Floats, other: Floats | None = None
    ) -> Floats:
        """Return P(truth) of each task; without labels, the posterior is unchanged."""
        second = 0.0 if other is None else self.second
        first = 1.0 - self.shares - second
        mixed = first * self.sharpen(posterior, n_labels) + self.shares * share
        if other is not None:
            mixed += second * self.sharpen(other, n_labels)
        return np.where(n_labels[:, None] > 0, mixed, posterior)

    def fit(
        self,
        posterior: Floats,
        share: Floats,
        n_labels: Floats,
        truth: Ints,
        other: Floats | None = None,
    ) -> Confidence:
        """Choose the power and the weights that make the truths most probable.

        The posteriors must not have seen the truths. The given settings count as some additional
        truths, so a few truths change little.
        """
        row = np.arange(len(truth))
        second = 0.0 if other is None else SECOND * (1.0 - self.shares)
        given = np.array([1.0 - self.shares - second, second, self.shares])
        chance = np.zeros((len(truth), 3))  # P(each truth) under the bases and the shares
        chance[:, 2] = share[row, truth]
        best, found = -np.inf, self
        for power in POWERS * self.power:
            alone = replace(self, power=float(power))
            chance[:, 0] = alone.sharpen(posterior, n_labels)[row, truth]
            if other is not None:
                chance[:, 1] = alone.sharpen(other, n_labels)[row, truth]
            weights, value = weigh(chance, given)
            value -= BELIEF * np.log(power / self.power) ** 2 / 2.0
            if value > best:
                best = value
                found = replace(alone, second=float(weights[1]), shares=float(weights[2]))
        return found


def weigh(chance: Floats, given: Floats) -> tuple[Floats, float]:
    """Return the mixture weights that make the observations most probable, and how probable.

    ``given`` are the prior weights; those of 0 stay 0. (EM, whose objective is concave.)
    """
    weights = given
    for _ in range(ROUNDS):
        part = chance * weights
        part /= np.maximum(part.sum(axis=1, keepdims=True), 1e-300)
        weights = normalize(part.sum(axis=0) + BELIEF * given)
    some = given > 0
    belief = BELIEF * float(given[some] @ np.log(weights[some]))
    return weights, float(np.log(np.maximum(chance @ weights, 1e-300)).sum()) + belief
