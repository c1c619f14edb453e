"""Storage of the table: columns grouped by task, their parts, votes and cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from crowdwise import memory
from crowdwise.annotations.grouping import freeze
from crowdwise.annotations.pairs import Pairs, encode, find_pairs
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.typing import Array, Floats, Indices, Ints

ROWS_AT_ONCE = 1 << 20
TIE = 1e-9  # classes closer than this to the best one are tied with it, as in _native.c

Table = TypeVar("Table", bound="Columns")


@dataclass(frozen=True)
class Cells:
    """Rows of codes with values; a code is the position of a (worker, label) pair in a table."""

    indptr: Ints
    code: Ints
    value: Floats | None

    @property
    def n_tasks(self) -> int:
        return len(self.indptr) - 1

    def take(self, rows: Ints) -> Cells:
        """Return some of the rows."""
        size = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(size, dtype=np.int64)])
        place = np.repeat(self.indptr[rows] - indptr[:-1], size) + np.arange(indptr[-1])
        return Cells(indptr, self.code[place], None if self.value is None else self.value[place])

    def matrix(self, start: int, stop: int, n_codes: int) -> csr_array:
        """Return the rows from ``start`` to ``stop`` as a scipy matrix."""
        low, high = self.indptr[start], self.indptr[stop]
        value = np.ones(high - low) if self.value is None else self.value[low:high]
        parts = (value, self.code[low:high], self.indptr[start : stop + 1] - low)
        return csr_array(parts, shape=(stop - start, n_codes))


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """The storage of :class:`~crowdwise.Annotations`, which documents each column."""

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
    score: Floats | None = None
    declined: Ints | None = None
    about_workers: pd.DataFrame | None = None
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
        """Number of annotations of each task."""
        return np.diff(self.indptr)

    @property
    def task(self) -> Ints:
        """Task number of each annotation."""
        return np.repeat(np.arange(self.n_tasks, dtype=np.int32), self.redundancy)

    def per_annotation(self) -> dict[str, Array | None]:
        """Return the columns with one entry per annotation."""
        return {
            "worker": self.worker,
            "label": self.label,
            "weight": self.weight,
            "time": self.time,
            "soft": self.soft,
            "score": self.score,
        }

    def __getitem__(self, rows: Indices) -> Self:
        """Return the tasks at ``rows``: a number, slice, mask or array of numbers."""
        chosen = np.atleast_1d(np.arange(self.n_tasks)[rows])
        size = self.redundancy[chosen]
        indptr = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        start = np.repeat(self.indptr[chosen] - indptr[:-1], size)
        gold = None if self.gold is None else self.gold[chosen]
        kept = {"tasks": self.tasks[chosen], "indptr": indptr, "gold": gold}
        if self.declined is not None:
            place = np.full(self.n_tasks, -1, dtype=np.int32)
            place[chosen] = np.arange(len(chosen))
            moved = np.column_stack([place[self.declined[:, 0]], self.declined[:, 1]])
            kept["declined"] = moved[moved[:, 0] >= 0]
        return replace(self, **freeze({**kept, **self._take(start + np.arange(indptr[-1]))}))

    def filter(self, mask: ArrayLike) -> Self:
        """Keep the annotations where ``mask`` is true; all tasks, workers and classes stay."""
        mask = np.asarray(mask, dtype=bool)
        if mask.shape != (self.n_annotations,):
            raise ParameterError(
                f"The mask has shape {mask.shape}.\n"
                f"  expected: one true or false per annotation ({self.n_annotations:,})"
                "\n  fix:      make the mask from columns of the same annotations"
            )
        before = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
        return replace(self, **freeze({"indptr": before[self.indptr], **self._take(mask)}))

    def _take(self, at: Array) -> dict[str, Array | None]:
        return {k: None if own is None else own[at] for k, own in self.per_annotation().items()}

    @cached_property
    def cells(self) -> Cells:
        """The sparse matrix tasks x (worker, label); ``code = worker * n_classes + label``."""
        return to_cells(self)

    @cached_property
    def pairs(self) -> Pairs:
        """The (worker, label) pairs that occur, for tables with rows for these only."""
        if self.soft is not None:
            return Pairs.all_of(self.n_workers, self.n_classes)
        return find_pairs(self.worker, self.label, self.n_workers, self.n_classes)

    @cached_property
    def pair_cells(self) -> Cells:
        """Like :attr:`cells`, with positions in :attr:`pairs` as codes."""
        if self.pairs.whole:
            return self.cells
        weight = None if self.weight is None else self.weight.astype(np.float64)
        return Cells(
            self.indptr, encode(self.worker, self.label, self.n_classes, self.pairs), weight
        )

    def votes(self) -> Floats:
        """Total weight of the labels of each class, shape (n_tasks, n_classes)."""
        # One block of tasks at a time, to save memory.
        n_classes = self.n_classes
        if 8 * self.n_tasks * n_classes > memory.LARGE:
            shape = self.n_tasks, n_classes
            memory.refuse_dense("A table of votes", shape, ("tasks", "classes"))
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
        """Return each task's share of labels by class, uniform if it has none."""
        return normalize_votes(self.votes())


def to_cells(table: Columns) -> Cells:
    """Make one cell per annotation, or one per class of a soft annotation."""
    n_classes = max(table.n_classes, 1)
    if table.n_workers * n_classes > np.iinfo(np.int32).max:
        raise AnnotationError(
            explain(
                f"{table.n_workers:,} workers with {n_classes:,} classes are too many.",
                expected="workers x classes below 2**31",
                fix="merge rare classes, or drop workers with few annotations",
            )
        )
    if table.soft is None:
        weight = None if table.weight is None else table.weight.astype(np.float64)
        return Cells(table.indptr, encode(table.worker, table.label, n_classes), weight)
    code = table.worker.astype(np.int32) * np.int32(n_classes)
    spread = code[:, None] + np.arange(n_classes, dtype=np.int32)
    value = table.soft.astype(np.float64)
    if table.weight is not None:
        value = value * table.weight[:, None]
    return Cells(table.indptr * n_classes, spread.reshape(-1), value.reshape(-1))


def normalize_votes(votes: Floats) -> Floats:
    """Scale each row to sum to one, uniform if it is empty."""
    total = votes.sum(axis=1, keepdims=True)
    uniform = 1.0 / max(votes.shape[1], 1)
    return np.divide(votes, total, out=np.full_like(votes, uniform), where=total > 0)


def tied(shares: Floats) -> Array:
    """Return which classes are tied with the best one of each task."""
    return shares >= shares.max(axis=1, keepdims=True) - TIE


def drop_weightless(data: Table) -> Table:
    """Drop annotations of weight 0, which say nothing. All names stay."""
    if data.weight is None or (data.weight > 0).all():
        return data
    return data.filter(data.weight > 0)


def keep_counting(data: Table, purpose: str = "learn from") -> Table:
    """Keep annotations that count; refuse a table without any."""
    if not data.n_annotations or (data.weight is not None and not (data.weight > 0).any()):
        raise AnnotationError(
            explain(
                f"There are no annotations to {purpose}.",
                found=f"{data.n_annotations:,} of weight 0" if data.n_annotations else "",
                expected="at least one (task, worker, label) that counts",
                fix="check that labels were read: .notes says what was left out",
            )
        )
    return drop_weightless(data)


def find_labeled(data: Columns) -> Array:
    """Return which tasks have a label that counts."""
    if data.weight is None:
        return data.redundancy > 0
    weight: Array = np.bincount(data.task, data.weight, minlength=data.n_tasks)
    return weight > 0
