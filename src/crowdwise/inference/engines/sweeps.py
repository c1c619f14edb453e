"""Sweeps over blocks of tasks, wherever the blocks come from; see :class:`Engine`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np

from crowdwise.annotations import Cells, Pairs
from crowdwise.inference.engines.blocks import Parts, Run, in_order
from crowdwise.inference.engines.engine import CoinSums, PairSums, Posterior, Spread, Sums
from crowdwise.inference.engines.group import ALONE, Group, gather
from crowdwise.inference.engines.kernels import (
    NO_CELLS,
    NO_TASKS,
    NOTHING,
    Block,
    coin_block,
    count_block,
    sweep_block,
    vote_block,
)
from crowdwise.typing import Array, Floats, Ints

Edges = tuple[int, int]
Work = Callable[..., float | None]  # takes a block and the sums to add to; returns the evidence
Fill = Callable[[Block, Floats], None]  # of a block and its rows of a posterior


class BlockSweeps(ABC):
    """The sweeps of an engine that can cut its tasks into blocks and load one of them.

    If several ranks share the blocks, each has its own engine:

    * ``group`` adds the sums of all ranks (:class:`~crowdwise.inference.engines.group.Group`).
    * ``workers``, ``n_workers``, ``n_classes``, ``pairs`` and ``n_tasks``, the number of all
      tasks, are the same on every rank; so is the order of the classes.
    * ``_cut`` returns the blocks of this rank, in the order of their tasks, which are numbered
      over all ranks; ``_first`` says how many blocks of the same cut are on earlier ranks.
      A rank has the same tasks in every cut. It may have none.
    * ``_load`` returns one of these blocks, with the number of its first task.

    All that an engine returns is then the same on every rank, to the last bit, except for
    posteriors and shares, which have the rows of the rank's own tasks. If the blocks do not
    depend on the number of ranks, neither do the results.
    """

    n_threads: int | None
    group: Group = ALONE
    worker_weights: Floats | None = None

    @property
    @abstractmethod
    def n_workers(self) -> int: ...

    @property
    @abstractmethod
    def n_classes(self) -> int: ...

    @property
    @abstractmethod
    def pairs(self) -> Pairs: ...

    @abstractmethod
    def _cut(self, table_size: int) -> list[Edges]:
        """Cut into blocks, by the data and the size of the sums only; return this rank's."""

    def _first(self, table_size: int) -> int:
        """Return how many blocks of that cut are on earlier ranks."""
        return 0

    @abstractmethod
    def _load(self, edges: Edges) -> Block:
        """Load one of them; its codes are positions in :attr:`pairs`."""

    @abstractmethod
    def _fill(self, work: Fill) -> Floats:
        """Return the posterior with rows filled in by ``work``, block by block."""

    def reweighted(
        self, weights: Floats, hidden: Ints = NO_TASKS, n_threads: int | None = None
    ) -> Self:
        other = copy(self)
        vars(other).pop("_given", None)
        vars(other).update(worker_weights=weights, n_threads=n_threads)
        return other

    def _weigh(self, rows: Floats) -> Floats:
        """Multiply the input or output of a sweep, (pair, …), by the worker's weight."""
        if self.worker_weights is None:
            return rows
        weight = self.worker_weights[self.pairs.worker]
        return rows * (weight if rows.ndim == 1 else weight[:, None])

    def tally_pairs(self, spread: Spread | None = None) -> PairSums:
        if spread is None:
            shapes = (self.n_classes,), (len(self.pairs), self.n_classes)
            _, (truths, counts) = self._sum(vote_block, shapes)
            return PairSums(0.0, truths, self._weigh(counts))
        n_truths = spread(np.zeros((0, self.n_classes)), 0).shape[1]

        def work(block: Block, truths: Floats, counts: Floats) -> None:
            posterior = _floats(spread(block.shares(), block.first))
            truths += posterior.sum(axis=0)
            count_block(block, posterior, counts)

        _, (truths, counts) = self._sum(work, [(n_truths,), (len(self.pairs), n_truths)])
        return PairSums(0.0, truths, self._weigh(counts))

    def tally_votes(self, spread: Spread | None = None) -> Sums:
        found = self.tally_pairs(spread)
        return Sums(0.0, found.truths, self.pairs.spread(found.counts))

    def sweep_pairs(self, log_prior: Floats, table: Floats, *, hard: bool = False) -> PairSums:
        prior, rows = _floats(log_prior), _floats(self._weigh(table))

        def work(block: Block, truths: Floats, counts: Floats) -> float:
            mask = block.mask(len(prior))
            return sweep_block(block, prior, rows, mask, truths, counts, hard=hard)

        evidence, (truths, counts) = self._sum(work, [prior.shape, rows.shape])
        return PairSums(evidence, truths, self._weigh(counts))

    def sweep(self, log_prior: Floats, log_confusion: Floats, *, hard: bool = False) -> Sums:
        found = self.sweep_pairs(log_prior, self.pairs.take(log_confusion), hard=hard)
        return Sums(found.evidence, found.truths, self.pairs.spread(found.counts))

    def tally_coins(self) -> CoinSums:
        def work(block: Block, truths: Floats, right: Floats) -> None:
            vote_block(block, truths, right, whole=False)

        return self._sum_coins(work)

    def sweep_coins(
        self, log_prior: Floats, right: Floats, wrong: Floats, *, hard: bool = False
    ) -> CoinSums:
        prior, tables = _floats(log_prior), self._coin_tables(right, wrong)

        def work(block: Block, truths: Floats, sums: Floats) -> float:
            return coin_block(block, prior, *tables, truths, sums, hard=hard)

        return self._sum_coins(work, by_label=right.ndim == 2)

    def posterior(self, log_prior: Floats, log_confusion: Floats) -> Floats:
        return self.pair_posterior(log_prior, self.pairs.take(log_confusion))

    def pair_posterior(self, log_prior: Floats, table: Floats) -> Floats:
        prior, rows = _floats(log_prior), _floats(self._weigh(table))
        n_truths, n_classes = len(prior), self.n_classes

        def work(block: Block, out: Floats) -> None:
            found = out if n_truths == n_classes else np.empty((len(out), n_truths))
            unused, mask = np.zeros(n_truths), block.mask(n_truths)
            sweep_block(block, prior, rows, mask, unused, NOTHING, found)
            if found is not out:
                out[:] = found.reshape(len(out), n_classes, -1).sum(axis=2)

        return self._fill(work)

    def coin_posterior(self, log_prior: Floats, right: Floats, wrong: Floats) -> Posterior:
        prior, tables = _floats(log_prior), self._coin_tables(right, wrong)

        def work(block: Block, out: Floats) -> None:
            coin_block(block, prior, *tables, np.zeros(len(prior)), NOTHING, out)

        return self._fill(work)

    @property
    def given(self) -> Floats:
        """Total weight of the labels of each pair."""
        if "_given" not in vars(self):  # not a cached_property, whose lock one rank would hold
            vars(self)["_given"] = self._weigh(self._add_given())
        found: Floats = vars(self)["_given"]
        return found

    def _add_given(self) -> Floats:
        def work(block: Block, total: Floats) -> None:
            cells = block.cells
            some = slice(cells.indptr[0], cells.indptr[-1])
            value = None if cells.value is None else cells.value[some]
            total += np.bincount(cells.code[some], value, minlength=len(total))

        return self._sum(work, [(len(self.pairs),)])[1][0]

    def _coin_tables(self, right: Floats, wrong: Floats) -> tuple[Floats, Floats]:
        """Return how much each pair's label raises its class, and its likelihood otherwise."""
        pairs = self.pairs
        place = pairs.worker if right.ndim == 1 else (pairs.worker, pairs.label)
        return self._weigh((right - wrong)[place]), self._weigh(wrong[place])

    def _sum_coins(self, work: Work, *, by_label: bool = False) -> CoinSums:
        evidence, (truths, right) = self._sum(work, [(self.n_classes,), (len(self.pairs),)])
        return self._per_worker(evidence, truths, self._weigh(right), by_label=by_label)

    def _per_worker(
        self, evidence: float, truths: Floats, right: Floats, *, by_label: bool
    ) -> CoinSums:
        """Convert sums by pair to sums by worker, or by worker and label."""
        pairs = self.pairs
        if not by_label:
            return CoinSums(evidence, truths, pairs.add_up(right), pairs.add_up(self.given))
        both = np.zeros((2, pairs.n_workers, pairs.n_classes))
        both[:, pairs.worker, pairs.label] = right, self.given
        return CoinSums(evidence, truths, *both)

    @property
    def own_tasks(self) -> Edges:
        blocks = self._cut(0)
        return (blocks[0][0], blocks[-1][1]) if blocks else (0, 0)

    def sum_blocks(
        self, work: Work, shapes: Sequence[tuple[int, ...]]
    ) -> tuple[float, list[Floats]]:
        weigh = self._weigher()

        def weighed(block: Block, *sums: Floats) -> float | None:
            return work(weigh(block), *sums)

        return self._sum(weighed, shapes, keeps=True)

    def fill_blocks(self, work: Fill) -> Floats:
        weigh = self._weigher()
        return self._fill(lambda block, out: work(weigh(block), out))

    def gather_blocks(self, work: Callable[[Block], tuple[Array, ...]]) -> list[Array]:
        nothing = work(Block(NO_CELLS, self.pairs.label, None, self.n_classes))
        found = in_order(lambda edges: work(self._load(edges)), self._cut(0), self.n_threads)
        own = [np.concatenate(parts) for parts in zip(nothing, *found, strict=True)]
        return own if self.group.size == 1 else [gather_rows(self.group, rows) for rows in own]

    def _weigher(self) -> Callable[[Block], Block]:
        """Return a function that weights the annotations of a block by worker."""
        if self.worker_weights is None:
            return lambda block: block
        weight = self.worker_weights[self.pairs.worker]

        def weigh(block: Block) -> Block:
            indptr, code, value = block.cells.indptr, block.cells.code, block.cells.value
            some = slice(indptr[0], indptr[-1])
            own = weight[code[some]] if value is None else weight[code[some]] * value[some]
            return replace(block, cells=Cells(indptr - indptr[0], code[some], own))

        return weigh

    def _sum(
        self, work: Work, shapes: Sequence[tuple[int, ...]], *, keeps: bool = False
    ) -> tuple[float, list[Floats]]:
        """Evidence, and sums of these shapes, over all blocks.

        ``keeps`` says that the work may keep something beside.
        """

        def one(edges: Edges) -> Parts:
            sums = [np.zeros(shape) for shape in shapes]
            evidence = work(self._load(edges), *sums)
            return np.array([evidence or 0.0]), *sums

        size = max(int(np.prod(shape)) for shape in shapes)
        parts = in_order(one, self._cut(size), self.n_threads)
        evidence, *sums = self.group.add(Run.of(parts, self._first(size)))
        return float(evidence[0]), sums


def gather_rows(group: Group, rows: Array) -> Array:
    """Collect the rows of all ranks, rank by rank; for numbers of 8 bytes."""
    counts = gather(group, len(rows))
    first = sum(counts[: group.rank])
    total = np.zeros((sum(counts), *rows.shape[1:]), dtype=np.int64)
    total[first : first + len(rows)] = rows.view(np.int64)
    return group.add(Run([(0, group.rank, (total,))]))[0].view(rows.dtype)


def _floats(array: Floats) -> Floats:
    return np.ascontiguousarray(array, dtype=np.float64)
