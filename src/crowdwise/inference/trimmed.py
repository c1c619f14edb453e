"""Trimmed means of the rows of a sparse matrix."""

import numpy as np
from scipy.sparse import csr_array

from crowdwise.typing import Floats, Ints

NUMBERS_AT_ONCE = 1 << 22  # padded and sorted in one go, to bound memory


def trimmed_mean(rows: csr_array, current: Floats, n_trimmed: int) -> Floats:
    """Mean of the stored values of each row, without the extremes beyond ``current``.

    Of the values above a row's ``current`` one the largest ``n_trimmed`` are left out, all if
    there are fewer; likewise below. Where nothing is left, ``current`` stays.
    """
    if n_trimmed:
        total, kept = trimmed_sum(rows, current, n_trimmed)
    else:
        total, kept = rows.sum(axis=1), np.diff(rows.indptr)
    return np.divide(total, kept, out=current.copy(), where=kept > 0)


def trimmed_sum(rows: csr_array, current: Floats, n_trimmed: int) -> tuple[Floats, Ints]:
    """Sum and number of the values that are left in each row."""
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
