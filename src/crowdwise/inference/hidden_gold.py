"""Known truths that are hidden in turn, to see what would be said of their tasks without them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from crowdwise.annotations import Annotations, find_labeled
from crowdwise.inference.fingerprints import fingerprint
from crowdwise.typing import Floats, Ints

N_FOLDS = 5
ENOUGH = 20  # known truths of tasks with labels; fewer are never hidden


@dataclass(frozen=True)
class HiddenGold:
    """Gold classes in folds: of fits 1, 2, … number ``b`` does not see those of fold ``b % 5``.

    Fit 0 sees all of them.

    So every fit learns from most of the truths, and each of their tasks has posteriors that
    its own truth has no part in. Folds do not depend on names or order.
    """

    gold: Ints | None  # (task,): class, or -1
    task: Ints  # of each truth that is hidden at times
    fold: Ints
    total: Floats = field(repr=False)  # (truth, class): posteriors so far
    n_fits: Ints = field(repr=False)  # (truth,): behind these

    @classmethod
    def of(cls, votes: Annotations, gold: Ints | None) -> Self:
        task = np.zeros(0, dtype=np.intp)
        if gold is not None:
            task = np.flatnonzero((gold >= 0) & find_labeled(votes))
            task = task if len(task) >= ENOUGH else task[:0]
        if gold is not None and len(task):
            task = task[np.argsort(fingerprint(votes, gold).tasks[task], kind="stable")]
        total = np.zeros((len(task), votes.n_classes))
        return cls(gold, task, np.arange(len(task)) % N_FOLDS, total, np.zeros_like(task))

    def seen_by(self, number: int) -> Ints | None:
        """The gold classes that fit ``number`` sees."""
        if self.gold is None or not len(self.task) or not number:
            return self.gold
        gold = self.gold.copy()
        gold[self.task[self.fold == number % N_FOLDS]] = -1
        return gold

    def add(self, number: int, posterior: Floats) -> None:
        """Keep what fit ``number`` says of the tasks whose truth it has not seen."""
        hidden = (self.fold == number % N_FOLDS) & (number > 0)
        self.total[hidden] += posterior[self.task[hidden]]
        self.n_fits[hidden] += 1

    def posteriors(self) -> tuple[Ints, Floats]:
        """The tasks whose truth was hidden at some time, and their mean posteriors then."""
        some = self.n_fits > 0
        return self.task[some], self.total[some] / self.n_fits[some, None]
