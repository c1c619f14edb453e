"""Sweeps over blocks of tasks, wherever the blocks come from; see :class:`Engine`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from crowdwise.annotations import Pairs
from crowdwise.inference.engines.blocks import Parts, Run, in_order
from crowdwise.inference.engines.engine import CoinSums, PairSums, Posterior, Spread, Sums
from crowdwise.inference.engines.group import ALONE, Group
from crowdwise.inference.engines.kernels import (
    NOTHING,
    Block,
    coin_block,
    count_block,
    sweep_block,
    vote_block,
)
from crowdwise.typing import Floats

Edges = tuple[int, int]
Work = Callable[..., float | None]  # of a block and the sums to add to; returns the evidence


class BlockSweeps(ABC):
    """What an engine offers once it can cut its tasks into blocks and load one of them.

    Where several ranks hold the blocks between them, each has an engine of its own:

    * ``group`` adds the sums of all ranks (:class:`~crowdwise.inference.engines.group.Group`).
    * ``workers``, ``n_workers``, ``n_classes``, ``pairs`` and ``n_tasks``, the number of all
      tasks, are the same on every rank; so is the order of the classes.
    * ``_cut`` returns the blocks of this rank, in the order of their tasks, which are numbered
      over all ranks; ``_first`` says how many blocks of the same cut lie on the ranks before.
      A rank has the same tasks in every cut. It may have none.
    * ``_load`` gives one of these blocks, with the number of its first task.

    All that an engine returns is then the same on every rank, to the last bit, but for
    posteriors and shares, which have the rows of the rank's own tasks. Where the blocks do not
    depend on the number of ranks, nor do the results.
    """

    n_threads: int | None
    group: Group = ALONE

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
        """Blocks of tasks, by the data and the size of the sums alone; those of this rank."""

    def _first(self, table_size: int) -> int:
        """How many blocks of that cut lie on the ranks before this one."""
        return 0

    @abstractmethod
    def _load(self, edges: Edges) -> Block:
        """One of them; its codes are places of :attr:`pairs`."""

    @abstractmethod
    def _fill(self, work: Callable[[Edges, Floats], None]) -> Floats:
        """The posterior whose rows ``work`` fills in, for one block after another."""

    def _weigh(self, rows: Floats) -> Floats:
        """What goes into a sweep or comes out of it, (pair, …), times the worker's weight."""
        return rows

    def tally_pairs(self, spread: Spread | None = None) -> PairSums:
        if spread is None:
            shapes = (self.n_classes,), (len(self.pairs), self.n_classes)
            _, (truths, counts) = self._sum(vote_block, shapes)
            return PairSums(0.0, truths, counts)
        n_truths = spread(np.zeros((0, self.n_classes)), 0).shape[1]

        def work(block: Block, truths: Floats, counts: Floats) -> None:
            posterior = _floats(spread(block.shares(), block.first))
            truths += posterior.sum(axis=0)
            count_block(block, posterior, counts)

        _, (truths, counts) = self._sum(work, [(n_truths,), (len(self.pairs), n_truths)])
        return PairSums(0.0, truths, counts)

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

        def work(edges: Edges, out: Floats) -> None:
            block = self._load(edges)
            found = out if n_truths == n_classes else np.empty((len(out), n_truths))
            unused, mask = np.zeros(n_truths), block.mask(n_truths)
            sweep_block(block, prior, rows, mask, unused, NOTHING, found)
            if found is not out:
                out[:] = found.reshape(len(out), n_classes, -1).sum(axis=2)

        return self._fill(work)

    def coin_posterior(self, log_prior: Floats, right: Floats, wrong: Floats) -> Posterior:
        prior, tables = _floats(log_prior), self._coin_tables(right, wrong)

        def work(edges: Edges, out: Floats) -> None:
            unused = np.zeros(len(prior))
            coin_block(self._load(edges), prior, *tables, unused, NOTHING, out)

        return self._fill(work)

    @property
    def given(self) -> Floats:
        """Weight of the labels of each pair."""
        if "_given" not in vars(self):  # no cached_property: its lock would be held by one rank
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
        """How far each pair's label lifts its class, and how likely it is with any other."""
        pairs = self.pairs
        place = pairs.worker if right.ndim == 1 else (pairs.worker, pairs.label)
        return self._weigh((right - wrong)[place]), self._weigh(wrong[place])

    def _sum_coins(self, work: Work, *, by_label: bool = False) -> CoinSums:
        evidence, (truths, right) = self._sum(work, [(self.n_classes,), (len(self.pairs),)])
        return self._per_worker(evidence, truths, self._weigh(right), by_label=by_label)

    def _per_worker(
        self, evidence: float, truths: Floats, right: Floats, *, by_label: bool
    ) -> CoinSums:
        """Sums by pair as sums by worker, or by worker and label."""
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
        return self._sum(work, shapes, self._load_weighed)

    def fill_blocks(self, work: Callable[[Block, Floats], None]) -> Floats:
        return self._fill(lambda edges, out: work(self._load_weighed(edges), out))

    def _load_weighed(self, edges: Edges) -> Block:
        """A block whose annotations count by the weight of their worker."""
        return self._load(edges)

    def _sum(
        self,
        work: Work,
        shapes: Sequence[tuple[int, ...]],
        load: Callable[[Edges], Block] | None = None,
    ) -> tuple[float, list[Floats]]:
        """Evidence, and sums of these shapes, over all blocks."""
        load = load or self._load

        def one(edges: Edges) -> Parts:
            sums = [np.zeros(shape) for shape in shapes]
            evidence = work(load(edges), *sums)
            return np.array([evidence or 0.0]), *sums

        size = max(int(np.prod(shape)) for shape in shapes)
        parts = in_order(one, self._cut(size), self.n_threads)
        evidence, *sums = self.group.add(Run.of(parts, self._first(size)))
        return float(evidence[0]), sums


def _floats(array: Floats) -> Floats:
    return np.ascontiguousarray(array, dtype=np.float64)
