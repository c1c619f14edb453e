"""A step on all tasks, some at a time and in several processes: what it finds is added up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

from crowdwise.nets.checkpoints import Checkpoint
from crowdwise.nets.modules import Ensemble, Objective
from crowdwise.nets.ranks import Ranks

Step = Callable[[Any, Any], Tensor]
log = logging.getLogger("crowdwise")


class Divided(Protocol):
    """Data that come in parts."""

    @property
    def n_tasks(self) -> int: ...

    @property
    def ranks(self) -> Ranks: ...

    @property
    def checkpoint(self) -> Checkpoint | None: ...

    def parts(self, *, labeled: bool = False) -> Iterator[Any]:
        """The part of this process of all tasks, some at a time."""

    def undivided(self) -> Self:
        """The same in one piece, for this process alone."""


DataT = TypeVar("DataT", bound=Divided)


def divide(data: DataT, objective: Objective[Any]) -> DataT:
    """The data as they are, or in one piece where the losses of parts do not add up."""
    if objective.adds_up:
        return data
    if data.ranks.size > 1 and data.ranks.rank == 0:
        name = type(objective).__name__.removesuffix("Loss")
        log.warning(
            "%s is no sum over annotations: all %d processes work on all tasks.",
            *(name, data.ranks.size),
        )
    return data.undivided()


class Parts:
    """Steps on all tasks of some data; a single part is fetched once."""

    def __init__(self, data: Divided) -> None:
        self.data = data
        self.kept: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        if self.kept:
            yield from self.kept
            return
        first, n = None, 0
        for batch in self.data.parts():
            first, n = batch, n + 1
            yield batch
        if n == 1:
            self.kept = [first]

    def slopes(
        self, ensemble: Ensemble[Any], step: Step, free: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """The loss of every member, and its slopes."""
        checkpoint, n = self.data.checkpoint, len(ensemble)
        sizes = [n, *(p.numel() for p in free)]
        known = None if checkpoint is None else checkpoint.recall(sum(sizes))
        if known is not None:
            cut = torch.split(known, sizes)
            rows = zip(cut[1:], free, strict=True)
            return cut[0].to(free[0]), [row.to(p).reshape(p.shape) for row, p in rows]
        loss: Tensor | None = None
        total: list[Tensor] = []
        for batch in self:
            own = ensemble(step, batch)
            found = torch.autograd.grad(own.sum(), free, allow_unused=True)
            slope = [
                torch.zeros_like(p) if s is None else s for p, s in zip(free, found, strict=True)
            ]
            total = [a + b for a, b in zip(total, slope, strict=True)] if total else slope
            loss = own.detach() if loss is None else loss + own.detach()
        assert loss is not None
        loss, *total = self.data.ranks.add([loss, *total])
        if checkpoint is not None:
            checkpoint.keep(torch.cat([loss, *(slope.reshape(-1) for slope in total)]))
        return loss, total

    @torch.no_grad()
    def gather(self, ensemble: Ensemble[Any], step: Step) -> Tensor:
        """What a step finds of each task, (member, task, …)."""
        found: Tensor | None = None
        for batch in self:
            own = ensemble(step, batch)
            if own.shape[1] == self.data.n_tasks:
                return own
            if found is None:
                found = own.new_zeros((len(own), self.data.n_tasks, *own.shape[2:]))
            found[:, batch.task] = own
        assert found is not None
        return self.data.ranks.add([found])[0]
