"""The engine of one machine: annotations in memory, swept in blocks on all cores.

* E-step: ``posterior = softmax(log prior + cells @ table)``
* counts: ``cells.T @ posterior``, which add up over blocks of tasks.

``cells`` is a sparse matrix with one row per task and one column per (worker, label) pair; see
:attr:`crowdwise.annotations.Annotations.cells`. A compiled twin of both runs if the package
was built with a C compiler; set ``CROWDWISE_NATIVE=0`` to disable it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from crowdwise.annotations import Annotations, Cells, Pairs
from crowdwise.inference.engines.blocks import Parts, add_up, cut_tasks, in_order
from crowdwise.inference.engines.engine import Sweep
from crowdwise.inference.engines.kernels import NO_TASKS, Block, count_block, sweep_block
from crowdwise.inference.engines.sweeps import BlockSweeps, Edges, Fill
from crowdwise.inference.simplex import normalize
from crowdwise.typing import Array, Floats, Ints


@dataclass(frozen=True, eq=False)
class MemoryEngine(BlockSweeps):
    """Annotations in memory, with the gold class of each task (-1 for none)."""

    annotations: Annotations
    gold: Ints | None = None
    n_threads: int | None = None  # by default one per core

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

    @property
    def pairs(self) -> Pairs:
        return self.annotations.pairs

    def labels_per_worker(self) -> Ints:
        return np.bincount(self.annotations.worker, minlength=self.n_workers)

    def expect(self, log_class: Floats, log_confusion: Floats) -> Sweep:
        """Sweep with a log prior per task, (task, class), and keep the posterior."""
        prior, table = np.zeros(self.n_classes), self._every.take(self._weigh_all(log_confusion))
        posterior = np.empty((self.n_tasks, self.n_classes))
        log_class = np.ascontiguousarray(log_class, dtype=np.float64)

        def one(edges: Edges) -> Parts:
            block, some = self._block(edges, self.annotations.cells, self._every), slice(*edges)
            mask, truths, counts = (
                block.mask(len(prior)),
                np.zeros_like(prior),
                np.zeros_like(table),
            )
            offset = log_class[some] if mask is None else log_class[some] + mask
            out = posterior[some]
            evidence = sweep_block(block, prior, table, offset, truths, counts, out)
            return np.array([evidence]), truths, counts

        blocks = cut_cells(self.annotations.cells, table.size)
        evidence, truths, counts = add_up(in_order(one, blocks, self.n_threads))
        by_worker = self._weigh_all(self._every.spread(counts))
        return Sweep(float(evidence[0]), truths, by_worker, posterior)

    def count(self, posterior: Floats) -> Floats:
        """Return expected label counts under a posterior, ``counts[worker, truth, label]``."""
        sizes = self.n_workers, self.n_classes
        counts = count(self.annotations.cells, posterior, *sizes, n_threads=self.n_threads)
        return self._weigh_all(counts)

    def shares(self, weights: Floats | None = None, *, soft: bool = True) -> Floats:
        own = self._weights(weights)
        distributions = self.annotations.soft if soft else None
        return replace(self.annotations, weight=own, soft=distributions).shares()

    def signed_shares(self, weights: Floats) -> Floats:
        # Raising all classes of a task equally does not change the winner of the weighted sum.
        own = np.asarray(self._weights(weights))
        votes = replace(self.annotations, weight=own).votes()  # (task, class)
        if (weights < 0).any():
            against = np.bincount(self.annotations.task, np.minimum(own, 0.0), self.n_tasks)
            votes = np.maximum(votes - against[:, None], 0.0)
        light = votes.sum(axis=1) <= 0
        if light.any():
            votes[light] = self.annotations[light].votes()
        return normalize(votes)

    def collect(self) -> tuple[Annotations, Ints | None]:
        if self.worker_weights is None:
            return self.annotations, self.gold
        return replace(self.annotations, weight=self._weights()), self.gold

    def reweighted(
        self, weights: Floats, hidden: Ints = NO_TASKS, n_threads: int | None = None
    ) -> Self:
        other = super().reweighted(weights, hidden, n_threads)
        if self.gold is not None and len(hidden):
            gold = self.gold.copy()
            gold[hidden] = -1
            vars(other).pop("_codes", None)
            vars(other)["gold"] = gold
        return other

    def _weights(self, weights: Floats | None = None) -> Floats | None:
        """Weight of each annotation, where workers count by these weights too."""
        own = self.annotations.weight
        for more in (weights, self.worker_weights):
            if more is not None:
                own = more[self.annotations.worker] * (1.0 if own is None else own)
        return own

    @cached_property
    def _every(self) -> Pairs:
        return Pairs.all_of(self.n_workers, self.n_classes)

    @cached_property
    def _codes(self) -> Ints | None:
        """The gold classes as the compiled loops expect them; None if there are none."""
        if self.gold is None or not (self.gold >= 0).any():
            return None
        return np.ascontiguousarray(self.gold, dtype=np.int32)

    def _weigh_all(self, table: Floats) -> Floats:
        """Do :meth:`_weigh` for a table of all pairs, (worker, truth, label)."""
        if self.worker_weights is None:
            return table
        return table * self.worker_weights[:, None, None]

    def _cut(self, table_size: int) -> list[Edges]:
        return cut_cells(self.annotations.pair_cells, table_size)

    def _load(self, edges: Edges) -> Block:
        return self._block(edges, self.annotations.pair_cells, self.pairs)

    def _block(self, edges: Edges, cells: Cells, pairs: Pairs) -> Block:
        start, stop = edges
        gold = None if self._codes is None else self._codes[start:stop]
        some = Cells(cells.indptr[start : stop + 1], cells.code, cells.value)
        return Block(some, pairs.label, gold, self.n_classes, start, self._once(edges))

    def _once(self, edges: Edges) -> Cells | None:
        """Make a cell for each annotation of some tasks, if annotations are distributions."""
        if self.annotations.soft is None:
            return None
        cells = self._hard_cells
        return Cells(cells.indptr[edges[0] : edges[1] + 1], cells.code, cells.value)

    @cached_property
    def _hard_cells(self) -> Cells:
        return replace(self.annotations, soft=None).cells

    def _fill(self, work: Fill) -> Floats:
        posterior = np.empty((self.n_tasks, self.n_classes))

        def one(edges: Edges) -> None:
            work(self._load(edges), posterior[slice(*edges)])

        for _ in in_order(one, self._cut(0), self.n_threads):
            pass
        return posterior


def count_labels(annotations: Annotations, posterior: Floats, row: Ints | None = None) -> Floats:
    """Return expected label counts under a posterior, ``(worker, truth, label)``.

    With ``row``, workers are counted in rows with these numbers instead: several of them
    together if the number is the same, and not at all if it is negative.
    """
    if row is not None:
        place = row[annotations.worker]
        annotations = annotations.filter(place >= 0)
        names = np.arange(row.max(initial=-1) + 1)
        worker = place[place >= 0].astype(np.int32)
        annotations = replace(annotations, workers=names, worker=worker)
    return MemoryEngine(annotations).count(posterior)


def pooled_confusion(annotations: Annotations, posterior: Floats, pooling: float = 1.0) -> Floats:
    """Estimate P(label | truth) of each worker by counting, ``(worker, truth, label)``.

    Each row gets ``pooling`` labels of the crowd's confusion, so that no worker is ever
    certain.
    """
    return pool_confusion(count_labels(annotations, posterior), pooling)


def pool_confusion(counts: Floats, pooling: float = 1.0) -> Floats:
    """Do the same with counts, ``(worker, truth, label)``."""
    crowd = normalize(counts.sum(axis=0) + 1.0 / counts.shape[-1])
    return normalize(counts + pooling * crowd)


def count(
    cells: Cells,
    posterior: Floats,
    n_workers: int,
    n_labels: int,
    *,
    n_threads: int | None = None,
) -> Floats:
    """Count labels per worker and truth, ``(worker, truth, label)``. Adds up over blocks."""
    posterior = np.ascontiguousarray(posterior, dtype=np.float64)
    shape = n_workers * n_labels, posterior.shape[1]

    def one(edges: Edges) -> Parts:
        start, stop = edges
        some = Cells(cells.indptr[start : stop + 1], cells.code, cells.value)
        counts = np.zeros(shape)
        count_block(Block(some, cells.code[:0], None, n_labels), posterior[start:stop], counts)
        return (counts,)

    blocks = cut_cells(cells, shape[0] * shape[1])
    (counts,) = add_up(in_order(one, blocks, n_threads))
    return counts.reshape(n_workers, n_labels, -1).swapaxes(1, 2)


def cut_cells(cells: Cells, table_size: int) -> list[Edges]:
    """Cut tasks into blocks with about as many cells; see :func:`cut_tasks`."""

    def find(cell: Array) -> Ints:
        return np.searchsorted(cells.indptr, cell)

    return cut_tasks(cells.n_tasks, len(cells.code), find, table_size)
