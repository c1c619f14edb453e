"""What training runs: objectives, several side by side, on all tasks or some at a time."""

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
        """Whether the slopes of a step are complete with it."""


BatchT = TypeVar("BatchT", bound=Step)
ObjectiveT = TypeVar("ObjectiveT", bound="Objective[Any]")
DataT = TypeVar("DataT", bound="Divided")
Run: TypeAlias = Callable[[Any, Any], Tensor]  # a step of any objective on any batch


class Objective(nn.Module, ABC, Generic[BatchT]):
    """A network together with the loss it is trained on: what the training loop runs.

    ``forward`` takes the step to run, a function of an objective and a batch such as
    :func:`loss_of`, so that several objectives of one shape can be run as one.
    """

    by: str = "annotation"  # what a mini-batch is made of: annotations, tasks or groups
    adds_up: ClassVar[bool] = False  # whether the losses of parts of a batch are that of the batch
    held_out_everywhere = False  # whether ``held_out`` looks at tasks without held-out labels too
    net: nn.Module

    @abstractmethod
    def loss(self, batch: BatchT) -> Tensor:
        """What training lowers."""

    @abstractmethod
    def held_out(self, batch: BatchT) -> Tensor:
        """Loss on held-out data: what restarts are chosen by, and what patience watches."""

    def forward(self, step: Callable[[Self, BatchT], Tensor], batch: BatchT) -> Tensor:
        return step(self, batch)


def loss_of(objective: Objective[BatchT], batch: BatchT) -> Tensor:
    """The step that an objective is trained by, unless a phase names another."""
    return objective.loss(batch)


def held_out_of(objective: Objective[BatchT], batch: BatchT) -> Tensor:
    """The step that an objective is judged by."""
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
        # Scaled features and the like are then worked out once, not by every member.
        alike = {name for name in own if name.startswith(SHARED)}
        self.buffers.update({name: own[name] for name in alike})
        self.axes = {name: None if name in alike else 0 for name in own}

    def __len__(self) -> int:
        return len(self.members)

    def __call__(self, step: Callable[[ObjectiveT, BatchT], Tensor], batch: BatchT) -> Tensor:
        """The step of each member, stacked."""
        if len(self) == 1:
            return self.template(step, batch).unsqueeze(0)

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            return functional_call(self.template, (parameters, buffers), (step, batch))

        run = vmap(one, in_dims=(0, self.axes), randomness="different")
        return run(self.parameters, self.buffers)

    def train(self, mode: bool) -> None:
        self.template.train(mode)

    def select(self, numbers: Sequence[int]) -> Ensemble[ObjectiveT]:
        """Some of the members, as they are now."""
        return Ensemble([self.member(number) for number in numbers])

    @torch.no_grad()
    def set_target(self, target: Tensor) -> None:
        """Give each member the posterior of its own E-step."""
        if len(self) == 1:
            self.buffers["target"].copy_(target[0])
        else:
            self.buffers["target"].copy_(target)

    def learned(self) -> dict[str, Tensor]:
        """All that training changes: parameters, and running means and the like."""
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
        """One member with its own parameters again."""
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
    """One process that has all tasks; of several, each has its :class:`~.ranks.Ranks`."""

    rank: int = 0
    size: int = 1

    def add(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """The sums over all processes, the same bits on each of them."""
        return list(parts)

    def add_slopes(self, loss: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """The loss of all processes; their slopes are those of the parameters then."""
        return loss

    def same_rng(self, rng: np.random.RandomState) -> np.random.RandomState:
        """Random numbers that are the same in all processes."""
        return rng

    def part(self, n: int) -> slice:
        """Which of ``n`` things in a row are this process's."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def agree(self, what: str, *numbers: float) -> None:
        """Refuse to go on where other processes have other numbers."""


ALONE = Alone()


def has_company() -> bool:
    """Whether other processes may train with this one."""
    if not distributed.is_available():
        return False
    return distributed.is_initialized() or int(os.environ.get("WORLD_SIZE", "1")) > 1


class StateFile(Protocol):
    """Where the state of a loop over batches is kept."""

    def load(self) -> dict[str, Any] | None: ...

    def is_due(self) -> bool: ...

    def save(self, state: dict[str, Any]) -> None: ...


class Unkept:
    """What training finds is not kept; see :class:`~.checkpoints.Checkpoint` for where it is."""

    def recall(self, size: int) -> Tensor | None:
        """The next sum, so many numbers, if it was found before."""

    def keep(self, parts: Sequence[Tensor]) -> None:
        """Write down the next sum."""

    def open(self) -> StateFile | None:
        """The file of the next loop over batches."""

    def close(self) -> None:
        """Forget all: the fit has ended."""


UNKEPT = Unkept()


class Divided(Protocol):
    """Data that come in parts."""

    @property
    def n_tasks(self) -> int: ...

    @property
    def ranks(self) -> Alone: ...

    @property
    def checkpoint(self) -> Unkept: ...

    def parts(self, *, labeled: bool = False) -> Iterator[Any]:
        """The part of this process of all tasks, some at a time."""

    def undivided(self) -> Self:
        """The same in one piece, for this process alone."""


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
        self, ensemble: Ensemble[Any], step: Run, free: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """The loss of every member, and its slopes."""
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
