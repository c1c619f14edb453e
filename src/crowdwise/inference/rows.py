"""Annotations as rows of hard labels, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.inference.simplex import normalize
from crowdwise.typing import Floats, Ints


@dataclass(frozen=True)
class LabelRows:
    """One label per row; a soft label is a row for each class, with less weight."""

    task: Ints
    worker: Ints
    label: Ints
    weight: Floats

    @classmethod
    def of(cls, votes: Annotations) -> Self:
        cells = votes.cells
        task = np.repeat(np.arange(votes.n_tasks), np.diff(cells.indptr))
        weight = np.ones(len(task)) if cells.value is None else cells.value
        return cls(task, cells.code // votes.n_classes, cells.code % votes.n_classes, weight)

    def by_class(self, value: Floats, shape: tuple[int, ...]) -> Floats:
        """Sum the weighted values by task and label."""
        cell = self.task * shape[1] + self.label
        return sum_by_group(cell, self.weight * value, shape[0] * shape[1]).reshape(shape)

    def mean_by_worker(self, value: Floats, smoothing: float, n_workers: int) -> Floats:
        """Average the values of each worker's labels, plus ``smoothing`` labels of 0 and of 1."""
        for_it = sum_by_group(self.worker, self.weight * value, n_workers)
        against = sum_by_group(self.worker, self.weight * (1.0 - value), n_workers)
        return normalize(np.stack([for_it, against], axis=1) + smoothing)[:, 0]


def sum_by_group(group: Ints, value: Floats, n_groups: int) -> Floats:
    """Sum the values of each group."""
    return np.bincount(group, value, minlength=n_groups).astype(np.float64)
