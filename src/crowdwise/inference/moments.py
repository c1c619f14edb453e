"""Frequencies of workers' labels, alone and in pairs, and trimmed means over such pairs."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError, explain
from crowdwise.typing import Floats, Ints

NUMBERS_AT_ONCE = 1 << 22  # padded and sorted at once, to bound memory
MOST_PAIRS = 20_000**2  # non-zero second moments that fit in a few gigabytes


@dataclass(frozen=True)
class Moments:
    """Frequencies of workers' labels, alone and in pairs."""

    label: Floats  # (worker, label): share of all tasks with that label
    pair: csr_array  # (worker and label, worker and label): likewise; 0 within a worker


def moments_of(annotations: Annotations) -> Moments:
    """Compute first and second moments of the labels, from the sparse cells."""
    n_classes, cells = annotations.n_classes, annotations.cells
    n_codes = annotations.n_workers * n_classes
    refuse_size(n_codes, np.diff(cells.indptr))
    given = cells.matrix(0, annotations.n_tasks, n_codes)
    pair = (given.T @ given).tocoo() / annotations.n_tasks
    apart = pair.row // n_classes != pair.col // n_classes
    places = pair.row[apart], pair.col[apart]
    label = given.sum(axis=0).reshape(-1, n_classes) / annotations.n_tasks
    return Moments(label, csr_array((pair.data[apart], places), shape=pair.shape))


def refuse_size(n_codes: int, per_task: Ints) -> None:
    """Refuse second moments that would not fit into memory."""
    n_pairs = min(n_codes**2, int((per_task.astype(np.int64) ** 2).sum()))
    if n_pairs > MOST_PAIRS:
        raise ParameterError(
            explain(
                f"{n_codes:,} pairs of worker and label have {n_pairs:,} second moments.",
                expected=f"at most {MOST_PAIRS:,}",
                fix="choose a method that works from counts, such as DawidSkene",
            )
        )


def trimmed_mean(rows: csr_array, current: Floats, n_trimmed: int) -> Floats:
    """Return the mean of each row's stored values, without extremes relative to ``current``.

    Of the values above a row's ``current`` one, the largest ``n_trimmed`` are left out, or all
    if there are fewer; likewise below. If nothing is left, ``current`` stays.
    """
    if n_trimmed:
        total, kept = trimmed_sum(rows, current, n_trimmed)
    else:
        total, kept = rows.sum(axis=1), np.diff(rows.indptr)
    return np.divide(total, kept, out=current.copy(), where=kept > 0)


def trimmed_sum(rows: csr_array, current: Floats, n_trimmed: int) -> tuple[Floats, Ints]:
    """Return sum and number of the values that are left in each row."""
    degree = np.diff(rows.indptr)
    total, kept = np.zeros(len(degree)), np.zeros(len(degree), dtype=np.int64)
    place = np.arange(degree.max(initial=0))
    at_once = max(NUMBERS_AT_ONCE // max(len(place), 1), 1)
    for start in range(0, len(degree), at_once):
        some = slice(start, start + at_once)
        n, own = degree[some, None], current[some, None]
        at = np.minimum(rows.indptr[:-1][some, None] + place, rows.nnz - 1)
        block = np.sort(np.where(place < n, rows.data[at], np.inf), axis=1)
        below, above = block < own, (block > own) & (place < n)
        first = np.minimum(below.sum(axis=1), n_trimmed)
        last = degree[some] - np.minimum(above.sum(axis=1), n_trimmed)
        inside = (place >= first[:, None]) & (place < last[:, None])
        total[some], kept[some] = block.sum(axis=1, where=inside), inside.sum(axis=1)
    return total, kept
