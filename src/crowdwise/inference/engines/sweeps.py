"""Sweeps over blocks of tasks, wherever the blocks come from; see :class:`Engine`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from crowdwise.annotations import Pairs
from crowdwise.inference.engines.blocks import Parts, add_up, in_order
from crowdwise.inference.engines.engine import CoinSums, PairSums, Posterior, Spread, Sums
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
    """What an engine offers once it can cut its tasks into blocks and load one of them."""

    n_threads: int | None

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
        """Blocks of tasks, by the data and the size of the sums alone."""

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
        truths, counts = np.zeros(0), np.zeros((len(self.pairs), 0))
        for edges in self._cut(0):  # in turn: it may draw random numbers
            block = self._load(edges)
            posterior = np.ascontiguousarray(spread(block.shares()), dtype=np.float64)
            if not len(truths):
                truths = np.zeros(posterior.shape[1])
                counts = np.zeros((len(self.pairs), len(truths)))
            truths += posterior.sum(axis=0)
            count_block(block, posterior, counts)
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

    @cached_property
    def given(self) -> Floats:
        """Weight of the labels of each pair."""

        def work(block: Block, total: Floats) -> None:
            cells = block.cells
            some = slice(cells.indptr[0], cells.indptr[-1])
            value = None if cells.value is None else cells.value[some]
            total += np.bincount(cells.code[some], value, minlength=len(total))

        return self._weigh(self._sum(work, [(len(self.pairs),)])[1][0])

    def _coin_tables(self, right: Floats, wrong: Floats) -> tuple[Floats, Floats]:
        """How far each pair's label lifts its class, and how likely it is with any other."""
        pairs = self.pairs
        place = pairs.worker if right.ndim == 1 else (pairs.worker, pairs.label)
        return self._weigh((right - wrong)[place]), self._weigh(wrong[place])

    def _sum_coins(self, work: Work, *, by_label: bool = False) -> CoinSums:
        """Truths, and sums by pair as sums by worker, or by worker and label."""
        pairs = self.pairs
        evidence, (truths, right) = self._sum(work, [(self.n_classes,), (len(pairs),)])
        right = self._weigh(right)
        if not by_label:
            return CoinSums(evidence, truths, pairs.add_up(right), self._given_by_worker)
        both = np.zeros((2, pairs.n_workers, pairs.n_classes))
        both[:, pairs.worker, pairs.label] = right, self.given
        return CoinSums(evidence, truths, *both)

    @cached_property
    def _given_by_worker(self) -> Floats:
        return self.pairs.add_up(self.given)

    def _sum(self, work: Work, shapes: Sequence[tuple[int, ...]]) -> tuple[float, list[Floats]]:
        """Evidence, and sums of these shapes, over all blocks."""

        def one(edges: Edges) -> Parts:
            sums = [np.zeros(shape) for shape in shapes]
            evidence = work(self._load(edges), *sums)
            return np.array([evidence or 0.0]), *sums

        blocks = self._cut(max(int(np.prod(shape)) for shape in shapes))
        evidence, *sums = self._add_up(in_order(one, blocks, self.n_threads))
        return float(evidence[0]), sums

    def _add_up(self, parts: Iterable[Parts]) -> Parts:
        """The sum over all blocks; over those that other processes hold too, if there are any."""
        return add_up(parts)


def _floats(array: Floats) -> Floats:
    return np.ascontiguousarray(array, dtype=np.float64)
