"""Objectives for training, several of them in parallel, on all tasks or in parts."""

from __future__ import annotations

import copy
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.func import functional_call, stack_module_state, vmap

from crowdwise.nets.modules import SideBySide

SHARED = ("gold", "net.scaler.")  # buffers from the data, the same in every restart
log = logging.getLogger("crowdwise")


class Step(Protocol):
    """A batch, or a part of one."""

    @property
    def ends(self) -> bool:
        """Whether this completes the gradient of a step."""


BatchT = TypeVar("BatchT", bound=Step)
ObjectiveT = TypeVar("ObjectiveT", bound="Objective[Any]")
DataT = TypeVar("DataT", bound="Divided")
Run: TypeAlias = Callable[[Any, Any], Tensor]  # a step of any objective on any batch


class Objective(nn.Module, ABC, Generic[BatchT]):
    """A network together with its training loss, as run by the training loop.

    ``forward`` takes the step to run, a function of an objective and a batch such as
    :func:`loss_of`, so that several objectives of one shape can be run as one.
    """

    by: str = "annotation"  # the unit of a mini-batch: annotations, tasks or groups
    adds_up: ClassVar[bool] = False  # whether losses of a batch's parts add up to the batch's
    held_out_everywhere = False  # whether ``held_out`` also uses tasks without held-out labels
    net: nn.Module

    @abstractmethod
    def loss(self, batch: BatchT) -> Tensor:
        """Return the training loss."""

    @abstractmethod
    def held_out(self, batch: BatchT) -> Tensor:
        """Return the loss on held-out data, which decides between restarts and stops training."""

    def forward(self, step: Callable[[Self, BatchT], Tensor], batch: BatchT) -> Tensor:
        return step(self, batch)


def loss_of(objective: Objective[BatchT], batch: BatchT) -> Tensor:
    """Run the usual training step of an objective."""
    return objective.loss(batch)


def held_out_of(objective: Objective[BatchT], batch: BatchT) -> Tensor:
    """Run the step that evaluates an objective."""
    return objective.held_out(batch)


class Ensemble(Generic[ObjectiveT]):
    """Several objectives of one shape, run as one."""

    def __init__(self, members: Sequence[ObjectiveT]) -> None:
        self.members = list(members)
        self.template = members[0]
        self.parameters: dict[str, Tensor] = dict(self.template.named_parameters())
        self.buffers: dict[str, Tensor] = dict(self.template.named_buffers())
        if len(members) > 1:
            self.template = copy.deepcopy(members[0])
            for part in self.template.modules():
                if isinstance(part, SideBySide):
                    part.side_by_side = True
            self.parameters, self.buffers = stack_module_state(list(members))
        own = dict(self.template.named_buffers())
        # Scaled features and the like are then computed once, not by every member.
        alike = {name for name in own if name.startswith(SHARED)}
        self.buffers.update({name: own[name] for name in alike})
        self.axes = {name: None if name in alike else 0 for name in own}

    def __len__(self) -> int:
        return len(self.members)

    def __call__(self, step: Callable[[ObjectiveT, BatchT], Tensor], batch: BatchT) -> Tensor:
        """Return the step of each member, stacked."""
        if len(self) == 1:
            return self.template(step, batch).unsqueeze(0)

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            return functional_call(self.template, (parameters, buffers), (step, batch))

        run = vmap(one, in_dims=(0, self.axes), randomness="different")
        return run(self.parameters, self.buffers)

    def train(self, mode: bool) -> None:
        self.template.train(mode)

    def select(self, numbers: Sequence[int]) -> Ensemble[ObjectiveT]:
        """Return some of the members in their current state."""
        return Ensemble([self.member(number) for number in numbers])

    @torch.no_grad()
    def set_target(self, target: Tensor) -> None:
        """Give each member the posterior of its own E-step."""
        if len(self) == 1:
            self.buffers["target"].copy_(target[0])
        else:
            self.buffers["target"].copy_(target)

    def learned(self) -> dict[str, Tensor]:
        """Return all that training changes, including running means."""
        own = [n for n in self.buffers if n.startswith("net.") and not n.startswith(SHARED)]
        return {**self.parameters, **{name: self.buffers[name] for name in own}}

    def snapshot(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.learned().items()}

    @torch.no_grad()
    def keep(self, best: dict[str, Tensor], better: Tensor) -> None:
        """Overwrite the members' entries of ``best`` where ``better``."""
        if not better.any():
            return
        for name, value in self.learned().items():
            if len(self) == 1:
                best[name].copy_(value)
            else:
                rows = better.to(value.device).reshape(-1, *[1] * (value.ndim - 1))
                torch.where(rows, value, best[name], out=best[name])

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        for name, value in self.learned().items():
            value.copy_(state[name])

    @torch.no_grad()
    def member(self, number: int) -> ObjectiveT:
        """Return one member with its own parameters again."""
        if len(self) == 1:
            return self.members[0]
        chosen = self.members[number]
        state = {**self.parameters, **self.buffers}
        for name, value in (*chosen.named_parameters(), *chosen.named_buffers()):
            if self.axes.get(name, 0) == 0:
                value.copy_(state[name][number])
        return chosen


