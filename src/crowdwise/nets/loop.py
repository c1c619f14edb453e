"""The one training loop: several restarts as one batched ensemble, with held-out labels."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from crowdwise import progress
from crowdwise.errors import CrowdwiseError
from crowdwise.learn.objectives import Objective
from crowdwise.learn.truth import SideBySide
from crowdwise.nets.batches import Batch, CrowdData, class_odds
from crowdwise.nets.settings import Training, check, make_optimizer, tell

WORTH_SHARING = 4_000_000
ALIKE = ("gold", "told", "net.scaler.")  # buffers from the data, the same in every restart


class TrainingError(CrowdwiseError, ArithmeticError):
    """Training went astray in every restart."""


@dataclass(frozen=True)
class Phase:
    """A stretch of training: which loss, how long, and whether an E-step comes first."""

    epochs: int
    loss: str = "loss"
    expect: str | None = None  # name of the objective's method that gives the posterior
    hard: bool = False


@dataclass
class History:
    """Per epoch: the loss, and the held-out loss, of each restart."""

    loss: list[list[float]] = field(default_factory=list)
    held_out: list[list[float]] = field(default_factory=list)
    best: int = 0  # which restart was kept


class Ensemble:
    """Several objectives of one shape, run as one."""

    def __init__(self, members: Sequence[Objective]) -> None:
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
        alike = {name for name in own if name.startswith(ALIKE)}
        self.buffers.update({name: own[name] for name in alike})
        self.axes = {name: None if name in alike else 0 for name in own}

    def __len__(self) -> int:
        return len(self.members)

    def __call__(self, what: str, batch: Batch) -> Tensor:
        """What each member says, stacked."""
        if len(self) == 1:
            return self.template(what, batch).unsqueeze(0)

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            return functional_call(self.template, (parameters, buffers), (what, batch))

        run = vmap(one, in_dims=(0, self.axes), randomness="different")
        return run(self.parameters, self.buffers)

    def train(self, mode: bool) -> None:
        self.template.train(mode)

    @torch.no_grad()
    def set_target(self, target: Tensor) -> None:
        """Give each member the posterior of its own E-step."""
        if len(self) == 1:
            self.buffers["target"].copy_(target[0])
        else:
            self.buffers["target"].copy_(target)

    def learned(self) -> dict[str, Tensor]:
        """All that training changes: parameters, and running means and the like."""
        own = [n for n in self.buffers if n.startswith("net.") and not n.startswith(ALIKE)]
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
    def member(self, number: int) -> Objective:
        """One member with its own parameters again."""
        if len(self) == 1:
            return self.members[0]
        chosen = self.members[number]
        state = {**self.parameters, **self.buffers}
        for name, value in (*chosen.named_parameters(), *chosen.named_buffers()):
            if self.axes.get(name, 0) == 0:
                value.copy_(state[name][number])
        return chosen


def split(
    data: CrowdData, training: Training, rng: np.random.RandomState
) -> tuple[CrowdData, CrowdData | None]:
    """What is learned from, and what is held out; members are built from the first alone."""
    check(training)
    if not training.holds_out or data.n_annotations < 2:
        return data, None
    learned, held = data.held_out(training.validation_fraction, rng, training.hold_out)
    return (learned, held) if learned.n_annotations else (data, None)


def train(
    members: Sequence[Objective],
    data: CrowdData,
    held: CrowdData | None,
    phases: Sequence[Phase],
    training: Training,
    rng: np.random.RandomState,
) -> tuple[Objective, History]:
    """Train all members at once; return the best one and what happened."""
    check(training)
    ensemble, history = Ensemble(members), History()
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
class Loop:
    """The state of one training run."""

    ensemble: Ensemble
    data: CrowdData
    held: CrowdData | None
    phases: Sequence[Phase]
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
        weight = self.training.class_weight
        self.odds: dict[str, Any] = (
            {} if weight is None else {"odds": class_odds(self.data, weight)}
        )
        self.best_state = self.ensemble.snapshot()
        self.best_value = torch.full((len(self.ensemble),), torch.inf)
        self.since_best, self.report_every = 0, max(1, epochs // 10)

    def run(self) -> None:
        total = sum(phase.epochs for phase in self.phases)
        with progress.bar("training", total, "epoch") as bar:
            for phase in self.phases:
                if phase.expect is not None:
                    self.expect(phase)
                for done in range(1, phase.epochs + 1):
                    self.epoch(phase.loss)
                    bar.advance()
                    if self.training.patience and self.since_best >= self.training.patience:
                        self.since_best = 0
                        bar.skip(phase.epochs - done)
                        break

    def epoch(self, loss_name: str) -> None:
        """One pass over the batches, and a look at the held-out labels."""
        self.ensemble.train(True)
        losses, n = torch.zeros(len(self.ensemble), device=self.data.device), 0
        how = self.training.batch_size, self.ensemble.template.by, self.generator
        for batch in self.data.batches(*how, **self.odds):
            loss = self.ensemble(loss_name, self.dropped(batch))
            self.optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss.sum())
            self.optimizer.step()
            losses, n = losses + loss.detach(), n + 1
        if self.scheduler is not None:
            self.scheduler.step()
        self.record((losses / n).cpu())

    def record(self, losses: Tensor) -> None:
        self.history.loss.append(losses.tolist())
        value, held = losses, self.held
        if held is not None:
            with torch.no_grad():
                self.ensemble.train(False)
                everywhere = self.ensemble.template.held_out_everywhere
                batch = held.whole() if everywhere else held.labeled()
                value = self.ensemble("held_out", batch).cpu()
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
            tell(f"epoch {n_epochs}: loss {float(losses.min()):.4f}")

    def expect(self, phase: Phase) -> None:
        """E-step: every member's posterior becomes its target."""
        assert phase.expect is not None
        self.ensemble.train(False)
        with torch.no_grad():
            posterior = self.ensemble(phase.expect, self.data.whole()).exp()
            if phase.hard:
                best = posterior == posterior.amax(dim=-1, keepdim=True)
                posterior = best / best.sum(dim=-1, keepdim=True)
        self.ensemble.set_target(posterior)

    def dropped(self, batch: Batch) -> Batch:
        """The batch with some labels given to the unknown worker."""
        if not self.training.worker_dropout:
            return batch
        chance = torch.rand(len(batch.worker), generator=self.generator).to(batch.worker.device)
        unknown = chance < self.training.worker_dropout
        worker = torch.where(unknown, self.data.n_workers, batch.worker)
        return Batch(batch.x, batch.task, batch.at, worker, batch.label, batch.weight)

    def diverged(self) -> None:
        raise TrainingError(
            f"The loss is not finite after {len(self.history.loss)} epochs, in every restart.\n"
            "  expected: a falling loss\n"
            "  fix:      lower the learning rate, or scale the features"
        )

    def best_member(self) -> Objective:
        """The restart with the best held-out likelihood, at its best epoch."""
        if self.held is not None:
            self.ensemble.restore(self.best_state)
        number = int(torch.nan_to_num(self.best_value, nan=torch.inf).argmin())
        self.history.best = number
        chosen = self.ensemble.member(number)
        chosen.eval()
        return chosen


@contextmanager
def seeded(seed: int, device: torch.device, work: int) -> Iterator[None]:
    """Torch's generators seeded inside, and as they were before outside.

    ``work`` is the number of cells a step touches: below what is worth sharing between
    cores a single thread is used, since handing small tensors around costs more.
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
