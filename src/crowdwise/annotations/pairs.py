"""The (worker, label) pairs that occur, and tables with a row for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from crowdwise import compiled
from crowdwise.typing import Floats, Ints

CROWDED = 0.75  # if a larger share of all pairs occurs, a table has rows for all


@dataclass(frozen=True, eq=False)
class Pairs:
    """The (worker, label) pairs that a table has rows for, in rising order.

    A worker with three different labels needs three rows, however many classes there are.
    """

    worker: Ints  # (pair,)
    label: Ints  # (pair,)
    n_workers: int
    n_classes: int

    def __len__(self) -> int:
        return len(self.worker)

    @property
    def is_sound(self) -> bool:
        """Whether the numbers are valid for workers and classes, and in rising order."""
        sides = (self.worker, self.n_workers), (self.label, self.n_classes)
        return len(self.worker) == len(self.label) and bool(
            all(own.ndim == 1 and own.dtype.kind in "iu" for own, _ in sides)
            and all(not len(own) or 0 <= own.min() <= own.max() < n for own, n in sides)
            and (np.diff(self.code) > 0).all()
        )

    @classmethod
    def all_of(cls, n_workers: int, n_classes: int) -> Self:
        worker = np.repeat(np.arange(n_workers, dtype=np.int32), n_classes)
        label = np.tile(np.arange(n_classes, dtype=np.int32), n_workers)
        return cls(worker, label, n_workers, n_classes)

    @property
    def whole(self) -> bool:
        """Whether every worker has a row for every label."""
        return len(self.worker) == self.n_workers * self.n_classes

    @property
    def code(self) -> Ints:
        """``worker * n_classes + label`` of each pair."""
        return self.worker.astype(np.int64) * self.n_classes + self.label

    @cached_property
    def starts(self) -> Ints:
        """Start of each worker's pairs, and the end of the last."""
        return np.searchsorted(self.worker, np.arange(self.n_workers + 1))

    def take(self, table: Floats) -> Floats:
        """Return the rows, (pair, truth), of a table (worker, truth, label)."""
        if self.whole:
            return np.ascontiguousarray(table.swapaxes(1, 2)).reshape(len(self), -1)
        return np.ascontiguousarray(table[self.worker, :, self.label])

    def spread(self, rows: Floats) -> Floats:
        """Make a table (worker, truth, label) from its rows, 0 for pairs without one."""
        if self.whole:
            return rows.reshape(self.n_workers, self.n_classes, -1).swapaxes(1, 2)
        table = np.zeros((self.n_workers, rows.shape[1], self.n_classes))
        table[self.worker, :, self.label] = rows
        return table

    def add_up(self, rows: Floats) -> Floats:
        """Sum the rows of each worker, (worker, truth) or (worker,)."""
        if self.whole:
            return rows.reshape(self.n_workers, self.n_classes, *rows.shape[1:]).sum(axis=1)
        parts = np.ones(len(self)), np.arange(len(self)), self.starts
        total: Floats = csr_array(parts, shape=(self.n_workers, len(self))) @ rows
        return total

    def add_up_labels(self, rows: Floats) -> Floats:
        """Sum the rows of each label, (label, truth)."""
        total: Floats = self._of_label @ rows
        return total

    @cached_property
    def _of_label(self) -> csr_array:
        """Matrix of each label's pairs, (label, pair); made once, for use in every EM step."""
        place = self.label, np.arange(len(self))
        return csr_array((np.ones(len(self)), place), shape=(self.n_classes, len(self)))


def find_pairs(worker: Ints, label: Ints, n_workers: int, n_classes: int) -> Pairs:
    """Find the pairs that occur; return all pairs if nearly all do."""
    n_all = n_workers * n_classes
    if n_all > 4 * len(worker):
        code = np.unique(worker.astype(np.int64) * n_classes + label)
    else:
        seen, start, size = np.zeros(n_all, dtype=bool), 0, max(n_all, 1 << 16)
        while start < len(worker):  # the first annotations may already show nearly all
            some = slice(start, start + size)
            seen[worker[some].astype(np.int64) * n_classes + label[some]] = True
            if np.count_nonzero(seen) > CROWDED * n_all:
                return Pairs.all_of(n_workers, n_classes)
            start, size = start + size, 2 * size
        code = np.flatnonzero(seen)
    of_worker, of_label = np.divmod(code, n_classes)
    return Pairs(of_worker.astype(np.int32), of_label.astype(np.int32), n_workers, n_classes)


def encode(worker: Ints, label: Ints, n_classes: int, pairs: Pairs | None = None) -> Ints:
    """Return ``worker * n_classes + label`` of each annotation, or its position in ``pairs``."""
    place = None
    if pairs is not None:
        n_all = pairs.n_workers * n_classes
        if n_all > max(4 * len(worker), 1 << 20):
            code = worker.astype(np.int64) * n_classes + label
            return np.searchsorted(pairs.code, code).astype(np.int32)
        place = np.zeros(n_all, dtype=np.int32)
        place[pairs.code] = np.arange(len(pairs), dtype=np.int32)
    loop = compiled.find("encode")
    if loop is None:
        code = worker.astype(np.int32) * np.int32(n_classes) + label.astype(np.int32)
        return code if place is None else place[code]
    code = np.empty(len(worker), dtype=np.int32)
    columns = np.ascontiguousarray(worker, dtype=np.int32), np.ascontiguousarray(label)
    loop(*columns, place, code, 0, len(worker), n_classes)
    return code
