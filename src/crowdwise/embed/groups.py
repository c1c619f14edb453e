"""Who is compared with whom: groups of tasks, drawn on the fly.

A sampler's ``draw(pool, n, generator)`` gives ``n`` rows of task numbers. Nothing is ever listed
beyond the batch asked for, and there is no loop over tasks or groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from crowdwise.errors import AnnotationError, explain


@dataclass(frozen=True)
class Pool:
    """The tasks that may be drawn, those of a class side by side."""

    order: Tensor  # (place,): task numbers
    start: Tensor  # (class,): place of the first task of each class
    size: Tensor  # (class,)

    @classmethod
    def of(cls, tasks: Tensor, label: Tensor, n_classes: int) -> Pool:
        """The given tasks, by the class that ``label`` gives each task of all."""
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


class Sampler(Protocol):
    """What draws groups."""

    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        """Task numbers, (group, member)."""

    def allows(self, pool: Pool) -> bool:
        """Whether there are tasks enough to draw a group."""


@dataclass(frozen=True)
class TupleSampler:
    """An anchor, another task of its class, and tasks of other classes: (group, 2 + negatives).

    Anchors are drawn evenly from all tasks of the classes that may anchor: ``anchor``, or every
    class where it is None. The partner is another task than the anchor, and the negatives differ
    from each other, as far as there are enough; ``repeats=True`` draws each without looking.
    """

    n_negatives: int
    anchor: int | None = None
    repeats: bool = False

    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        kind = torch.multinomial(self._chances(pool), n, replacement=True, generator=generator)
        size = pool.size[kind]
        pair = distinct(size, 2, generator, repeats=self.repeats)  # (group, 2)
        others = distinct(len(pool) - size, self.n_negatives, generator, repeats=self.repeats)
        near = pool.inside(kind[:, None], pair)
        return torch.cat([near, pool.outside(kind[:, None], others)], dim=1)

    def allows(self, pool: Pool) -> bool:
        return bool((self._chances(pool) > 0).any())

    def _chances(self, pool: Pool) -> Tensor:
        """Weight of each class as an anchor's: its size, if it has two tasks and others too."""
        able = (pool.size > 1) & (pool.size < len(pool))
        if self.anchor is not None:
            able &= torch.arange(len(pool.size)) == self.anchor
        return torch.where(able, pool.size, 0).double()


@dataclass(frozen=True)
class TaskSampler:
    """Single tasks, as many of each class that there is: (task, 1), none of them twice."""

    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        there = torch.nonzero(pool.size)[:, 0]
        kind = there[torch.arange(n) % len(there)]
        place = distinct(pool.size[kind], 1, generator)
        return torch.unique(pool.inside(kind[:, None], place), dim=0)

    def allows(self, pool: Pool) -> bool:
        return several_classes(pool)


@dataclass(frozen=True)
class EpisodeSampler:
    """Supports and queries of every class: (episode, class x (support + query))."""

    n_supports: int
    n_queries: int

    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        there = torch.nonzero(pool.size)[:, 0]
        kind = there.repeat(n)  # (episode x class,)
        place = distinct(pool.size[kind], self.n_supports + self.n_queries, generator)
        return pool.inside(kind[:, None], place).reshape(n, -1)

    def allows(self, pool: Pool) -> bool:
        return several_classes(pool)


def distinct(size: Tensor, k: int, generator: torch.Generator, *, repeats: bool = False) -> Tensor:
    """``k`` different numbers below each ``size``, in random order, (row, k).

    Drawn one after the other: a number among those left is moved up past the ones taken. Rows
    with fewer than ``k`` numbers get them with repeats.
    """
    luck = torch.rand(len(size), k, generator=generator, dtype=torch.float64)
    free = (luck * size[:, None]).long()
    if repeats:
        return free
    chosen = torch.empty(len(size), 0, dtype=torch.long)
    for turn in range(k):
        pick = (luck[:, turn] * (size - turn)).long()
        for taken in chosen.sort(dim=1).values.unbind(dim=1):
            pick = pick + (pick >= taken)
        chosen = torch.cat([chosen, pick[:, None]], dim=1)
    return torch.where((size >= k)[:, None], chosen, free)


def several_classes(pool: Pool) -> bool:
    """Whether there is anything to compare."""
    return int((pool.size > 0).sum()) > 1


def refuse_too_few(pool: Pool, sampler: Sampler) -> None:
    """Comparing needs two classes, and enough tasks of them."""
    if not several_classes(pool):
        raise AnnotationError(
            explain(
                "All tasks with labels come out as one class, so there is nothing to compare.",
                expected="tasks of two classes or more",
                fix="choose another aggregator, or gather labels of the other classes",
            )
        )
    if not sampler.allows(pool):
        raise AnnotationError(
            explain(
                "There is no pair of tasks of one class to compare with those of another.",
                expected="two tasks or more of a class that anchors, and one of another",
                fix="gather more labels, or let every class anchor (anchors='all')",
            )
        )
