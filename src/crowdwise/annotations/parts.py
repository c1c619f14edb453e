"""Parts of a table: some tasks or workers, one annotation per worker and task, or a sample."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.utils import check_random_state

from crowdwise.annotations.columns import Columns
from crowdwise.annotations.names import locate
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.typing import Array, Floats, Ints, Names, RandomState


class Parts(Columns):
    """Columns from which parts can be taken; parts keep the names of workers and classes."""

    def select_workers(self, workers: Names) -> Self:
        """Keep only the annotations by these workers (names); all tasks and names stay."""
        found = locate(self.workers, workers)
        if (found < 0).any():
            unknown = list(workers)[int((found < 0).argmax())]
            raise AnnotationError(
                explain(
                    f"There is no worker {unknown!r}.",
                    expected=f"one of the {self.n_workers:,} names in .workers",
                    fix="check the spelling, and whether names are numbers or text",
                )
            )
        return self.filter(np.isin(self.worker, found))

    def nonempty(self) -> Self:
        """Keep only the tasks with at least one annotation."""
        return self[np.flatnonzero(self.redundancy)]

    def split_tasks(
        self, test_size: float = 0.25, random_state: RandomState = None
    ) -> tuple[Self, Self]:
        """Split in two at random, by whole tasks."""
        train, test = split(self.n_tasks, test_size, random_state, "tasks")
        return self[train], self[test]

    def split_workers(
        self, test_size: float = 0.25, random_state: RandomState = None
    ) -> tuple[Self, Self]:
        """Split in two at random, by whole workers; both parts keep all tasks."""
        train, test = split(self.n_workers, test_size, random_state, "workers")
        return self.filter(np.isin(self.worker, train)), self.filter(np.isin(self.worker, test))

    def subsample(self, redundancy: int, random_state: RandomState = None) -> Self:
        """Keep at most ``redundancy`` random annotations of every task."""
        return self.filter(sample_per_task(self.indptr, redundancy, random_state))

    def without_repeats(self, keep: str = "first") -> Self:
        """Keep one annotation per worker and task: the ``first``, ``last`` or ``majority`` one.

        First and last go by ``time`` if known, else by the order of the rows.
        """
        return self.filter(mask_repeats(self, keep))


def mask_repeats(table: Columns, keep: str) -> Array:
    """Return which annotations stay if each worker may label a task only once."""
    if keep not in ("first", "last", "majority"):
        raise ParameterError(
            f"keep={keep!r} is unknown.\n  expected: first, last or majority"
            "\n  fix:      give keep='majority'"
        )
    task, worker, label = table.task, table.worker, table.label
    place = np.arange(len(label)) if table.time is None else table.time
    order = np.lexsort((np.arange(len(label)), place, worker, task))
    pair_changes = (np.diff(task[order]) != 0) | (np.diff(worker[order]) != 0)
    group = np.concatenate([[0], np.cumsum(pair_changes)])[: len(label)]
    key: Floats | Ints = np.arange(len(label))  # of each pair, the smallest key stays
    if keep == "last":
        key = -key
    elif keep == "majority":
        cell = group * table.n_classes + label[order]
        counts = np.ones(len(label)) if table.weight is None else table.weight[order] > 0
        _, inverse = np.unique(cell, return_inverse=True)
        key = -np.bincount(inverse, counts)[inverse]
    idle = np.zeros(len(label)) if table.weight is None else table.weight[order] == 0
    best = np.lexsort((np.arange(len(label)), key, idle, group))  # what counts comes first
    mask = np.zeros(len(label), dtype=bool)
    mask[order[best[np.unique(group, return_index=True)[1]]]] = True
    return mask


def sample_per_task(indptr: Ints, redundancy: int, random_state: RandomState) -> Array:
    """Return a random sample of at most ``redundancy`` annotations per task, as a mask."""
    if redundancy < 1:
        raise ParameterError(
            f"redundancy={redundancy} is too small.\n  expected: 1 or more"
            "\n  fix:      keep at least one label per task"
        )
    n = int(indptr[-1])
    task = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((check_random_state(random_state).random_sample(n), task))
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n) - indptr[:-1][task]
    return rank < redundancy


def split(n: int, test_size: float, random_state: RandomState, what: str) -> tuple[Ints, Ints]:
    """Split the numbers below ``n`` into two sorted sets, the second of size ``test_size``."""
    n_test = round(n * test_size)
    if not 0 < n_test < n:
        raise ParameterError(
            f"test_size={test_size} leaves one side of {n:,} {what} empty.\n"
            "  expected: a fraction between 0 and 1 that leaves neither side empty"
            "\n  fix:      give a fraction such as 0.2, or more data"
        )
    order = check_random_state(random_state).permutation(n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])
