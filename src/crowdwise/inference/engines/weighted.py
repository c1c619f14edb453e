"""The engine of one machine, with workers that count more or less than others."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.inference.engines.engine import Spread, Sums, Sweep
from crowdwise.inference.engines.memory import MemoryEngine
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

    def tally_votes(self, spread: Spread | None = None) -> Sums:
        shares = clamp(self.shares() if self.begin is None else self.begin, self.gold)
        posterior = shares if spread is None else spread(shares)
        # Quicker than a sum where rows are short.
        return Sums(0.0, np.ones(self.n_tasks) @ posterior, self.count(posterior))

    def sweep(self, log_prior: Floats, log_confusion: Floats, *, hard: bool = False) -> Sums:
        found = super().sweep(log_prior, self._weigh(log_confusion), hard=hard)
        return replace(found, counts=self._weigh(found.counts))

    def posterior(self, log_prior: Floats, log_confusion: Floats) -> Floats:
        return super().posterior(log_prior, self._weigh(log_confusion))

    def expect(self, log_class: Floats, log_confusion: Floats) -> Sweep:
        found = super().expect(log_class, self._weigh(log_confusion))
        return replace(found, counts=self._weigh(found.counts))

    def count(self, posterior: Floats) -> Floats:
        return self._weigh(super().count(posterior))

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

    def _weigh(self, table: Floats) -> Floats:
        return table * self.weights[:, None, None]
