"""What the table stores, and what truth inference sees of it: votes and a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from crowdwise.errors import AnnotationError, explain
from crowdwise.typing import Array, Floats, Ints

ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Cells:
    """Rows of (worker, label) pairs with values; ``code = worker * n_labels + label``."""

    indptr: Ints
    code: Ints
    value: Floats | None

    @property
    def n_tasks(self) -> int:
        return len(self.indptr) - 1

    def matrix(self, start: int, stop: int, n_codes: int) -> csr_array:
        """The rows from ``start`` to ``stop`` as a scipy matrix."""
        low, high = self.indptr[start], self.indptr[stop]
        value = np.ones(high - low) if self.value is None else self.value[low:high]
        parts = (value, self.code[low:high], self.indptr[start : stop + 1] - low)
        return csr_array(parts, shape=(stop - start, n_codes))


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """What :class:`~crowdwise.Annotations` stores; its docstring explains each column."""

    tasks: Array
    workers: Array
    classes: Array
    indptr: Ints
    worker: Ints
    label: Ints
    weight: Floats | None = None
    time: Array | None = None
    soft: Floats | None = None
    gold: Ints | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def n_annotations(self) -> int:
        return len(self.label)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_tasks, self.n_workers

    @property
    def redundancy(self) -> Ints:
        """Annotations per task."""
        return np.diff(self.indptr)

    @property
    def task(self) -> Ints:
        """Running number of each annotation's task."""
        return np.repeat(np.arange(self.n_tasks, dtype=np.int32), self.redundancy)

    def per_annotation(self) -> dict[str, Array | None]:
        """The columns that have one entry per annotation."""
        return {
            "worker": self.worker,
            "label": self.label,
            "weight": self.weight,
            "time": self.time,
            "soft": self.soft,
        }

    @cached_property
    def cells(self) -> Cells:
        """The sparse matrix tasks x (worker, label) that every aggregator works on."""
        return to_cells(self)

    def votes(self) -> Floats:
        """Weight of the labels of each class, shape (n_tasks, n_classes)."""
        # A block of tasks at a time, to save memory.
        n_classes = self.n_classes
        votes = np.zeros((self.n_tasks, n_classes))
        indptr, start = self.indptr, 0
        while start < self.n_tasks:
            stop = int(np.searchsorted(indptr, indptr[start] + ROWS_AT_ONCE, side="right")) - 1
            stop = min(max(stop, start + 1), self.n_tasks)
            low, high = indptr[start], indptr[stop]
            task = np.repeat(np.arange(stop - start), np.diff(indptr[start : stop + 1]))
            weight = None if self.weight is None else self.weight[low:high]
            if self.soft is None:
                cell = task * n_classes + self.label[low:high]
                flat = np.bincount(cell, weight, minlength=(stop - start) * n_classes)
                votes[start:stop] = flat.reshape(stop - start, n_classes)
            else:
                value = self.soft[low:high].astype(np.float64)
                scaled = value if weight is None else value * weight[:, None]
                np.add.at(votes[start:stop], task, scaled)
            start = stop
        return votes

    def shares(self) -> Floats:
        """Each task's share of labels, uniform where it has none."""
        return normalize_votes(self.votes())


def to_cells(table: Columns) -> Cells:
    """One cell per annotation, or one per class of a soft annotation."""
    n_classes = max(table.n_classes, 1)
    if table.n_workers * n_classes > np.iinfo(np.int32).max:
        raise AnnotationError(
            explain(
                f"{table.n_workers:,} workers with {n_classes:,} classes are too many.",
                expected="workers x classes below 2**31",
                fix="merge rare classes, or drop workers with few annotations",
            )
        )
    code = table.worker.astype(np.int32) * np.int32(n_classes)
    if table.soft is None:
        code += table.label.astype(np.int32)
        weight = table.weight
        value = None if weight is None else weight.astype(np.float64)
        return Cells(table.indptr, code, value)
    spread = code[:, None] + np.arange(n_classes, dtype=np.int32)
    value = table.soft.astype(np.float64)
    if table.weight is not None:
        value = value * table.weight[:, None]
    return Cells(table.indptr * n_classes, spread.reshape(-1), value.reshape(-1))


def normalize_votes(votes: Floats) -> Floats:
    """Scale each row to sum to one, uniform where it is empty."""
    total = votes.sum(axis=1, keepdims=True)
    uniform = 1.0 / max(votes.shape[1], 1)
    return np.divide(votes, total, out=np.full_like(votes, uniform), where=total > 0)


def refuse_empty(data: Columns, purpose: str = "learn from") -> None:
    """Refuse annotations of which none counts."""
    if not data.n_annotations or (data.weight is not None and not (data.weight > 0).any()):
        raise AnnotationError(
            explain(
                f"There are no annotations to {purpose}.",
                found=f"{data.n_annotations:,} of weight 0" if data.n_annotations else "",
                expected="at least one (task, worker, label) that counts",
            )
        )


def find_labeled(data: Columns) -> Array:
    """Which tasks have a label that counts."""
    if data.weight is None:
        return data.redundancy > 0
    weight: Array = np.bincount(data.task, data.weight, minlength=data.n_tasks)
    return weight > 0
