"""Policies: how much another label of a task is worth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import entr
from sklearn.utils import check_random_state

from crowdwise.plan.outlook import Outlook
from crowdwise.typing import Floats, RandomState

AT_ONCE = 1 << 18  # cells of confusion matrices processed together


class Policy(ABC):
    """The value of another label of each task."""

    @abstractmethod
    def gain(self, outlook: Outlook) -> Floats:
        """Return what a label by anyone would bring, for each task; the highest come first."""

    def gain_by(self, posterior: Floats, confusion: Floats) -> Floats | None:
        """Return what a label brings, by pair of task and worker; None if it is the same for all.

        ``posterior`` is that of the pair's task, ``confusion`` that of its worker, (pair, truth,
        label), or that of everyone, (1, truth, label).
        """
        return None


@dataclass(frozen=True)
class RandomTasks(Policy):
    """Tasks at random."""

    random_state: RandomState = None

    def gain(self, outlook: Outlook) -> Floats:
        return check_random_state(self.random_state).random_sample(len(outlook.posterior))


@dataclass(frozen=True)
class FewestLabels(Policy):
    """The tasks with the fewest labels: eventually all get the same number."""

    def gain(self, outlook: Outlook) -> Floats:
        return 1.0 / (1.0 + outlook.n_labels)


@dataclass(frozen=True)
class LeastConfident(Policy):
    """The tasks whose label is least probable."""

    def gain(self, outlook: Outlook) -> Floats:
        return np.asarray(1.0 - outlook.posterior.max(axis=1))


class ByConfusion(Policy):
    """A policy whose gains follow from the posterior and workers' confusion matrices."""

    def gain(self, outlook: Outlook) -> Floats:
        posterior, crowd = outlook.posterior, outlook.crowd[None]
        rows = max(AT_ONCE // crowd.size, 1)
        starts = range(0, max(len(posterior), 1), rows)
        gains = [self.gain_by(posterior[i : i + rows], crowd) for i in starts]
        return np.asarray(np.concatenate(gains) * outlook.news)

    @abstractmethod
    def gain_by(self, posterior: Floats, confusion: Floats) -> Floats: ...


@dataclass(frozen=True)
class AccuracyGain(ByConfusion):
    """The tasks where another label is expected to make the answer right most often.

    ``E[max P(truth | one more label)] - max P(truth)``: 0 if no single label can change the
    answer.
    """

    def gain_by(self, posterior: Floats, confusion: Floats) -> Floats:
        after = (posterior[:, :, None] * confusion).max(axis=1).sum(axis=1)
        return np.maximum(after - posterior.max(axis=1), 0.0)


@dataclass(frozen=True)
class InformationGain(ByConfusion):
    """The tasks where another label is expected to tell most about the truth, in nats."""

    def gain_by(self, posterior: Floats, confusion: Floats) -> Floats:
        label = np.matmul(posterior[:, None, :], confusion)[:, 0]
        given_truth = (posterior * entr(confusion).sum(axis=2)).sum(axis=1)
        return np.maximum(entr(label).sum(axis=1) - given_truth, 0.0)
