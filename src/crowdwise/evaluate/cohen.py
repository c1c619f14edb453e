"""Cohen's kappa of two workers, and its average over all pairs."""

import logging
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError, explain
from crowdwise.evaluate.intervals import Estimate, check_interval, normal
from crowdwise.evaluate.label_counts import (
    WeightsLike,
    note_order,
    once_per_worker,
    weight_kernel,
)
from crowdwise.typing import AnnotationsLike, Floats, Ints, RandomState

log = logging.getLogger("crowdwise.evaluate")
MOST_ROWS = 1 << 22  # pairs of annotations held at once
MOST_WORKERS = 5000  # for a matrix of pairs


@dataclass(frozen=True)
class SharedTasks:
    """One row for each task that two workers share, for the pairs that share enough tasks.

    ``n_shared`` is the number of tasks, ``agree`` the similarity of their labels, and
    ``by_chance`` the same for labels drawn from both workers' shares (times ``n_shared``).
    """

    task: Ints  # (row,)
    pair: Ints  # (row,)
    similarity: Floats  # (row,): of the two labels
    pull: Floats  # (row,): its contribution to by_chance
    workers: Ints  # (pair, 2)
    n_shared: Floats  # (pair,)
    agree: Floats  # (pair,)
    by_chance: Floats  # (pair,)

    @property
    def kappa(self) -> Floats:
        """Return Cohen's kappa of each pair, NaN where chance alone always agrees."""
        room = self.n_shared**2 - self.by_chance
        out = np.full(len(room), np.nan)
        above = self.n_shared * self.agree - self.by_chance
        return np.divide(above, room, out=out, where=room > 1e-9 * self.n_shared**2)


