"""The training loop, with held-out labels."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, distributed, nn

from crowdwise import progress
from crowdwise.errors import CrowdwiseError, ParameterError
from crowdwise.nets.objective import BatchT, Data, Objective, ObjectiveT
from crowdwise.nets.training import OPTIMIZERS, PARTS, Training, check_rates

SHARED = ("gold", "net.scaler.")  # buffers from the data, the same in every restart
WORTH_SHARING = 4_000_000
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)  # their rows depend on one another
log = logging.getLogger("crowdwise")


class TrainingError(CrowdwiseError, ArithmeticError):
    """Training diverged in every restart."""


@dataclass(frozen=True)
class Alone:
    """A single process with all tasks; several have :class:`~.ranks.Ranks` instead."""

    rank: int = 0
    size: int = 1

    def add(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Return sums over all processes, the same bits on each of them."""
        return list(parts)

    def add_in_pairs(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Return the same, the bits being those of one process if there are two, four or more."""
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


def add_in_pairs(terms: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Add up terms of several numbers: neighbors first, then the sums of neighbors, and so on."""
    while len(terms) > 1:
        pairs = (terms[i : i + 2] for i in range(0, len(terms), 2))
        terms = [[sum(both[1:], both[0]) for both in zip(*pair, strict=True)] for pair in pairs]
    return list(terms[0])


def has_company() -> bool:
    """Return whether other processes may train with this one."""
    if not distributed.is_available():
        return False
    return distributed.is_initialized() or int(os.environ.get("WORLD_SIZE", "1")) > 1


def loss_of(objective: Objective[BatchT], batch: BatchT) -> Tensor:
    """Run the usual training step of an objective."""
    return objective.loss(batch)


def held_out_of(objective: Objective[BatchT], batch: BatchT) -> Tensor:
    """Run the step that evaluates an objective."""
    return objective.held_out(batch)


@dataclass(frozen=True)
class Phase(Generic[ObjectiveT, BatchT]):
    """A phase of training: its length, its step, and whether an E-step comes first."""

    epochs: int
    loss: Callable[[ObjectiveT, BatchT], Tensor] = loss_of
    expect: Callable[[ObjectiveT, BatchT], Tensor] | None = None  # gives P(truth) of each task


@dataclass
class History:
    """Loss and held-out loss of each restart, per epoch."""

    loss: list[list[float]] = field(default_factory=list)
    held_out: list[list[float]] = field(default_factory=list)
    best: int = 0  # the restart that was kept
    chosen: dict[str, Any] = field(default_factory=dict)  # settings, if there was a search
    why: str = ""  # reason for that choice


DataT = TypeVar("DataT", bound=Data[Any])


def holds_out(training: Training) -> bool:
    """Return whether some annotations are held out for decisions."""
    return training.n_restarts > 1 or training.patience is not None


def split(
    data: DataT, training: Training, rng: np.random.RandomState
) -> tuple[DataT, DataT | None]:
    """Split off held-out data; members are built from the rest alone."""
    check(training)
    if not holds_out(training) or data.n_examples < 2:
        return data, None
    learned, held = data.held_out(training.validation_fraction, rng, training.hold_out)
    return (learned, held) if learned.n_examples else (data, None)


def divide(data: DataT, objective: Objective[Any]) -> DataT:
    """Return the data, undivided if the losses of parts do not add up."""
    normalized = any(isinstance(part, NORMS) for part in objective.modules())
    if objective.adds_up and not normalized:
        return data
    if data.ranks.size > 1 and data.ranks.rank == 0:
        name = "BatchNorm" if normalized else type(objective).__name__.removesuffix("Loss")
        log.warning(
            "%s is not a sum over annotations: all %d processes work on all tasks.",
            *(name, data.ranks.size),
        )
    return data.undivided(later=objective.sees_all)


def view(data: DataT, objective: Objective[Any]) -> DataT:
    """Return the data for E-steps and evidence, which may need all tasks at once."""
    return data.undivided(later=True) if objective.sees_all else divide(data, objective)


def train(
    ensemble: Single[ObjectiveT],
    data: Data[BatchT],
    held: Data[BatchT] | None,
    phases: Sequence[Phase[ObjectiveT, BatchT]],
    training: Training,
    rng: np.random.RandomState,
) -> tuple[ObjectiveT, History]:
    """Train all members at once; returns the best one and the history."""
    check(training)
    history, one = History(), ensemble.template
    data, held = divide(data, one), None if held is None else view(held, one)
    loop = Loop(ensemble, data, held, phases, training, rng, history)
    try:
        loop.run()
    except KeyboardInterrupt:
        warnings.warn(
            f"Training was interrupted after {len(history.loss)} epochs; the best so far is kept.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return loop.best_member(), history


class Single(Generic[ObjectiveT]):
    """One objective in training; :class:`~.ensemble.Ensemble` runs several as one."""

    def __init__(self, member: ObjectiveT) -> None:
        self.template = member
        self.parameters: dict[str, Tensor] = dict(member.named_parameters())
        self.buffers: dict[str, Tensor] = dict(member.named_buffers())

    def __len__(self) -> int:
        return 1

    def __call__(self, step: Callable[[ObjectiveT, BatchT], Tensor], batch: BatchT) -> Tensor:
        """Return the step of each member, stacked."""
        return step(self.template, batch).unsqueeze(0)

    def twin(self) -> Self:
        """Return the same parameters for another thread to run."""
        return self

    def train(self, mode: bool) -> None:
        self.template.train(mode)

    @torch.no_grad()
    def set_target(self, target: Tensor) -> None:
        """Give each member the posterior of its own E-step."""
        self.buffers["target"].copy_(target[0])

    def learned(self) -> dict[str, Tensor]:
        """Return all that training changes, including running means."""
        own = [n for n in self.buffers if n.startswith("net.") and not n.startswith(SHARED)]
        return {**self.parameters, **{name: self.buffers[name] for name in own}}

    def snapshot(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.learned().items()}

    @torch.no_grad()
    def keep(self, best: dict[str, Tensor], better: Tensor) -> None:
        """Overwrite the members' entries of ``best`` where ``better``."""
        for name, value in self.learned().items():
            best[name].copy_(value)

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        for name, value in self.learned().items():
            value.copy_(state[name])

    def member(self, number: int) -> ObjectiveT:
        """Return one member with its own parameters again."""
        return self.template


@dataclass
class Loop(Generic[ObjectiveT, BatchT]):
    """The state of one training run."""

    ensemble: Single[ObjectiveT]
    data: Data[BatchT]
    held: Data[BatchT] | None
    phases: Sequence[Phase[ObjectiveT, BatchT]]
    training: Training
    rng: np.random.RandomState
    history: History

    def __post_init__(self) -> None:
        self.optimizer = make_optimizer(self.training, self.ensemble.parameters)
        epochs = sum(phase.epochs for phase in self.phases)
        cosine = self.training.schedule == "cosine"
        self.scheduler = (
            torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, max(epochs, 1))
            if cosine
            else None
        )
        self.generator = torch.Generator().manual_seed(int(self.rng.randint(2**31 - 1)))
        self.batches = self.data.epochs(self.training, self.ensemble.template.by)
        self.best_state = self.ensemble.snapshot()
        self.best_value = torch.full((len(self.ensemble),), torch.inf)
        self.since_best, self.report_every = 0, max(1, epochs // 10)

    def run(self) -> None:
        total = sum(phase.epochs for phase in self.phases)
        kept = None if self.data.checkpoint is None else self.data.checkpoint.open()
        first, begun = (0, 0) if kept is None else kept.resume(self)
        with progress.bar("training", total, "epoch") as bar:
            if first or begun:
                bar.skip(sum(phase.epochs for phase in self.phases[:first]) + begun)
            for number, phase in enumerate(self.phases[first:], first):
                if phase.expect is not None and not begun:
                    self.expect(phase.expect)
                for done in range(begun + 1, phase.epochs + 1):
                    self.epoch(phase.loss)
                    bar.advance()
                    patience = self.training.patience
                    ends = bool(patience) and self.since_best >= (patience or 0)
                    if ends:
                        self.since_best = 0
                        bar.skip(phase.epochs - done)
                    if kept is not None:
                        kept.save(self, number + 1 if ends else number, 0 if ends else done)
                    if ends:
                        break
                begun = 0

    def epoch(self, step: Callable[[ObjectiveT, BatchT], Tensor]) -> None:
        """Run one pass over the batches, and evaluate on the held-out labels."""
        self.ensemble.train(True)
        losses, n = torch.zeros(len(self.ensemble), device=self.data.device), 0
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros_like(losses)
        for batch in self.batches(self.generator):
            loss = self.ensemble(step, batch)
            torch.autograd.backward(loss.sum())
            total = total + loss.detach()
            if batch.ends:
                parameters = list(self.ensemble.parameters.values())
                ranks = self.data.ranks if batch.shared else ALONE
                losses, n = losses + ranks.add_slopes(total, parameters), n + 1
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
                total = torch.zeros_like(losses)
        if self.scheduler is not None:
            self.scheduler.step()
        self.record((losses / n).cpu())

    def record(self, losses: Tensor) -> None:
        self.history.loss.append(losses.tolist())
        value, held = losses, self.held
        if held is not None:
            with torch.no_grad():
                self.ensemble.train(False)
                labeled = not self.ensemble.template.held_out_everywhere
                parts = [self.ensemble(held_out_of, part) for part in held.parts(labeled=labeled)]
                value = held.ranks.add([torch.stack(parts).sum(dim=0)])[0].cpu()
            self.history.held_out.append(value.tolist())
        if not torch.isfinite(losses).any():
            self.diverged()
        better = torch.isfinite(value) & torch.isfinite(losses)
        if held is not None:
            better &= value < self.best_value
        self.since_best = 0 if better.any() else self.since_best + 1
        self.best_value = torch.where(better, value, self.best_value)
        if better.any() and (held is not None or not better.all()):
            self.ensemble.keep(self.best_state, better)
        n_epochs = len(self.history.loss)
        if self.training.verbose and n_epochs % self.report_every == 0:
            report(f"epoch {n_epochs}: loss {float(losses.min()):.4f}")

    def expect(self, step: Callable[[ObjectiveT, BatchT], Tensor]) -> None:
        """Run the E-step: every member's posterior becomes its target."""
        self.ensemble.train(False)
        data = view(self.data, self.ensemble.template)
        self.ensemble.set_target(gather(data, data.parts(), self.ensemble, step))

    def diverged(self) -> None:
        raise TrainingError(
            f"The loss is not finite after {len(self.history.loss)} epochs, in every restart.\n"
            "  expected: a falling loss\n"
            "  fix:      lower the learning rate, or scale the features"
        )

    def best_member(self) -> ObjectiveT:
        """Return the restart with the best held-out likelihood, at its best epoch."""
        if self.held is not None:
            self.ensemble.restore(self.best_state)
        number = int(torch.nan_to_num(self.best_value, nan=torch.inf).argmin())
        self.history.best = number
        chosen = self.ensemble.member(number)
        chosen.eval()
        return chosen


@torch.no_grad()
def gather(
    data: Data[Any],
    parts: Iterable[Any],
    ensemble: Single[ObjectiveT],
    step: Callable[[ObjectiveT, Any], Tensor],
) -> Tensor:
    """Collect the results of a step for each task, (member, task, …)."""
    found: Tensor | None = None
    for batch in parts:
        own = ensemble(step, batch)
        if own.shape[1] == data.n_tasks and data.ranks.size == 1:
            return own
        if found is None:
            found = own.new_zeros((len(own), data.n_tasks, *own.shape[2:]))
        found[:, batch.task] = own
    assert found is not None
    return data.ranks.add([found])[0]


@contextmanager
def seeded(seed: int, device: torch.device, work: int) -> Iterator[None]:
    """Seed torch's generators inside, and restore them afterward.

    ``work`` is the number of cells that a step touches: if it is small, a single thread is used,
    because distributing small tensors over cores costs more than it saves.
    """
    devices = [device] if device.type == "cuda" else []
    threads = torch.get_num_threads()
    # For the CPU alone: torch.manual_seed queues a call, with its stack, for each absent GPU.
    seed_all = torch.manual_seed if devices else torch.default_generator.manual_seed
    with torch.random.fork_rng(devices=devices):
        seed_all(seed)
        torch.set_num_threads(threads if work > WORTH_SHARING else 1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def report(text: str) -> None:
    """Log progress that was asked for, or print it if logging is not set up."""
    if log.isEnabledFor(logging.INFO) and log.hasHandlers():
        log.info(text)
    else:
        sys.stderr.write(f"{text}\n")


def make_optimizer(training: Training, parameters: Mapping[str, Tensor]) -> torch.optim.Optimizer:
    """Make the optimizer, with a parameter group for each part of the network."""
    kind, options = OPTIMIZERS[training.optimizer]
    groups: dict[tuple[str, ...], list[Tensor]] = {}
    for name, parameter in parameters.items():
        groups.setdefault(_parts(name), []).append(parameter)
    return kind(
        [
            {
                "params": chosen,
                "lr": _for_parts(training.learning_rate, parts, 1e-3),
                "weight_decay": _for_parts(training.weight_decay, parts, 0.0),
            }
            for parts, chosen in groups.items()
        ],
        **options,
    )


def _parts(name: str) -> tuple[str, ...]:
    """Return the parts that a parameter is in, the innermost first."""
    return tuple(piece for piece in reversed(name.split(".")[:3]) if piece in PARTS)


def _for_parts(value: float | Mapping[str, float], parts: tuple[str, ...], default: float) -> float:
    if isinstance(value, Mapping):
        return next((value[part] for part in parts if part in value), default)
    return value


def check(training: Training) -> None:
    """Refuse invalid settings."""
    training.check()
    for name in ("learning_rate", "weight_decay"):
        rates = getattr(training, name)
        if isinstance(rates, Mapping):
            check_rates(name, rates)


def pick_device(name: str) -> torch.device:
    """Return the device with this name."""
    if name == "auto":
        return own_gpu() if torch.cuda.is_available() else torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ParameterError(
            f"device={name!r} is unknown.\n  expected: auto, cpu, cuda"
            "\n  fix:      give device='auto'"
        ) from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ParameterError(f"device={name!r}, but there is no GPU.\n  fix:      device='cpu'")
    return own_gpu() if name == "cuda" else device


def own_gpu() -> torch.device:
    """Return the GPU of this process; the first one if it is alone."""
    number = int(os.environ.get("LOCAL_RANK", "0")) % max(torch.cuda.device_count(), 1)
    if number:
        torch.cuda.set_device(number)
    return torch.device("cuda", number) if "LOCAL_RANK" in os.environ else torch.device("cuda")
