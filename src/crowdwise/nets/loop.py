"""The training loop: several restarts as one batched ensemble, with held-out labels."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from crowdwise import progress
from crowdwise.errors import CrowdwiseError, ParameterError, explain
from crowdwise.nets.ensemble import (
    BatchT,
    Divided,
    Ensemble,
    ObjectiveT,
    Parts,
    Step,
    divide,
    held_out_of,
    loss_of,
)
from crowdwise.nets.ranks import own_gpu
from crowdwise.nets.training import OPTIMIZERS, Training

WORTH_SHARING = 4_000_000
PARTS = ("truth", "noise", "ease", "encoder", "hardness", "center")  # that may have their own rates
BatchT_co = TypeVar("BatchT_co", covariant=True, bound=Step)


class TrainingError(CrowdwiseError, ArithmeticError):
    """Training diverged in every restart."""


class Data(Divided, Protocol[BatchT_co]):
    """Data that the loop can train on."""

    @property
    def device(self) -> torch.device: ...

    @property
    def n_examples(self) -> int:
        """Number of annotations, or tasks, some of which may be held out."""

    def epochs(
        self, training: Training, by: str
    ) -> Callable[[torch.Generator], Iterator[BatchT_co]]:
        """Return a function that yields the batches of an epoch, of annotations or of tasks."""

    def held_out(self, fraction: float, rng: np.random.RandomState, by: str) -> tuple[Self, Self]:
        """Split into data to learn from and held-out data."""


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


def train(
    members: Sequence[ObjectiveT],
    data: Data[BatchT],
    held: Data[BatchT] | None,
    phases: Sequence[Phase[ObjectiveT, BatchT]],
    training: Training,
    rng: np.random.RandomState,
) -> tuple[ObjectiveT, History]:
    """Train all members at once; returns the best one and the history."""
    check(training)
    ensemble, history = Ensemble(members), History()
    data = divide(data, members[0])
    held = None if held is None else divide(held, members[0])
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


@dataclass
class Loop(Generic[ObjectiveT, BatchT]):
    """The state of one training run."""

    ensemble: Ensemble[ObjectiveT]
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
        first, begun = self.resume()
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
                    self.save(number + 1 if ends else number, 0 if ends else done)
                    if ends:
                        break
                begun = 0

    def resume(self) -> tuple[int, int]:
        """Resume from a checkpoint: return the phase, and how many of its epochs are done."""
        self.file = self.data.checkpoint.open()
        state = None if self.file is None else self.file.load()
        if state is None:
            return 0, 0
        with torch.no_grad():
            for known in ("parameters", "buffers"):
                for name, value in getattr(self.ensemble, known).items():
                    value.copy_(state[known][name])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        self.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])
        self.best_state, self.best_value = state["best_state"], state["best_value"]
        self.since_best = state["since_best"]
        self.history.loss, self.history.held_out = state["loss"], state["held_out"]
        return state["phase"], state["done"]

    def save(self, phase: int, done: int) -> None:
        """Write a checkpoint, if one is wanted and due."""
        if self.file is None or not self.file.is_due():
            return
        self.file.save(
            {
                "phase": phase,
                "done": done,
                "parameters": {k: v.detach() for k, v in self.ensemble.parameters.items()},
                "buffers": dict(self.ensemble.buffers),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
                "generator": self.generator.get_state(),
                "random": torch.get_rng_state(),
                "best_state": self.best_state,
                "best_value": self.best_value,
                "since_best": self.since_best,
                "loss": self.history.loss,
                "held_out": self.history.held_out,
            }
        )

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
                losses, n = losses + self.data.ranks.add_slopes(total, parameters), n + 1
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
        if held is not None or not better.all():
            self.ensemble.keep(self.best_state, better)
        n_epochs = len(self.history.loss)
        if self.training.verbose and n_epochs % self.report_every == 0:
            report(f"epoch {n_epochs}: loss {float(losses.min()):.4f}")

    def expect(self, step: Callable[[ObjectiveT, BatchT], Tensor]) -> None:
        """Run the E-step: every member's posterior becomes its target."""
        self.ensemble.train(False)
        self.ensemble.set_target(Parts(self.data).gather(self.ensemble, step))

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


@contextmanager
def seeded(seed: int, device: torch.device, work: int) -> Iterator[None]:
    """Seed torch's generators inside, and restore them afterward.

    ``work`` is the number of cells that a step touches: if it is small, a single thread is used,
    because distributing small tensors over cores costs more than it saves.
    """
    devices = [device] if device.type == "cuda" else []
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        torch.set_num_threads(threads if work > WORTH_SHARING else 1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def report(text: str) -> None:
    """Log progress that was asked for, or print it if logging is not set up."""
    log = logging.getLogger("crowdwise")
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
            _check_rates(name, rates)


def _check_rates(name: str, rates: Mapping[str, object]) -> None:
    """Refuse rates for parts that no network has, and negative rates."""
    strange = [part for part in rates if part not in (*PARTS, "")]
    if strange:
        raise ParameterError(
            explain(
                f"{name} is for {strange[0]!r}, which no network has.",
                expected=", ".join(PARTS),
                fix="choose one of these",
            )
        )
    for rate in rates.values():
        if not isinstance(rate, Real) or not float(rate) >= 0:
            raise ParameterError(
                explain(
                    f"{name}={rate!r}.",
                    expected="a number, 0 or more",
                    fix="give a number such as 0.01",
                )
            )


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
