"""The sum of many fits' posteriors of the tasks, which need not be in memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from crowdwise.inference.engines.engine import Engine, Posterior
from crowdwise.inference.engines.kernels import Block
from crowdwise.inference.engines.sweeps import Fill
from crowdwise.inference.hidden_gold import NO_GOLD, HiddenGold
from crowdwise.inference.posteriors import as_array
from crowdwise.inference.worker_weights import ROUND
from crowdwise.typing import Array, Floats

STEADY = 0.001  # mean change of a task's probabilities that counts as none


@dataclass(eq=False)
class BagSum:
    """Sum of the posteriors of fits to an engine.

    Arrays are added up as they come. Of other posteriors, only the fits are kept, and the rows
    are computed again, block by block, whenever they are needed.
    """

    hidden: HiddenGold = NO_GOLD
    n_fits: int = 0
    kept: Floats | None = None  # (task, class): the sum, where tasks are in memory
    earlier: Floats | None = None  # the same a round of fits ago
    fills: list[tuple[int, Fill]] = field(default_factory=list)  # number of a fit, and its rows
    unseen: Floats | None = None  # (truth, class): of fits to which it was hidden

    def add(self, number: int, posterior: Posterior) -> None:
        """Add the posterior of fit ``number``."""
        self.n_fits += 1
        if hasattr(posterior, "rows"):
            self.fills.append((number, posterior.rows))
            return
        found = as_array(posterior)
        if self.kept is None or self.unseen is None:
            self.kept = np.zeros_like(found)
            self.unseen = np.zeros((len(self.hidden.task), found.shape[1]))
        self.kept += found
        some = self.hidden.is_hidden(number)
        self.unseen[some] += found[self.hidden.task[some]]

    def rows(self, block: Block) -> Floats:
        """Return the sum of the fits so far, for the tasks of a block."""
        if self.kept is not None:
            return self.kept[block.first : block.first + block.n_tasks]
        return self._add(block, self.fills, np.zeros((block.n_tasks, block.n_classes)))

    def is_steady(self, engine: Engine) -> bool:
        """Return whether the last round of fits has changed the mean almost not at all."""
        n, before = self.n_fits, self.n_fits - ROUND
        if n % ROUND:
            return False

        def work(block: Block, moved: Floats) -> None:
            for some in block.chunks():
                now, then = self._both(some)
                moved += np.abs(now / n - then / before).sum() / 2

        moved = engine.sum_blocks(work, [(1,)])[1][0] if before else np.inf
        self.earlier = None if self.kept is None else self.kept.copy()
        return bool(moved < STEADY * engine.n_tasks)

    def find_unseen(self, engine: Engine) -> Floats:
        """Return the mean for each hidden truth over fits that have not seen it; NaN for none."""
        if self.unseen is None:
            place, rows = engine.gather_blocks(self._find_unseen)
            self.unseen = np.empty_like(rows)
            self.unseen[place] = rows
        folds = [self.hidden.is_hidden(number) for number in range(1, self.n_fits + 1)]
        n_fits = np.sum(folds, axis=0)[:, None]
        return np.where(n_fits, self.unseen / np.maximum(n_fits, 1), np.nan)

    def _find_unseen(self, block: Block) -> tuple[Array, ...]:
        """Return the hidden truths in a block, and the sums for these."""
        parts = [(np.zeros(0, np.int64), np.zeros((0, block.n_classes)))]
        for some in block.chunks():
            task = self.hidden.task - some.first
            place = np.flatnonzero((task >= 0) & (task < some.n_tasks))
            total = np.zeros((len(place), some.n_classes))
            for number, fill in self.fills if len(place) else ():
                hidden = self.hidden.is_hidden(number)[place]
                total[hidden] += self._fill(some, number, fill)[task[place[hidden]]]
            parts.append((place, total))
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def _both(self, block: Block) -> tuple[Floats, Floats]:
        """Return the sum of the fits so far, and that before the last round."""
        if self.earlier is not None:
            some = slice(block.first, block.first + block.n_tasks)
            return self.rows(block), self.earlier[some]
        zeros = np.zeros((block.n_tasks, block.n_classes))
        then = self._add(block, self.fills[:-ROUND], zeros)
        return self._add(block, self.fills[-ROUND:], then.copy()), then

    def _add(self, block: Block, fills: list[tuple[int, Fill]], total: Floats) -> Floats:
        for number, fill in fills:
            total += self._fill(block, number, fill)
        return total

    def _fill(self, block: Block, number: int, fill: Fill) -> Floats:
        """Return one fit's posterior of a block's tasks."""
        found = np.empty((block.n_tasks, block.n_classes))
        fill(replace(block, gold=self.hidden.seen(block, number)), found)
        return found