@dataclass(frozen=True)
class Alone:
    """A single process with all tasks; several have :class:`~.ranks.Ranks` instead."""

    rank: int = 0
    size: int = 1

    def add(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Return sums over all processes, the same bits on each of them."""
        return list(parts)

    def add_slopes(self, loss: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Return the loss over all processes, and add up the parameters' gradients."""
        return loss

    def same_rng(self, rng: np.random.RandomState) -> np.random.RandomState:
        """Return random numbers that are the same in all processes."""
        return rng

    def part(self, n: int) -> slice:
        """Return the slice of ``n`` items that belongs to this process."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def agree(self, what: str, *numbers: float) -> None:
        """Refuse to continue if other processes have other numbers."""


ALONE = Alone()


def has_company() -> bool:
    """Return whether other processes may train with this one."""
    if not distributed.is_available():
        return False
    return distributed.is_initialized() or int(os.environ.get("WORLD_SIZE", "1")) > 1


class StateFile(Protocol):
    """A file for the state of a loop over batches."""

    def load(self) -> dict[str, Any] | None: ...

    def is_due(self) -> bool: ...

    def save(self, state: dict[str, Any]) -> None: ...


class Unkept:
    """Training without a checkpoint; see :class:`~.checkpoints.Checkpoint` for one."""

    def recall(self, size: int) -> Tensor | None:
        """Return the next sum, of this many numbers, if it was computed before."""

    def keep(self, parts: Sequence[Tensor]) -> None:
        """Write down the next sum."""

    def open(self) -> StateFile | None:
        """Return the file of the next loop over batches."""

    def close(self) -> None:
        """Delete everything, since the fit is complete."""


UNKEPT = Unkept()


class Divided(Protocol):
    """Data that can be processed in parts."""

    @property
    def n_tasks(self) -> int: ...

    @property
    def ranks(self) -> Alone: ...

    @property
    def checkpoint(self) -> Unkept: ...

    def parts(self, *, labeled: bool = False) -> Iterator[Any]:
        """Yield this process's share of all tasks in parts."""

    def undivided(self) -> Self:
        """Return the same data undivided, for this process alone."""


def divide(data: DataT, objective: Objective[Any]) -> DataT:
    """Return the data, undivided if the losses of parts do not add up."""
    if objective.adds_up:
        return data
    if data.ranks.size > 1 and data.ranks.rank == 0:
        name = type(objective).__name__.removesuffix("Loss")
        log.warning(
            "%s is not a sum over annotations: all %d processes work on all tasks.",
            *(name, data.ranks.size),
        )
    return data.undivided()


class Parts:
    """Steps over all tasks of some data; a single part is fetched only once."""

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
        self, ensemble: Ensemble[Any], step: Run, free: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the loss of every member, and its gradient."""
        sizes = [len(ensemble), *(p.numel() for p in free)]
        known = self.data.checkpoint.recall(sum(sizes))
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
        self.data.checkpoint.keep([loss, *total])
        return loss, total

    @torch.no_grad()
    def gather(self, ensemble: Ensemble[Any], step: Run) -> Tensor:
        """Collect the results of a step for each task, (member, task, …)."""
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
