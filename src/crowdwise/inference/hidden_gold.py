"""Known truths hidden in turn, to see what is inferred about their tasks without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from crowdwise.inference.engines.engine import Engine
from crowdwise.inference.engines.kernels import NO_TASKS, Block
from crowdwise.inference.fingerprints import Fingerprints
from crowdwise.typing import Array, Floats, Ints

N_FOLDS = 5
ENOUGH = 20  # known truths of tasks with labels; fewer are never hidden


@dataclass(frozen=True, eq=False)
class HiddenGold:
    """Gold classes in folds: fit number ``b`` of 1, 2, … does not see those of fold ``b % 5``.

    Fit 0 sees all of them. So every fit learns from most of the truths, and each of their tasks
    has posteriors that its own truth did not influence. Folds do not depend on names or order.
    """

    task: Ints  # task of each truth that is hidden at times
    label: Ints  # the gold class
    votes: Floats  # (truth, class): weight of its labels
    fold: Ints

    @classmethod
    def of(cls, engine: Engine, prints: Fingerprints) -> Self:
        def work(block: Block) -> tuple[Array, ...]:
            rows = NO_TASKS if block.gold is None else np.flatnonzero(block.gold >= 0)
            some = block.take(rows)
            votes = some.votes(None)
            heard = votes.sum(axis=1) > 0
            label = rows if some.gold is None else some.gold.astype(np.int64)
            found = block.first + rows, label, votes, prints.tasks(some)
            return tuple(column[heard] for column in found)

        task, label, votes, own = engine.gather_blocks(work)
        order = np.argsort(own, kind="stable") if len(task) >= ENOUGH else NO_TASKS
        return cls(task[order], label[order], votes[order], np.arange(len(order)) % N_FOLDS)

    def is_hidden(self, number: int) -> Array:
        """Return which of the truths fit ``number`` does not see."""
        hidden: Array = (self.fold == number % N_FOLDS) & (number > 0)
        return hidden

    def seen(self, block: Block, number: int) -> Ints | None:
        """Return the gold classes of a block's tasks, as fit ``number`` sees them."""
        tasks = self.task[self.is_hidden(number)] - block.first
        tasks = tasks[(tasks >= 0) & (tasks < block.n_tasks)]
        if block.gold is None or not len(tasks):
            return block.gold
        gold = block.gold.copy()
        gold[tasks] = -1
        return gold


NO_GOLD = HiddenGold(NO_TASKS, NO_TASKS, np.zeros((0, 0)), NO_TASKS)