def cohen_kappa(
    annotations: AnnotationsLike,
    *,
    weights: WeightsLike = "identity",
    min_overlap: int = 10,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> Estimate:
    """Average Cohen's kappa of all pairs of workers, weighted by how many tasks they share.

    Chance is estimated from each worker's own shares on the tasks that both labeled. The
    interval is a normal one around the average, from the influence of each task: a bootstrap
    would have to count every pair again each time.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Anything that :func:`crowdwise.io.as_annotations` accepts.
    weights : {"identity", "linear", "quadratic", "ratio"} or matrix, default="identity"
        How much a near miss counts as agreement.
    min_overlap : int, default=10
        Pairs that share fewer tasks are left out. Kappa is biased downward in small overlaps:
        by about a tenth of itself with 5 tasks and a twentieth with 10, and by more where
        classes are rare.
    n_resamples : int, default=1000
        0 for no interval; not used otherwise, see above.
    confidence : float, default=0.95
        Coverage of the interval.
    random_state : int or RandomState, default=0
        Random seed for sampling workers when there are too many pairs to use them all.

    References
    ----------
    Cohen (1960). A coefficient of agreement for nominal scales. Educational and
    Psychological Measurement 20(1). doi:10.1177/001316446002000104

    Examples
    --------
    >>> both_yes, both_no, only_one, only_other = [[1, 1]] * 20, [[0, 0]] * 15, [[1, 0]], [[0, 1]]
    >>> labels = both_yes + both_no + only_one * 5 + only_other * 10  # tasks x workers
    >>> print(f"{float(cohen_kappa(labels)):.2f}")
    0.40
    """
    data = once_per_worker(annotations)
    kernel = weight_kernel(weights, data.classes)
    return estimate_cohen(
        data,
        kernel,
        min_overlap=min_overlap,
        n_resamples=n_resamples,
        confidence=confidence,
        random_state=random_state,
    )


def cohen_kappa_matrix(
    annotations: AnnotationsLike, *, weights: WeightsLike = "identity", min_overlap: int = 1
) -> pd.DataFrame:
    """Return Cohen's kappa of all pairs of workers as a frame, worker x worker.

    NaN where two workers share fewer than ``min_overlap`` tasks, or both gave the same label to
    all of them, so that agreement cannot be distinguished from chance.
    """
    data = once_per_worker(annotations)
    kernel = weight_kernel(weights, data.classes)
    if order := note_order(kernel, data.classes):
        log.warning("Cohen's kappa: %s", order)
    if data.n_workers > MOST_WORKERS:
        raise ParameterError(
            explain(
                f"A matrix of {data.n_workers:,} workers is too large.",
                expected=f"at most {MOST_WORKERS:,}",
                fix="select some with annotations.select_workers([…])",
            )
        )
    pairs = shared_tasks(data, kernel, min_overlap)
    matrix = np.full((data.n_workers, data.n_workers), np.nan)
    first, second = pairs.workers.T
    matrix[first, second] = matrix[second, first] = pairs.kappa
    np.fill_diagonal(matrix, 1.0)
    names = pd.Index(data.workers, name="worker")
    return pd.DataFrame(matrix, index=names, columns=names.rename("other"))


def estimate_cohen(
    data: Annotations,
    kernel: Floats | None,
    *,
    min_overlap: int = 10,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> Estimate:
    """Do what :func:`cohen_kappa` does, for annotations with one label per worker and task."""
    check_interval(n_resamples, confidence)
    sample, sampled = sample_workers(data, random_state)
    note = " ".join(filter(None, [sampled, note_order(kernel, data.classes)]))
    pairs = shared_tasks(sample, kernel, min_overlap)
    kappa = pairs.kappa
    if not np.isfinite(kappa).any():
        return Estimate(np.nan, note=_why_none(pairs, min_overlap))
    value, influence = average_kappa(pairs, kappa)
    n_tasks = len(influence)
    if not n_resamples or n_tasks < 2:
        return Estimate(value, n_tasks=n_tasks, note=note)
    error = np.sqrt(n_tasks / (n_tasks - 1) * np.sum(influence**2))
    low, high = normal(value, float(error), confidence)
    return Estimate(value, max(low, -1.0), min(high, 1.0), n_tasks, note)


def average_kappa(pairs: SharedTasks, kappa: Floats) -> tuple[float, Floats]:
    """Return mean kappa weighted by overlap, and the influence of each task on it."""
    defined = np.isfinite(kappa)
    total = pairs.n_shared[defined].sum()
    value = float((pairs.n_shared * kappa)[defined].sum() / total)
    row = defined[pairs.pair]
    task, at = pairs.task[row], pairs.pair[row]
    n, agree, by_chance = pairs.n_shared[at], pairs.agree[at], pairs.by_chance[at]
    above, room = n * agree - by_chance, n**2 - by_chance
    rise = agree + n * pairs.similarity[row] - pairs.pull[row]  # change of the numerator
    slope = (rise * room - above * (2 * n - pairs.pull[row])) / room**2
    moved = (kappa[at] + n * slope - value) / total
    _, number = np.unique(task, return_inverse=True)
    return value, np.bincount(number, moved).astype(np.float64)


def shared_tasks(data: Annotations, kernel: Floats | None, min_overlap: int) -> SharedTasks:
    """List all tasks that two workers share, for pairs that share ``min_overlap`` or more."""
    busy = np.bincount(data.worker, minlength=data.n_workers) >= min_overlap
    data = data.filter(busy[data.worker])
    first, second = _rows_of_pairs(data)
    key = data.worker[first].astype(np.int64) * data.n_workers + data.worker[second]
    found, pair, n_shared = np.unique(key, return_inverse=True, return_counts=True)
    keep = n_shared >= min_overlap
    row = keep[pair]
    first, second, pair = first[row], second[row], (np.cumsum(keep) - 1)[pair[row]]
    n_classes, n_pairs = data.n_classes, int(keep.sum())
    one, other = data.label[first].astype(np.int64), data.label[second].astype(np.int64)
    shape = (n_pairs, max(n_classes, 1))
    by_one, by_other = (
        csr_array((np.ones(len(pair)), (pair, label)), shape=shape) for label in (one, other)
    )
    seen_one = by_one if kernel is None else csr_array(by_one @ kernel)
    seen_other = by_other if kernel is None else csr_array(by_other @ kernel.T)
    similarity = (one == other).astype(np.float64) if kernel is None else kernel[one, other]
    return SharedTasks(
        task=data.task[first],
        pair=pair,
        similarity=similarity,
        pull=_cells(seen_other, pair, one) + _cells(seen_one, pair, other),
        workers=np.column_stack(np.divmod(found[keep], max(data.n_workers, 1))),
        n_shared=n_shared[keep].astype(np.float64),
        agree=np.bincount(pair, similarity, minlength=n_pairs).astype(np.float64),
        by_chance=np.asarray(seen_one.multiply(by_other).sum(axis=1), dtype=np.float64),
    )


def sample_workers(data: Annotations, random_state: RandomState) -> tuple[Annotations, str]:
    """Return all annotations, or those of random workers if there are too many pairs.

    Whole workers are drawn, so that all pairs are equally likely.
    """
    size = data.redundancy.astype(np.float64)
    n_rows = float(np.sum(size * (size - 1)) / 2)
    if n_rows <= MOST_ROWS:
        return data, ""
    n_kept = max(int(data.n_workers * np.sqrt(MOST_ROWS / n_rows)), 2)
    chosen = check_random_state(random_state).permutation(data.n_workers)[:n_kept]
    kept = np.isin(np.arange(data.n_workers), chosen)
    note = f"From {n_kept:,} of {data.n_workers:,} workers, drawn at random."
    return data.filter(kept[data.worker]), note


def _rows_of_pairs(data: Annotations) -> tuple[Ints, Ints]:
    """Return all pairs of annotations of one task, the lower worker number first."""
    size, firsts, seconds = data.redundancy, [], []
    for redundancy in np.unique(size[size > 1]).tolist():
        start = data.indptr[:-1][size == redundancy][:, None]
        one, other = np.triu_indices(redundancy, 1)
        firsts.append((start + one).reshape(-1))
        seconds.append((start + other).reshape(-1))
    nothing = np.zeros(0, dtype=np.int64)
    first, second = np.concatenate([nothing, *firsts]), np.concatenate([nothing, *seconds])
    swapped = data.worker[first] > data.worker[second]
    return np.where(swapped, second, first), np.where(swapped, first, second)


def _cells(table: csr_array, row: Ints, column: Ints) -> Floats:
    """Return the values at many (row, column) positions."""
    table.sum_duplicates()
    table.sort_indices()
    width = table.shape[1]
    place = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr)) * width + table.indices
    at = np.searchsorted(place, row * width + column)
    at = np.minimum(at, max(len(place) - 1, 0))
    if not len(place):
        return np.zeros(len(row))
    return np.where(place[at] == row * width + column, table.data[at], 0.0)


def _why_none(pairs: SharedTasks, min_overlap: int) -> str:
    if not len(pairs.n_shared):
        return f"No two workers share {min_overlap} tasks or more."
    return "All pairs of workers with shared tasks gave one and the same label to all of them."
