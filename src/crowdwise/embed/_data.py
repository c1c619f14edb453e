"""Tasks as tensors, and the batches of groups that training takes from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from crowdwise.embed.groups import Pool, Sampler, refuse_too_few
from crowdwise.nets.features import Features, rows_at_once
from crowdwise.nets.training import Training

if TYPE_CHECKING:
    from crowdwise.embed._objective import EmbedObjective

HELD_GROUPS = 2048  # groups of held-out tasks that the loss is watched on


@dataclass(frozen=True)
class GroupBatch:
    """Some groups, and every task in them once."""

    x: Tensor  # (row, …): features
    task: Tensor  # (row,): task numbers
    label: Tensor  # (row,): their classes
    confidence: Tensor  # (row,): confidence in the class
    groups: Tensor  # (group, member): rows


@dataclass
class GroupData:
    """All tasks on one device, and how groups of them are drawn.

    An epoch is ``n_groups`` groups, drawn as they are needed. Before it begins, ``renew`` may
    change what is believed of the tasks, and the objective says which of them may be drawn.
    """

    features: Features
    label: Tensor  # (task,): -1 where there is none
    confidence: Tensor  # (task,)
    tasks: Tensor  # those that may be drawn
    n_classes: int
    n_groups: int
    objective: EmbedObjective
    renew: Callable[[GroupData], None] | None = None
    epoch: int = -1

    @property
    def n_examples(self) -> int:
        """Tasks to draw from, of which some may be held out."""
        return len(self.tasks)

    @property
    def device(self) -> torch.device:
        return self.confidence.device

    @property
    def sampler(self) -> Sampler:
        return self.objective.sampler

    def pool(self) -> Pool:
        """All tasks that may be drawn; kept on the CPU, where groups are drawn."""
        return Pool.of(self.tasks.cpu(), self.label.cpu(), self.n_classes)

    def epochs(
        self, training: Training, by: str
    ) -> Callable[[torch.Generator], Iterator[GroupBatch]]:
        """A function that yields one epoch of groups, ``batch_size`` at a time."""
        return partial(self.batches, training.batch_size)

    def batches(self, size: int | None, generator: torch.Generator) -> Iterator[GroupBatch]:
        """One epoch of groups, ``size`` at a time."""
        self.epoch += 1
        if self.renew is not None:
            self.renew(self)
        pool = self.objective.begin(self, generator)
        for start in range(0, self.n_groups, size or self.n_groups):
            n = min(size or self.n_groups, self.n_groups - start)
            yield self.batch(self.objective.pick(self, pool, n, generator))

    def batch(self, groups: Tensor) -> GroupBatch:
        """The groups, with each task's features once.

        Where groups name more members than there are tasks, all tasks are taken as they are,
        which is faster than finding out which few are missing.
        """
        if groups.numel() >= len(self.label):
            task, rows = torch.arange(len(self.label)), groups
        else:
            task, rows = torch.unique(groups, return_inverse=True)
        task, rows = task.to(self.device), rows.to(self.device)
        x = self.features.rows(task)
        return GroupBatch(x, task, self.label[task], self.confidence[task], rows)

    def whole(self) -> GroupBatch:
        """The same groups at every call, to watch a loss on."""
        generator = torch.Generator().manual_seed(0)
        n = min(self.n_groups, HELD_GROUPS)
        return self.batch(self.sampler.draw(self.pool(), n, generator))

    def labeled(self) -> GroupBatch:
        """The same: groups are made of labeled tasks."""
        return self.whole()

    def held_out(
        self, fraction: float, rng: np.random.RandomState, by: str = "tasks"
    ) -> tuple[GroupData, GroupData]:
        """Tasks to learn from and tasks to check with, ``fraction`` of every class.

        Groups are made of whole tasks, so that these are held out whatever ``by`` says.
        """
        label = self.label[self.tasks].cpu().numpy()
        order = np.lexsort((rng.random_sample(len(label)), label))
        size = np.bincount(label, minlength=self.n_classes)
        rank = np.empty(len(label))
        rank[order] = np.arange(len(label)) - (size.cumsum() - size)[label[order]]
        n_out = np.maximum(np.round(fraction * size), np.minimum(2, size // 2))
        out = torch.as_tensor(rank < n_out[label], device=self.tasks.device)
        parts = (replace(self, tasks=self.tasks[~out]), replace(self, tasks=self.tasks[out]))
        for part in parts:
            refuse_too_few(part.pool(), self.sampler)
        return parts

    @torch.no_grad()
    def embedded(self, net: nn.Module, tasks: Tensor) -> Tensor:
        """The tasks as ``net`` represents them now, without dropout."""
        mode, size = net.training, rows_at_once(int(np.prod(self.features.shape)))
        net.eval()
        parts = [net(self.features.rows(some.to(self.device))) for some in torch.split(tasks, size)]
        net.train(mode)
        return torch.cat(parts)
