"""The two steps of truth inference, over blocks of tasks, on all cores.

Every model with a table ``log P(label | truth)`` per worker shares them:

* E-step: ``posterior = softmax(log prior + cells @ table)``
* counts: ``cells.T @ posterior``, which add up over blocks of tasks.

``cells`` is the sparse matrix of :meth:`crowdwise.annotations.Annotations.cells`, one row a task
and one column a (worker, label) pair. A compiled twin of both runs when the package was
built with a C compiler; set ``CROWDWISE_NATIVE=0`` to do without.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from crowdwise.annotations import Annotations, Cells
from crowdwise.compiled import native
from crowdwise.inference.simplex import TIE, gold_mask
from crowdwise.typing import Floats, Ints

MOST_BLOCKS = 16
CELLS_A_BLOCK = 1 << 17


@dataclass(frozen=True)
class Pass:
    """What one pass over the tasks leaves behind."""

    evidence: float  # sum over tasks of log P(labels)
    truths: Floats  # (truth,): expected number of tasks of each truth
    counts: Floats  # (worker, truth, label): expected label counts
    posterior: Floats  # (task, truth), empty unless asked for


def em_pass(
    cells: Cells,
    log_prior: Floats,
    log_confusion: Floats,
    *,
    offset: Floats | None = None,
    hard: bool = False,
    counting: bool = True,
    keep: bool = False,
) -> Pass:
    """One E-step and the counts that the next M-step needs, in a single sweep.

    Parameters
    ----------
    cells : Cells
        The annotations as a sparse matrix, one row a task.
    log_prior : ndarray of shape (n_truths,)
        Log prior of each truth.
    log_confusion : ndarray of shape (n_workers, n_truths, n_labels)
        Log P(label | truth) of each worker; need not be normalised.
    offset : ndarray of shape (n_tasks, n_truths), optional
        Added to each task's log joint; ``-inf`` rules a truth out (gold labels).
    hard : bool, default=False
        Give all of a task's mass to its best truth, shared between ties. Rounding does not
        break a tie: sums of the same terms in another order count as equal.
    counting, keep : bool
        Whether to count labels, and to keep the posterior.
    """
    n_truths = len(log_prior)
    table = np.ascontiguousarray(log_confusion.swapaxes(1, 2)).reshape(-1, n_truths)
    task_by_truth = (cells.n_tasks, n_truths)
    posterior = np.empty(task_by_truth if keep else (0, n_truths))
    blocks = block_edges(cells, table.size if counting else 0)
    sums = [(np.zeros(n_truths), np.zeros_like(table if counting else table[:0])) for _ in blocks]
    prior = np.ascontiguousarray(log_prior, dtype=np.float64)
    if offset is not None:
        offset = np.ascontiguousarray(offset, dtype=np.float64)

    def work(number: int) -> float:
        start, stop = blocks[number]
        truths, counts = sums[number]
        args = (prior, table, offset, posterior, truths, counts, start, stop, hard)
        return (_native_pass if native() else _plain_pass)(cells, *args)

    evidence = sum(_each(work, len(blocks)))
    truths, counts = (sum(parts[1:], start=parts[0]) for parts in zip(*sums, strict=True))
    return Pass(evidence, truths, _by_worker(counts, log_confusion.shape), posterior)


def posterior_of(
    annotations: Annotations, prior: Floats, confusion: Floats, gold: Ints | None = None
) -> Floats:
    """P(truth | labels) when workers have confusion matrices."""
    mask = gold_mask(gold, len(prior))
    with np.errstate(divide="ignore"):
        tables = np.log(prior), np.log(confusion)
    return em_pass(annotations.cells, *tables, offset=mask, counting=False, keep=True).posterior


def count(cells: Cells, posterior: Floats, n_workers: int, n_labels: int) -> Floats:
    """Count labels per worker and truth, ``(worker, truth, label)``. Adds up over blocks."""
    n_truths = posterior.shape[1]
    posterior = np.ascontiguousarray(posterior, dtype=np.float64)
    shape = (n_workers * n_labels, n_truths)
    blocks = block_edges(cells, shape[0] * n_truths)
    sums = [np.zeros(shape) for _ in blocks]
    compiled = native()

    def work(number: int) -> None:
        start, stop = blocks[number]
        if compiled:
            columns = (cells.indptr, cells.code, cells.value)
            compiled.count(*columns, posterior, sums[number], start, stop, n_truths)
        else:
            block = cells.matrix(start, stop, shape[0])
            sums[number] += block.T @ posterior[start:stop]

    _each(work, len(blocks))
    return _by_worker(sum(sums[1:], start=sums[0]), (n_workers, n_truths, n_labels))


def block_edges(cells: Cells, table_size: int) -> list[tuple[int, int]]:
    """Cut the tasks into blocks of about as many cells.

    The cut depends on the data alone, never on the number of cores, so that sums are
    added in one order and results are the same everywhere.
    """
    n_cells = len(cells.code)
    worth = n_cells // max(CELLS_A_BLOCK, 4 * table_size)
    n_blocks = min(1 << (max(worth, 1).bit_length() - 1), MOST_BLOCKS)  # a power of two
    targets = np.linspace(0, n_cells, n_blocks + 1)[1:-1]
    edges = [0, *np.searchsorted(cells.indptr, targets), cells.n_tasks]
    return [(int(start), int(stop)) for start, stop in pairwise(edges)]


def _native_pass(cells: Cells, prior: Floats, table: Floats, *rest: Any) -> float:
    offset, posterior, truths, counts, start, stop, hard = rest
    columns = (cells.indptr, cells.code, cells.value)
    compiled = native()
    assert compiled is not None
    return float(
        compiled.em_pass(
            *columns, prior, table, offset, posterior, truths, counts, start, stop, hard
        )
    )


def _plain_pass(cells: Cells, prior: Floats, table: Floats, *rest: Any) -> float:
    offset, posterior, truths, counts, start, stop, hard = rest
    block: csr_array = cells.matrix(start, stop, len(table))
    joint = block @ table + prior  # (task, truth)
    if offset is not None:
        joint += offset[start:stop]
    top = joint.max(axis=1, keepdims=True)
    np.subtract(joint, top, out=joint)
    share = (joint >= -TIE).astype(np.float64) if hard else np.exp(joint)
    total = share.sum(axis=1, keepdims=True)
    share /= total
    truths += share.sum(axis=0)
    if len(posterior):
        posterior[start:stop] = share
    if len(counts):
        counts += block.T @ share
    return float(top.sum() + (0.0 if hard else np.log(total).sum()))


def _by_worker(counts: Floats, shape: tuple[int, ...]) -> Floats:
    n_workers, n_truths, n_labels = shape
    if not len(counts):
        return np.empty((0, n_truths, n_labels))
    return counts.reshape(n_workers, n_labels, n_truths).swapaxes(1, 2)


def _each(work: Any, n: int) -> list[Any]:
    """``[work(0), …, work(n - 1)]``, in threads when there is more than one."""
    if n == 1:
        return [work(0)]
    with ThreadPoolExecutor(min(n, os.cpu_count() or 1)) as pool:
        return list(pool.map(work, range(n)))
