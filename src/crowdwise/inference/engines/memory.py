"""The engine of one machine: annotations in memory, swept over in blocks on all cores.

* E-step: ``posterior = softmax(log prior + cells @ table)``
* counts: ``cells.T @ posterior``, which add up over blocks of tasks.

``cells`` is the sparse matrix :attr:`crowdwise.annotations.Annotations.cells`, with one row per
task and one column per (worker, label) pair. A compiled twin of both runs when the package was
built with a C compiler; set ``CROWDWISE_NATIVE=0`` to do without.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from crowdwise import compiled
from crowdwise.annotations import TIE, Annotations, Cells
from crowdwise.inference.engines.engine import CoinSums, Engine, Posterior, Spread, Sums, Sweep
from crowdwise.inference.simplex import clamp, gold_mask, normalize
from crowdwise.typing import Array, Floats, Ints

MOST_BLOCKS = 16
CELLS_PER_BLOCK = 1 << 17

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class MemoryEngine:
    """Annotations in memory, with the gold class of each task (-1 for none)."""

    annotations: Annotations
    gold: Ints | None = None
    n_threads: int | None = None  # as many as there are cores
    _masks: dict[int, Floats | None] = field(default_factory=dict, repr=False)

    @property
    def workers(self) -> Array:
        return self.annotations.workers

    @property
    def n_tasks(self) -> int:
        return self.annotations.n_tasks

    @property
    def n_workers(self) -> int:
        return self.annotations.n_workers

    @property
    def n_classes(self) -> int:
        return self.annotations.n_classes

    def labels_per_worker(self) -> Ints:
        return np.bincount(self.annotations.worker, minlength=self.n_workers)

    def tally_votes(self, spread: Spread | None = None) -> Sums:
        shares = clamp(self.annotations.shares(), self.gold)
        posterior = shares if spread is None else spread(shares)
        return Sums(0.0, posterior.sum(axis=0), self.count(posterior))

    def sweep(self, log_prior: Floats, log_confusion: Floats, *, hard: bool = False) -> Sums:
        offset = self._mask(len(log_prior))
        cells, threads = self.annotations.cells, self.n_threads
        return sweep(cells, log_prior, log_confusion, offset, hard=hard, n_threads=threads)

    def tally_coins(self) -> CoinSums:
        return CoinSums.of(self.tally_votes())

    def sweep_coins(
        self, log_prior: Floats, right: Floats, wrong: Floats, *, hard: bool = False
    ) -> CoinSums:
        return CoinSums.of(self.sweep(log_prior, self._coin_table(right, wrong), hard=hard))

    def coin_posterior(self, log_prior: Floats, right: Floats, wrong: Floats) -> Posterior:
        return self.posterior(log_prior, self._coin_table(right, wrong))

    def _coin_table(self, right: Floats, wrong: Floats) -> Floats:
        same = np.eye(self.n_classes, dtype=bool)
        return np.where(same, right[:, None, None], wrong[:, None, None])

    def posterior(self, log_prior: Floats, log_confusion: Floats) -> Floats:
        tables = self.annotations.cells, log_prior, log_confusion, self._mask(len(log_prior))
        found = sweep(*tables, counting=False, keep=True, n_threads=self.n_threads).posterior
        n_truths, n_classes = len(log_prior), self.n_classes
        if n_truths == n_classes:
            return found
        return found.reshape(-1, n_classes, n_truths // n_classes).sum(axis=2)

    def expect(self, log_class: Floats, log_confusion: Floats) -> Sweep:
        """Sweep with a log prior per task, (task, class), and keep the posterior."""
        mask = self._mask(self.n_classes)
        offset = log_class if mask is None else log_class + mask
        no_prior = np.zeros(self.n_classes)
        tables = self.annotations.cells, no_prior, log_confusion, offset
        return sweep(*tables, keep=True, n_threads=self.n_threads)

    def count(self, posterior: Floats) -> Floats:
        """Expected label counts under a posterior, ``counts[worker, truth, label]``."""
        sizes = self.n_workers, self.n_classes
        return count(self.annotations.cells, posterior, *sizes, n_threads=self.n_threads)

    def shares(self, weights: Floats | None = None, *, soft: bool = True) -> Floats:
        own = self.annotations.weight
        if weights is not None:
            own = weights[self.annotations.worker] * (1.0 if own is None else own)
        distributions = self.annotations.soft if soft else None
        return replace(self.annotations, weight=own, soft=distributions).shares()

    def signed_shares(self, weights: Floats) -> Floats:
        # Lifting all classes of a task alike leaves the winner of the plain weighted sum.
        own = weights[self.annotations.worker]
        if self.annotations.weight is not None:
            own = own * self.annotations.weight
        votes = replace(self.annotations, weight=own).votes()  # (task, class)
        if (weights < 0).any():
            against = np.bincount(self.annotations.task, np.minimum(own, 0.0), self.n_tasks)
            votes = np.maximum(votes - against[:, None], 0.0)
        light = votes.sum(axis=1) <= 0
        if light.any():
            votes[light] = self.annotations[light].votes()
        return normalize(votes)

    def collect(self) -> tuple[Annotations, Ints | None]:
        return self.annotations, self.gold

    def _mask(self, n_truths: int) -> Floats | None:
        """Log of 0 for every truth that gold rules out, of each task."""
        if n_truths not in self._masks:
            mask = gold_mask(self.gold, self.n_classes)
            if mask is not None and n_truths != self.n_classes:
                mask = np.repeat(mask, n_truths // self.n_classes, axis=1)
            self._masks[n_truths] = mask
        return self._masks[n_truths]


def engine_for(annotations: Annotations, gold: Ints | None = None) -> Engine:
    """The engine that suits the annotations."""
    return MemoryEngine(annotations, gold)


def count_labels(annotations: Annotations, posterior: Floats, row: Ints | None = None) -> Floats:
    """Expected label counts under a posterior, ``(worker, truth, label)``.

    With ``row``, workers are counted in the rows of these numbers instead: several of them
    together where the number is the same, and not at all where it is negative.
    """
    if row is not None:
        place = row[annotations.worker]
        annotations = annotations.filter(place >= 0)
        names = np.arange(row.max(initial=-1) + 1)
        worker = place[place >= 0].astype(np.int32)
        annotations = replace(annotations, workers=names, worker=worker)
    return MemoryEngine(annotations).count(posterior)


def pooled_confusion(annotations: Annotations, posterior: Floats, pooling: float = 1.0) -> Floats:
    """P(label | truth) of each worker by counting, ``(worker, truth, label)``.

    Each row gets ``pooling`` labels of the crowd's confusion, so that no worker is ever
    certain.
    """
    counts = count_labels(annotations, posterior)
    crowd = normalize(counts.sum(axis=0) + 1.0 / annotations.n_classes)
    return normalize(counts + pooling * crowd)


@dataclass(frozen=True)
class Tables:
    """What every block of a sweep reads, and the posterior that it writes."""

    cells: Cells
    log_prior: Floats  # (truth,)
    log_label: Floats  # (worker and label, truth)
    offset: Floats | None  # (task, truth): added to each task's log joint
    posterior: Floats  # (task, truth), empty unless it is kept
    hard: bool


def sweep(
    cells: Cells,
    log_prior: Floats,
    log_confusion: Floats,
    offset: Floats | None = None,
    *,
    hard: bool = False,
    counting: bool = True,
    keep: bool = False,
    n_threads: int | None = None,
) -> Sweep:
    """One E-step and its counts, and the posterior if it is kept; see :class:`Engine`.

    ``offset`` is added to each task's log joint, (task, truth); ``-inf`` rules a truth out.
    """
    n_workers, n_truths, n_labels = log_confusion.shape
    table = np.ascontiguousarray(log_confusion.swapaxes(1, 2)).reshape(-1, n_truths)
    posterior = np.empty((cells.n_tasks if keep else 0, n_truths))
    if offset is not None:
        offset = np.ascontiguousarray(offset, dtype=np.float64)
    prior = np.ascontiguousarray(log_prior, dtype=np.float64)
    tables = Tables(cells, prior, table, offset, posterior, hard)
    blocks = block_edges(cells, table.size if counting else 0)
    sums = [(np.zeros(n_truths), np.zeros_like(table if counting else table[:0])) for _ in blocks]

    def work(number: int) -> float:
        return sweep_block(tables, *sums[number], *blocks[number])

    evidence = sum(_each(work, len(blocks), n_threads))
    truths, counts = (sum(parts[1:], start=parts[0]) for parts in zip(*sums, strict=True))
    by_worker = counts.reshape(n_workers if counting else 0, n_labels, n_truths).swapaxes(1, 2)
    return Sweep(evidence, truths, by_worker, posterior)


def sweep_block(tables: Tables, truths: Floats, counts: Floats, start: int, stop: int) -> float:
    """Sweep the tasks from ``start`` to ``stop``: add to the sums, return the evidence."""
    cells, prior, table = tables.cells, tables.log_prior, tables.log_label
    offset, posterior, hard = tables.offset, tables.posterior, tables.hard
    if compiled.native:
        columns = (cells.indptr, cells.code, cells.value, prior, table, offset)
        return float(
            compiled.native.em_pass(*columns, posterior, truths, counts, start, stop, hard)
        )
    block = cells.matrix(start, stop, len(table))
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


def count(
    cells: Cells,
    posterior: Floats,
    n_workers: int,
    n_labels: int,
    *,
    n_threads: int | None = None,
) -> Floats:
    """Count labels per worker and truth, ``(worker, truth, label)``. Adds up over blocks."""
    n_truths = posterior.shape[1]
    posterior = np.ascontiguousarray(posterior, dtype=np.float64)
    shape = (n_workers * n_labels, n_truths)
    blocks = block_edges(cells, shape[0] * n_truths)
    sums = [np.zeros(shape) for _ in blocks]

    def work(number: int) -> None:
        start, stop = blocks[number]
        if compiled.native:
            columns = (cells.indptr, cells.code, cells.value)
            compiled.native.count(*columns, posterior, sums[number], start, stop, n_truths)
        else:
            block = cells.matrix(start, stop, shape[0])
            sums[number] += block.T @ posterior[start:stop]

    _each(work, len(blocks), n_threads)
    counts = sum(sums[1:], start=sums[0])
    return counts.reshape(n_workers, n_labels, n_truths).swapaxes(1, 2)


def block_edges(cells: Cells, table_size: int) -> list[tuple[int, int]]:
    """Cut the tasks into blocks of about as many cells.

    The cut depends on the data alone, never on the number of cores, so that sums are
    added in one order and results are the same everywhere.
    """
    n_cells = len(cells.code)
    worth = n_cells // max(CELLS_PER_BLOCK, 4 * table_size)
    n_blocks = min(1 << (max(worth, 1).bit_length() - 1), MOST_BLOCKS)  # a power of two
    if n_blocks == 1:
        return [(0, cells.n_tasks)]
    targets = np.linspace(0, n_cells, n_blocks + 1)[1:-1]
    edges = [0, *np.searchsorted(cells.indptr, targets), cells.n_tasks]
    return [(int(start), int(stop)) for start, stop in pairwise(edges)]


def _each(work: Callable[[int], Result], n: int, n_threads: int | None) -> list[Result]:
    """``[work(0), …, work(n - 1)]``, in threads when there is more than one."""
    if n_threads is None and n > 1:  # asking takes as long as a small sweep
        n_threads = os.cpu_count()
    if n == 1 or n_threads in (None, 1):
        return [work(number) for number in range(n)]
    with ThreadPoolExecutor(min(n, n_threads)) as pool:
        return list(pool.map(work, range(n)))
