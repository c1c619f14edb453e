"""Starting points of training: uninformed, or from the labels alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from crowdwise.aggregate import IBCC
from crowdwise.annotations import Annotations
from crowdwise.learn.parts import CrowdObjective
from crowdwise.learn.two_stage import name_truths
from crowdwise.typing import Ints

# An untrained network for some tasks to learn from, (task,): 1 for these, else 0.
Start: TypeAlias = Callable[[Tensor], CrowdObjective]


@dataclass(frozen=True)
class LabelsAlone:
    """IBCC's results from the labels of some tasks, computed once for each set of them."""

    votes: Annotations
    gold: Ints | None
    known: dict[bytes, IBCC] = field(default_factory=dict)

    def infer(self, keep: Tensor) -> IBCC:
        """Return IBCC, fitted to the labels of the tasks to keep."""
        chosen = keep.cpu().numpy() > 0
        if chosen.tobytes() not in self.known:
            some = self.votes.filter(chosen[self.votes.task])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # near the optimum is enough
                found = IBCC().fit(some, name_truths(self.gold, self.votes))
            self.known[chosen.tobytes()] = found
        return self.known[chosen.tobytes()]

    def posterior(self, keep: Tensor) -> Tensor:
        """Return P(truth | labels) of each task, (task, truth)."""
        return torch.as_tensor(self.infer(keep).posterior_)

    def confusion(self, keep: Tensor) -> Tensor:
        """Return P(label | truth) of each worker, (worker, truth, label)."""
        return torch.as_tensor(self.infer(keep).confusion_)
