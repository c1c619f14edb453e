"""How sure an answer may be where workers err together, by known truths if there are any."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdwise.inference.simplex import normalize
from crowdwise.typing import Floats, Ints

POWERS = np.geomspace(0.2, 3.0, 19)  # what is tried when there are known truths
SHARES = np.array([0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8])
BELIEF = 5.0  # known truths that what was given is worth


@dataclass(frozen=True)
class Confidence:
    """How a posterior and the shares of labels make an answer.

    ``n`` labels of a task count as ``n / (1 + (n - 1) * dependence)`` independent ones, as in
    a survey of people who have the dependence in common (Kish's design effect).
    """

    dependence: float  # correlation of the labels of a task
    shares: float  # weight of each task's own share of labels
    power: float = 1.0  # of the posterior, beside that from dependence

    def answer(self, posterior: Floats, share: Floats, n_labels: Floats) -> Floats:
        """P(truth) of each task; without labels, the posterior as it is."""
        power = self.power / (1.0 + (np.maximum(n_labels, 1.0) - 1.0) * self.dependence)
        sure = normalize(posterior ** power[:, None])
        mixed = (1.0 - self.shares) * sure + self.shares * share
        return np.where(n_labels[:, None] > 0, mixed, posterior)

    def fit(self, posterior: Floats, share: Floats, n_labels: Floats, truth: Ints) -> Confidence:
        """The power and the shares under which the truths are most probable.

        The posteriors must not have seen the truths. What was given counts as a few truths
        more, so that few of them change little.
        """
        row = np.arange(len(truth))
        plain = share[row, truth]
        weights = np.union1d(SHARES, self.shares)
        weights = weights[(weights > 0) & (weights < 1)]
        belief = self.shares * np.log(weights) + (1.0 - self.shares) * np.log1p(-weights)
        best, found = -np.inf, self
        for power in POWERS * self.power:
            alone = replace(self, shares=0.0, power=power)
            sure = alone.answer(posterior, share, n_labels)[row, truth]
            mixed = np.outer(1.0 - weights, sure) + np.outer(weights, plain)
            value = np.log(np.maximum(mixed, 1e-300)).sum(axis=1) + BELIEF * belief
            value -= BELIEF * np.log(power / self.power) ** 2 / 2.0
            if value.max() > best:
                best, place = value.max(), value.argmax()
                found = replace(self, power=float(power), shares=float(weights[place]))
        return found
