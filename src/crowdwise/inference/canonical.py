"""A canonical form of a crowd, independent of names and row order, for random draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.annotations.grouping import count_repeats
from crowdwise.inference.engines.engine import Engine
from crowdwise.inference.engines.kernels import Block
from crowdwise.inference.fingerprints import Fingerprints, Hashes
from crowdwise.inference.rows import as_columns
from crowdwise.typing import Array, Floats, Ints

MARGIN = 4.0  # factor by which more tasks than needed are looked at, at first
LAST = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True, eq=False)
class ClearLabels:
    """One label of each worker and task of a block, all of equal weight.

    If a worker has given a task different labels, none of them is kept.
    """

    size: Ints  # (task,): how many there are
    code: Ints  # the pair of each, task by task

    @classmethod
    def of(cls, block: Block, worker: Ints, n_workers: int) -> ClearLabels:
        """Find them in a block; ``worker`` is that of each pair."""
        task, code, weight = as_columns(block.cells if block.once is None else block.once)
        code = code.astype(np.int64)
        if weight is not None:
            task, code = task[weight > 0], code[weight > 0]
        size = np.bincount(task, minlength=block.n_tasks)
        indptr = np.concatenate([[0], np.cumsum(size)])
        if count_repeats(indptr, worker[code], n_workers):
            pair = task * n_workers + worker[code]
            _, first, place = np.unique(pair, return_index=True, return_inverse=True)
            clear = np.bincount(place, code != code[first][place], minlength=len(first)) == 0
            kept = np.sort(first[clear])
            size, code = np.bincount(task[kept], minlength=block.n_tasks), code[kept]
        return cls(size, code)

    def take(self, rows: Ints) -> Ints:
        """Return the labels of some tasks."""
        ends = np.cumsum(self.size)
        size = self.size[rows]
        place = np.repeat(ends[rows] - np.cumsum(size), size) + np.arange(size.sum())
        return self.code[place]


def count_shared(engine: Engine) -> tuple[int, int]:
    """Count the tasks that two workers or more have labeled clearly, and their labels."""
    worker, n_workers = engine.pairs.worker, engine.n_workers

    def work(block: Block, sums: Floats) -> None:
        size = ClearLabels.of(block, worker, n_workers).size
        sums += (size > 1).sum(), size[size > 1].sum()

    _, (sums,) = engine.sum_blocks(work, [(2,)])
    return int(sums[0]), int(sums[1])


def sample_shared(
    engine: Engine, of: Fingerprints, shared: tuple[int, int], n_labels: int, least: int
) -> tuple[Annotations, Ints | None]:
    """Sample such tasks by their fingerprints, with about ``n_labels`` labels in all.

    The sample has all workers and classes, each in the order of the fingerprints, and the gold
    class of each task if any is known. ``shared`` is what :func:`count_shared` returns.
    """
    n_shared, n_all = shared
    share = MARGIN * max(n_labels / n_all, least / n_shared)
    while True:
        below = LAST if share >= 1 else np.uint64(share * 2.0**64)
        own, size, gold, code = engine.gather_blocks(_Lowest(engine, of, below, n_labels, least))
        order = np.argsort(own, kind="stable")
        enough = max(int(np.searchsorted(np.cumsum(size[order]), n_labels)), least)
        if enough < len(order) or share >= 1:
            break
        share *= MARGIN
    rows = order[:enough]
    code = ClearLabels(size, code).take(rows)
    task = np.repeat(np.arange(len(rows)), size[rows])
    worker_at, label_at = rank(of.workers), rank(of.classes)
    worker, label = worker_at[engine.pairs.worker[code]], label_at[engine.pairs.label[code]]
    place = np.lexsort((worker, task))
    crowd = Annotations.from_codes(
        task[place],
        worker[place],
        label[place],
        tasks=np.arange(len(rows)),
        workers=np.arange(engine.n_workers),
        classes=np.arange(engine.n_classes),
    )
    known = gold[rows]
    return crowd, np.where(known >= 0, label_at[known], -1) if (known >= 0).any() else None


class _Lowest:
    """Finds a block's shared tasks of the lowest fingerprints, as many as may be needed."""

    def __init__(
        self, engine: Engine, of: Fingerprints, below: np.uint64, n_labels: int, least: int
    ) -> None:
        self.of, self.below, self.n_labels, self.least = of, below, n_labels, least
        self.n_workers = engine.n_workers

    def __call__(self, block: Block) -> tuple[Array, ...]:
        clear, own = ClearLabels.of(block, self.of.worker, self.n_workers), self.of.tasks(block)
        rows = np.flatnonzero((clear.size > 1) & (own <= self.below))
        rows = rows[np.argsort(own[rows], kind="stable")]
        wanted = np.searchsorted(np.cumsum(clear.size[rows]), self.n_labels) + 1
        rows = np.sort(rows[: max(int(wanted), self.least)])
        gold = np.full(len(rows), -1) if block.gold is None else block.gold[rows].astype(np.int64)
        return own[rows], clear.size[rows], gold, clear.take(rows)


def rank(values: Hashes) -> Ints:
    """Return the rank of each value; equal ones keep their order."""
    place = np.empty(len(values), dtype=np.intp)
    place[np.argsort(values, kind="stable")] = np.arange(len(values))
    return place
