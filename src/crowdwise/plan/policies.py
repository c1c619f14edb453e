"""Policies: how much another label of a task is worth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import entr
from sklearn.utils import check_random_state

from crowdwise.plan.outlook import Outlook
from crowdwise.typing import Floats, RandomState

ROWS_AT_ONCE = 1 << 16


class Policy(ABC):
    """How much another label of each task is worth."""

    @abstractmethod
    def gain(self, outlook: Outlook) -> Floats:
        """What a label by anyone would bring, for each task; the highest come first."""

    def gain_by(self, posterior: Floats, confusion: Floats) -> Floats | None:
        """What a label by each worker would bring, (task, worker); None if it is all the same."""
        return None


@dataclass(frozen=True)
class RandomTasks(Policy):
    """Tasks at random."""

    random_state: RandomState = None

    def gain(self, outlook: Outlook) -> Floats:
        return check_random_state(self.random_state).random_sample(len(outlook.posterior))


@dataclass(frozen=True)
class FewestLabels(Policy):
    """The tasks with fewest labels: the same number for all, in the end."""

    def gain(self, outlook: Outlook) -> Floats:
        return 1.0 / (1.0 + outlook.n_labels)


@dataclass(frozen=True)
class LeastConfident(Policy):
    """The tasks whose label is least probable."""

    def gain(self, outlook: Outlook) -> Floats:
        return np.asarray(1.0 - outlook.posterior.max(axis=1))


@dataclass(frozen=True)
class AccuracyGain(Policy):
    """The tasks where one label more is expected to make the answer more often right.

    ``E[max P(truth | one label more)] - max P(truth)``: 0 where no single label can change the
    answer.
    """

    def gain(self, outlook: Outlook) -> Floats:
        return _each_row(outlook.posterior, lambda rows: self.gain_by(rows, outlook.crowd[None]))

    def gain_by(self, posterior: Floats, confusion: Floats) -> Floats:
        joint = np.einsum("tk,wkl->twlk", posterior, confusion)
        after = joint.max(axis=3).sum(axis=2)
        return np.maximum(after - posterior.max(axis=1)[:, None], 0.0)


@dataclass(frozen=True)
class InformationGain(Policy):
    """The tasks where one label more is expected to tell most about the truth, in nats."""

    def gain(self, outlook: Outlook) -> Floats:
        return _each_row(outlook.posterior, lambda rows: self.gain_by(rows, outlook.crowd[None]))

    def gain_by(self, posterior: Floats, confusion: Floats) -> Floats:
        label = np.einsum("tk,wkl->twl", posterior, confusion)
        given_truth = posterior @ entr(confusion).sum(axis=2).T  # (task, worker)
        return np.maximum(entr(label).sum(axis=2) - given_truth, 0.0)


def _each_row(posterior: Floats, gain: Callable[[Floats], Floats]) -> Floats:
    """The gain of a label by one worker of every task, a block of tasks at a time."""
    starts = range(0, max(len(posterior), 1), ROWS_AT_ONCE)
    return np.concatenate([gain(posterior[i : i + ROWS_AT_ONCE])[:, 0] for i in starts])
