"""The engine of one machine, with workers that count more or less than others."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from crowdwise.annotations import Annotations, Cells
from crowdwise.inference.engines.engine import CoinSums, PairSums, Spread
from crowdwise.inference.engines.kernels import Block
from crowdwise.inference.engines.memory import MemoryEngine
from crowdwise.inference.engines.sweeps import Edges
from crowdwise.inference.simplex import clamp
from crowdwise.typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class WeightedEngine(MemoryEngine):
    """Annotations that count by the weight of their worker, a positive number.

    A worker of weight two counts like a worker whose rows are all there twice. Weights enter
    the tables that are sent and the counts that come back, so that a sweep costs what it costs
    without them, and nothing is stored per annotation.
    """

    weights: Floats = field(default_factory=lambda: np.ones(0))
    begin: Floats | None = None  # (task, class): where to begin, instead of the shares

    def tally_pairs(self, spread: Spread | None = None) -> PairSums:
        shares = clamp(self.shares() if self.begin is None else self.begin, self.gold)
        posterior = shares if spread is None else spread(shares, 0)
        # Quicker than a sum where rows are short.
        truths = np.ones(self.n_tasks) @ posterior
        return PairSums(0.0, truths, self.pairs.take(self.count(posterior)))

    def tally_coins(self) -> CoinSums:
        found, pairs = self.tally_pairs(), self.pairs
        right = pairs.add_up(found.counts[np.arange(len(pairs)), pairs.label])
        return CoinSums(0.0, found.truths, right, pairs.add_up(found.counts.sum(axis=1)))

    def shares(self, weights: Floats | None = None, *, soft: bool = True) -> Floats:
        both = self.weights if weights is None else weights * self.weights
        return super().shares(both, soft=soft)

    def signed_shares(self, weights: Floats) -> Floats:
        return super().signed_shares(weights * self.weights)

    def collect(self) -> tuple[Annotations, Ints | None]:
        own = self.weights[self.annotations.worker]
        if self.annotations.weight is not None:
            own = own * self.annotations.weight
        return replace(self.annotations, weight=own), self.gold

    def _load_weighed(self, edges: Edges) -> Block:
        block, weight = self._load(edges), self.weights[self.pairs.worker]
        indptr, code, value = block.cells.indptr, block.cells.code, block.cells.value
        some = slice(indptr[0], indptr[-1])
        own = weight[code[some]] if value is None else weight[code[some]] * value[some]
        return replace(block, cells=Cells(indptr - indptr[0], code[some], own))

    def _weigh(self, rows: Floats) -> Floats:
        weight = self.weights[self.pairs.worker]
        return rows * (weight if rows.ndim == 1 else weight[:, None])

    def _weigh_all(self, table: Floats) -> Floats:
        return table * self.weights[:, None, None]
