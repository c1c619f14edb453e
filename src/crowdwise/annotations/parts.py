"""Which annotations a part of the table keeps: one per worker and task, or random ones."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from crowdwise.annotations.columns import Columns
from crowdwise.errors import ParameterError
from crowdwise.typing import Array, Floats, Ints, RandomState


def count_repeats(table: Columns) -> int:
    """Annotations beyond the first of the same worker on the same task."""
    ones = np.ones(table.n_annotations, dtype=np.int8)
    shape = (table.n_tasks, max(table.n_workers, 1))
    pairs = csr_array((ones, table.worker.copy(), table.indptr.copy()), shape=shape)
    pairs.sum_duplicates()
    return table.n_annotations - pairs.nnz


def mask_repeats(table: Columns, keep: str) -> Array:
    """Which annotations stay when each worker may label a task only once."""
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
    key: Floats | Ints = np.arange(len(label))  # within a pair, the least key stays
    if keep == "last":
        key = -key
    elif keep == "majority":
        cell = group * table.n_classes + label[order]
        _, inverse, times = np.unique(cell, return_inverse=True, return_counts=True)
        key = -times[inverse].astype(np.float64)
    best = np.lexsort((np.arange(len(label)), key, group))
    mask = np.zeros(len(label), dtype=bool)
    mask[order[best[np.unique(group, return_index=True)[1]]]] = True
    return mask


def sample_per_task(indptr: Ints, redundancy: int, random_state: RandomState) -> Array:
    """Which annotations a random sample of at most ``redundancy`` per task keeps."""
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
    """Two sorted sets of numbers below ``n``, the second holding ``test_size`` of them."""
    n_test = round(n * test_size)
    if not 0 < n_test < n:
        raise ParameterError(
            f"test_size={test_size} leaves one side of {n:,} {what} empty.\n"
            "  expected: a fraction between 0 and 1 that leaves both sides some"
            "\n  fix:      give a fraction such as 0.2, or more data"
        )
    order = check_random_state(random_state).permutation(n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])
