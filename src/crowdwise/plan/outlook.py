"""What a plan is made from: the labels so far, and what a model makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.inference import count_labels, normalize
from crowdwise.typing import Floats, Ints

POOLING = 20.0  # labels of the crowd's confusion that each worker's own are added to


@dataclass(frozen=True, eq=False)
class Outlook:
    """The labels so far, P(truth) of each task, and how workers confuse classes."""

    votes: Annotations
    posterior: Floats  # (task, class)
    gold: Ints | None = None  # (task,): class number of known truths, -1 for none

    @property
    def n_labels(self) -> Ints:
        """Labels of each task."""
        return self.votes.redundancy

    @cached_property
    def known(self) -> Ints:
        """Whether the truth of each task is known."""
        return np.zeros(len(self.posterior), bool) if self.gold is None else self.gold >= 0

    @cached_property
    def crowd(self) -> Floats:
        """P(label | truth) of a label by anyone, (truth, label)."""
        everyone = np.zeros(self.votes.n_workers, dtype=np.int64)
        counts = count_labels(self.votes, self.posterior, everyone).sum(axis=0)
        n_classes = self.votes.n_classes
        prior = np.eye(n_classes) + 1.0 / n_classes  # mostly right, until labels tell
        return normalize(counts + prior)

    def confusion(self, workers: Ints) -> Floats:
        """P(label | truth) of some workers by number, (worker, truth, label); -1 is anyone."""
        row = np.full(self.votes.n_workers, -1, dtype=np.int64)
        known = workers >= 0
        row[workers[known]] = np.flatnonzero(known)
        counts = np.zeros((len(workers), *self.crowd.shape))
        if known.any() and self.votes.n_annotations:
            found = count_labels(self.votes, self.posterior, row)
            counts[: len(found)] = found
        return normalize(counts + POOLING * self.crowd)
