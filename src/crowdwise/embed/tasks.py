"""The tasks of one fit, and the batches of groups that training takes from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from crowdwise.embed.encoder import EmbedNet
from crowdwise.errors import AnnotationError, explain
from crowdwise.nets.features import Features, rows_at_once
from crowdwise.nets.training import Training

HELD_GROUPS = 2048  # groups of held-out tasks that the loss is measured on


@dataclass(frozen=True)
class Pool:
    """The tasks that may be drawn, sorted by class."""

    order: Tensor  # (place,): task numbers
    start: Tensor  # (class,): place of the first task of each class
    size: Tensor  # (class,)

    @classmethod
    def of(cls, tasks: Tensor, label: Tensor, n_classes: int) -> Pool:
        """The given tasks; ``label`` holds the class of every task."""
        own = label[tasks]
        order = torch.argsort(own, stable=True)
        size = torch.bincount(own, minlength=n_classes)
        return cls(tasks[order], size.cumsum(0) - size, size)

    def __len__(self) -> int:
        return len(self.order)

    def inside(self, kind: Tensor, place: Tensor) -> Tensor:
        """Tasks by their places within their classes."""
        return self.order[self.start[kind] + place]

    def outside(self, kind: Tensor, place: Tensor) -> Tensor:
        """Tasks by their places among those of all other classes."""
        return self.order[place + torch.where(place < self.start[kind], 0, self.size[kind])]


@dataclass(frozen=True)
class GroupBatch:
    """Some groups, and every task in them once."""

    x: Tensor  # (row, …): features
    task: Tensor  # (row,): task numbers
    label: Tensor  # (row,): their classes
    confidence: Tensor  # (row,): confidence in the class
    groups: Tensor  # (group, member), or (episode, class, member): rows


class Draws(Protocol):
    """What the tasks need from a sampler."""

    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        """Draw ``n`` groups of task numbers, (group, member)."""

    def allows(self, pool: Pool) -> bool:
        """Whether there are enough tasks to draw a group."""

    def begin(self, tasks: GroupTasks, generator: torch.Generator) -> Pool:
        """Choose the tasks that may be drawn in this epoch."""

    def pick(self, tasks: GroupTasks, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        """Choose the ``n`` groups to learn from next, (group, member)."""


@dataclass
class GroupTasks:
    """All tasks on one device, and how groups of them are drawn.

    An epoch is ``n_groups`` groups, drawn as they are needed. Before it begins, ``renew`` may
    change the classes and confidences, and the sampler chooses which tasks may be drawn.
    """

    features: Features
    label: Tensor  # (task,): -1 where there is none
    confidence: Tensor  # (task,)
    tasks: Tensor  # those that may be drawn
    n_classes: int
    n_groups: int
    net: EmbedNet
    sampler: Draws
    renew: Callable[[GroupTasks], None]
    epoch: int = -1

    @property
    def n_examples(self) -> int:
        """Tasks to draw from, of which some may be held out."""
        return len(self.tasks)

    @property
    def device(self) -> torch.device:
        return self.confidence.device

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
        self.renew(self)
        pool = self.sampler.begin(self, generator)
        for start in range(0, self.n_groups, size or self.n_groups):
            n = min(size or self.n_groups, self.n_groups - start)
            yield self.batch(self.sampler.pick(self, pool, n, generator))

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
        """The same groups at every call, to measure a loss on."""
        generator = torch.Generator().manual_seed(0)
        n = min(self.n_groups, HELD_GROUPS)
        return self.batch(self.sampler.draw(self.pool(), n, generator))

    def labeled(self) -> GroupBatch:
        """The same: groups are made of labeled tasks."""
        return self.whole()

    def held_out(
        self, fraction: float, rng: np.random.RandomState, by: str = "tasks"
    ) -> tuple[GroupTasks, GroupTasks]:
        """Tasks to learn from and tasks to check with, ``fraction`` of every class.

        Groups are made of whole tasks, so tasks are held out whatever ``by`` says.
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
    def embedded(self, tasks: Tensor) -> Tensor:
        """The tasks as the network represents them now, without dropout."""
        mode, size = self.net.training, rows_at_once(int(np.prod(self.features.shape)))
        self.net.eval()
        rows = (self.features.rows(some.to(self.device)) for some in torch.split(tasks, size))
        parts = [self.net(x) for x in rows]
        self.net.train(mode)
        return torch.cat(parts)


def several_classes(pool: Pool) -> bool:
    """Whether there is anything to compare."""
    return int((pool.size > 0).sum()) > 1


def refuse_too_few(pool: Pool, sampler: Draws) -> None:
    """Comparing needs two classes, and enough tasks of them."""
    if not several_classes(pool):
        raise AnnotationError(
            explain(
                "All labeled tasks are assigned to one class, so there is nothing to compare.",
                expected="tasks of two classes or more",
                fix="choose another aggregator, or collect labels of the other classes",
            )
        )
    if not sampler.allows(pool):
        raise AnnotationError(
            explain(
                "There is no pair of tasks of one class to compare with those of another.",
                expected="two tasks or more of a class that anchors, and one of another",
                fix="collect more labels, or let every class anchor: "
                "groups=RandomGroups(anchors=EveryClass())",
            )
        )
