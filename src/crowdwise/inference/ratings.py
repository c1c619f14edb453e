"""Ratings of tasks by judges, and their correlations.

Ratings are standardized for each judge; a task that a judge did not rate gets a neutral 0. The
correlation of two judges is computed on the tasks that both rated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from crowdwise.inference.rows import sum_by_group
from crowdwise.typing import Array, Floats, Ints

CLONES = 0.95  # judges with a higher correlation are one judge under several names
CELLS_AT_ONCE = 1 << 18
FEW = 30  # shared tasks below which only identical ratings make two judges clones
USUAL = 20.0  # weight of the panel's mean correlation, in shared tasks
LEAST_NOISE = 0.02  # as a share of a judge's variance


@dataclass(frozen=True)
class Ratings:
    """One number for each task and judge, repeats averaged."""

    task: Ints  # in rising order
    worker: Ints
    value: Floats  # (pair, column)
    shape: tuple[int, int]

    @classmethod
    def average(
        cls, task: Ints, worker: Ints, value: Floats, weight: Floats, shape: tuple[int, int]
    ) -> Ratings:
        """Average the values, (row, column), that a judge gave to a task."""
        if not (weight > 0).all():
            counted = weight > 0
            task, worker, value, weight = (c[counted] for c in (task, worker, value, weight))
        code = task.astype(np.int64) * shape[1] + worker
        if is_distinct(code, shape[0] * shape[1]):
            return cls(task, worker, value, shape)
        pair, at = np.unique(code, return_inverse=True)
        mass = sum_by_group(at, weight, len(pair))
        sums = [sum_by_group(at, weight * column, len(pair)) for column in value.T]
        return cls(pair // shape[1], pair % shape[1], np.stack(sums, axis=1) / mass[:, None], shape)

    def by_judge(self, column: int) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of each judge's values; 0 and 1 by default."""
        value, n = self.value[:, column], self.shape[1]
        count = np.maximum(np.bincount(self.worker, minlength=n), 1)
        mean = sum_by_group(self.worker, value, n) / count
        square = sum_by_group(self.worker, (value - mean[self.worker]) ** 2, n) / count
        deviation = np.sqrt(square)
        return mean, np.where(deviation > 1e-9, deviation, 1.0)

    def standardize(self, column: int, mean: Floats, deviation: Floats) -> Ratings:
        """Return one column, in deviations from each judge's mean."""
        z = (self.value[:, column] - mean[self.worker]) / deviation[self.worker]
        return Ratings(self.task, self.worker, z[:, None], self.shape)

    def take(self, column: int) -> Ratings:
        """Return one column alone."""
        return replace(self, value=self.value[:, [column]])

    def shares(self, pseudo: tuple[float, float]) -> Floats:
        """Return the mean of each task's values, with some values of 1 and of 0 added."""
        total = sum_by_group(self.task, self.value[:, 0], self.shape[0]) + pseudo[0]
        return total / (np.bincount(self.task, minlength=self.shape[0]) + sum(pseudo))

    def join(self, group: Ints) -> Ratings:
        """Return the ratings of groups of judges, each the mean of its members' ratings."""
        shape = (self.shape[0], int(group.max(initial=-1)) + 1)
        if shape == self.shape:  # nothing to join
            return replace(self, worker=group[self.worker])
        weight = np.ones(len(self.task))
        return Ratings.average(self.task, group[self.worker], self.value, weight, shape)

    def table(self, column: int = 0) -> csr_array:
        """Return a table tasks x judges; 0 for no rating."""
        ends = np.cumsum(np.bincount(self.task, minlength=self.shape[0]))
        value = np.ascontiguousarray(self.value[:, column])
        return csr_array((value, self.worker, np.append(0, ends)), shape=self.shape)


@dataclass(frozen=True)
class Correlations:
    """Correlations of judges, and the number of tasks they are based on."""

    value: Floats  # (judge, judge)
    n_common: Floats  # (judge, judge)
    n_tasks: int

    @classmethod
    def of(cls, ratings: Ratings) -> Correlations:
        n_common, product, own = np.zeros((3, ratings.shape[1], ratings.shape[1]))
        for _, value, seen in dense_blocks(ratings.table()):
            product += value.T @ value
            n_common += seen.T @ seen
            own += (value**2).T @ seen  # squares of a judge on another's tasks
        scale = np.sqrt(own * own.T)
        value = np.divide(product, scale, out=np.zeros_like(scale), where=scale > 1e-12)
        np.fill_diagonal(value, 1.0)
        return cls(value.clip(-1.0, 1.0), n_common, ratings.shape[0])

    def shrink(self) -> Floats:
        """Return a proper correlation matrix, shrunk to the mean where judges share few tasks."""
        apart = ~np.eye(len(self.value), dtype=bool)
        seen = self.n_common[apart]
        usual = float((self.value[apart] * seen).sum() / max(seen.sum(), 1.0))
        value = (self.value * self.n_common + max(usual, 0.0) * USUAL) / (self.n_common + USUAL)
        np.fill_diagonal(value, 1.0)
        size, axes = np.linalg.eigh(value)
        if size[0] >= LEAST_NOISE / 2:
            return value
        value = (axes * size.clip(min=LEAST_NOISE / 2)) @ axes.T
        scale = np.sqrt(np.diag(value))
        return value / np.outer(scale, scale)

    def clones(self) -> Ints:
        """Number the judges, with the same number for those with the same ratings."""
        n = np.diag(self.n_common)
        same_tasks = (self.n_common >= n[:, None]) & (self.n_common >= n[None, :])
        identical = same_tasks & (self.value > 1 - 1e-9) & (self.n_common >= FEW // 3)
        alike = (self.value >= CLONES) & (self.n_common >= FEW)
        return number_parts(identical | alike)


def dense_blocks(table: csr_array) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield blocks of rows, their values, and 1 where there is a value."""
    size = max(CELLS_AT_ONCE // max(table.shape[1], 1), 1)
    for start in range(0, table.shape[0], size):
        rows = slice(start, min(start + size, table.shape[0]))
        first, last = table.indptr[rows.start], table.indptr[rows.stop]
        place = table.indices[first:last], table.indptr[rows.start : rows.stop + 1] - first
        shape = (rows.stop - rows.start, table.shape[1])
        value = csr_array((table.data[first:last], *place), shape=shape).toarray()
        if last - first == value.size:
            yield rows, value, np.ones(shape)
        else:
            yield rows, value, csr_array((np.ones(last - first), *place), shape=shape).toarray()


def is_distinct(code: Ints, most: int) -> bool:
    """Return whether no number occurs twice; numbers are below ``most``."""
    if most <= 8 * len(code):
        return bool(np.bincount(code, minlength=1).max() <= 1)
    order = np.sort(code)
    return not bool((order[1:] == order[:-1]).any())


def number_parts(linked: Array) -> Ints:
    """Number the nodes, with the same number if linked, directly or indirectly."""
    return connected_components(coo_array(linked), directed=False)[1].astype(np.int64)
