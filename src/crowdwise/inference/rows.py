"""Annotations as rows of hard labels, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from crowdwise.annotations import Annotations, Cells
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
        task, code, weight = as_columns(votes.cells)
        weight = np.ones(len(task)) if weight is None else weight
        return cls(task, code // votes.n_classes, code % votes.n_classes, weight)

    def by_class(self, value: Floats, shape: tuple[int, ...]) -> Floats:
        """Sum the weighted values by task and label."""
        cell = self.task * shape[1] + self.label
        return sum_by_group(cell, self.weight * value, shape[0] * shape[1]).reshape(shape)

    def mean_by_worker(self, value: Floats, smoothing: float, n_workers: int) -> Floats:
        """Average the values of each worker's labels, plus ``smoothing`` labels of 0 and of 1."""
        for_it = sum_by_group(self.worker, self.weight * value, n_workers)
        against = sum_by_group(self.worker, self.weight * (1.0 - value), n_workers)
        return normalize(np.stack([for_it, against], axis=1) + smoothing)[:, 0]


def as_columns(cells: Cells) -> tuple[Ints, Ints, Floats | None]:
    """Return the task, counted from 0, the code and the value of each cell."""
    some = slice(cells.indptr[0], cells.indptr[-1])
    task = np.repeat(np.arange(cells.n_tasks), np.diff(cells.indptr))
    return task, cells.code[some], None if cells.value is None else cells.value[some]


def sum_by_group(group: Ints, value: Floats, n_groups: int) -> Floats:
    """Sum the values of each group."""
    return np.bincount(group, value, minlength=n_groups).astype(np.float64)
