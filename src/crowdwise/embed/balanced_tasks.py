"""Single tasks instead of groups, for losses that compare all tasks of a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdwise.embed.groups import Groups, Pool, Sampler, Setting, distinct, several_classes
from crowdwise.typing import Ints


class BalancedTasks(Groups):
    """Single tasks, equally many per class, for losses that compare all tasks of a batch."""

    def sampler(self, setting: Setting) -> TaskSampler:
        return TaskSampler()


class TaskSampler(Sampler):
    """Draws single tasks, equally many per class that occurs: (task, 1), without repeats."""

    n_members = 1

    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        there = torch.nonzero(pool.size)[:, 0]
        kind = there[torch.arange(n) % len(there)]
        place = distinct(pool.size[kind], 1, generator)
        return torch.unique(pool.inside(kind[:, None], place), dim=0)

    def allows(self, pool: Pool) -> bool:
        return several_classes(pool)

    def n_groups(self, size: Ints) -> int:
        return 2560
