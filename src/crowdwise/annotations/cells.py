"""The sparse matrix behind truth inference: tasks x (worker, label)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from crowdwise.annotations.grouping import Columns
from crowdwise.errors import AnnotationError, explain
from crowdwise.typing import Floats, Ints

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


def count_votes(table: Columns) -> Floats:
    """Weight of the labels of each class; a block of tasks at a time, to save memory."""
    n_classes = table.n_classes
    votes = np.zeros((table.n_tasks, n_classes))
    indptr, start = table.indptr, 0
    while start < table.n_tasks:
        stop = int(np.searchsorted(indptr, indptr[start] + ROWS_AT_ONCE, side="right")) - 1
        stop = min(max(stop, start + 1), table.n_tasks)
        low, high = indptr[start], indptr[stop]
        task = np.repeat(np.arange(stop - start), np.diff(indptr[start : stop + 1]))
        weight = None if table.weight is None else table.weight[low:high]
        if table.soft is None:
            cell = task * n_classes + table.label[low:high]
            flat = np.bincount(cell, weight, minlength=(stop - start) * n_classes)
            votes[start:stop] = flat.reshape(stop - start, n_classes)
        else:
            value = table.soft[low:high].astype(np.float64)
            scaled = value if weight is None else value * weight[:, None]
            np.add.at(votes[start:stop], task, scaled)
        start = stop
    return votes


def normalize_votes(votes: Floats) -> Floats:
    """Scale each row to sum to one, uniform where it is empty."""
    total = votes.sum(axis=1, keepdims=True)
    uniform = 1.0 / max(votes.shape[1], 1)
    return np.divide(votes, total, out=np.full_like(votes, uniform), where=total > 0)
