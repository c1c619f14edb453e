"""What the training loop works with: an objective, data for it, and a place for checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from crowdwise.nets.training import Training


class Step(Protocol):
    """A batch, or a part of one."""

    @property
    def ends(self) -> bool:
        """Whether this completes the gradient of a step."""

    @property
    def shared(self) -> bool:
        """Whether other processes may have other parts of it."""


BatchT = TypeVar("BatchT", bound=Step)
BatchT_co = TypeVar("BatchT_co", covariant=True, bound=Step)
ObjectiveT = TypeVar("ObjectiveT", bound="Objective[Any]")


class Objective(nn.Module, ABC, Generic[BatchT]):
    """A network together with its training loss, as run by the training loop.

    ``forward`` takes the step to run, a function of an objective and a batch such as
    :func:`~.loop.loss_of`, so that several objectives of one shape can be run as one.
    """

    by: str = "annotation"  # the unit of a mini-batch: annotations, tasks or groups
    adds_up: ClassVar[bool] = False  # whether losses of a batch's parts add up to the batch's
    sees_all: ClassVar[bool] = False  # whether E-steps, evidence and held-out loss need all tasks
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


class Processes(Protocol):
    """The processes that train one model: :class:`~.loop.Alone`, or :class:`~.ranks.Ranks`."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def add(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Return sums over all processes, the same bits on each of them."""

    def add_in_pairs(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Return the same, the bits being those of one process if there are two, four or more."""

    def add_slopes(self, loss: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Return the loss over all processes, and add up the parameters' gradients."""


class Checkpoints(Protocol):
    """Where the results of a fit so far are stored; see :class:`~.checkpoints.Checkpoint`."""

    def recall(self, size: int) -> Tensor | None:
        """Return the next sum, of this many numbers, if it was computed before."""

    def keep(self, parts: Sequence[Tensor]) -> None:
        """Write down the next sum."""

    def open(self) -> LoopCheckpoint:
        """Return the place of the next loop over batches."""

    def close(self) -> None:
        """Delete everything, since the fit is complete."""


class LoopCheckpoint(Protocol):
    """Where the state of a loop over batches is stored."""

    def resume(self, loop: Any) -> tuple[int, int]:
        """Restore the last state; return its phase, and how many of its epochs are done."""

    def save(self, loop: Any, phase: int, done: int) -> None:
        """Write the state, if it is time to."""


class Data(Protocol[BatchT_co]):
    """Data that the loop can train on."""

    @property
    def device(self) -> torch.device: ...

    @property
    def n_tasks(self) -> int: ...

    @property
    def n_examples(self) -> int:
        """Number of annotations, or tasks, some of which may be held out."""

    @property
    def ranks(self) -> Processes: ...

    @property
    def checkpoint(self) -> Checkpoints | None: ...

    def parts(self, *, labeled: bool = False) -> Iterator[BatchT_co]:
        """Yield this process's share of all tasks in parts."""

    def undivided(self, *, later: bool = False) -> Self:
        """Return the same data undivided, for this process alone.

        With ``later``, batches have no features if these may not be held at once.
        """

    def epochs(
        self, training: Training, by: str
    ) -> Callable[[torch.Generator], Iterator[BatchT_co]]:
        """Return a function that yields the batches of an epoch, of annotations or of tasks."""

    def held_out(self, fraction: float, rng: np.random.RandomState, by: str) -> tuple[Self, Self]:
        """Split into data to learn from and held-out data."""
