"""The rounds of ICED: what they learn from, what they find, and when they end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from crowdwise.annotations import Annotations
from crowdwise.inference import pooled_confusion
from crowdwise.inference.simplex import clamp, tied
from crowdwise.learn.crowd_smote import NewTasks
from crowdwise.learn.embedding_net import EmbeddingNet
from crowdwise.learn.parts import CrowdNet, CrowdObjective
from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.loop import holds_out
from crowdwise.nets.training import Training
from crowdwise.typing import Array, Floats, Ints

STEADY = 5  # rounds in a row without a change that end a run


@dataclass(frozen=True)
class Truths:
    """What was inferred: truths of real tasks, then of new ones, and what workers are like."""

    label: Ints  # (task,): class number, -1 where nothing is known
    posterior: Floats  # (task, class)
    confusion: Floats  # (worker, truth, label)


@dataclass(frozen=True)
class Crowd:
    """The annotations that a run learns from, and those held out."""

    votes: Annotations
    held: Annotations | None
    gold: Ints | None

    @property
    def labeled(self) -> Array:
        """Which tasks have a label or a known truth."""
        labeled = self.votes.votes().sum(axis=1) > 0
        return labeled if self.gold is None else labeled | (self.gold >= 0)

    def majority(self, rng: np.random.RandomState) -> Truths:
        """Majority votes for truths, ties broken at random."""
        posterior = clamp(self.votes.shares(), self.gold)
        confusion = pooled_confusion(self.votes, posterior)
        return Truths(choose(posterior, rng), posterior, confusion)

    def of_real(self, truths: Truths) -> Ints:
        """Truths of the real tasks alone."""
        return truths.label[: self.votes.n_tasks]


@dataclass(frozen=True)
class Snapshot:
    """A network, and what was inferred beside it."""

    value: float  # negative log-likelihood of held-out labels
    state: dict[str, Tensor]
    posterior: Floats
    confusion: Floats


class Run:
    """The course of one run: what each round found, the best of them, and when to stop."""

    best: Snapshot

    def __init__(self, net: EmbeddingNet, crowd: Crowd, tol: float, patience: int | None) -> None:
        self.net, self.crowd, self.tol, self.patience = net, crowd, tol, patience
        self.held_out: list[float] = []  # per epoch
        self.truths: list[Ints] = []  # per round, and before the first
        self.n_new: list[Ints] = []  # per round
        self.value, self.waited, self.steady = np.inf, 0, 0

    def learn(self, rows: Tensor, labels: Annotations, epochs: int, truths: Truths) -> None:
        """Train the network, and measure it on held-out labels."""
        done = self.net.learn(rows, labels, epochs)
        if done:
            self.value = self.measure(truths)
            self.held_out += [self.value] * done

    def measure(self, truths: Truths) -> float:
        """Negative log-likelihood of held-out labels; the last loss where there are none."""
        if self.crowd.held is None:
            return self.net.loss[-1] if self.net.loss else np.inf
        return self.net.label_loss(self.crowd.held, truths.confusion)

    def start(self, truths: Truths) -> None:
        """Take down the state before the first round."""
        self.truths.append(self.crowd.of_real(truths))
        self.value, self.predicted = self.measure(truths), self.net.predict()
        self.best = self.snapshot(truths)

    def ends(self, truths: Truths, new: NewTasks) -> bool:
        """Take down a round; whether it was the last one."""
        self.truths.append(self.crowd.of_real(truths))
        self.n_new.append(np.bincount(new.truth, minlength=self.crowd.votes.n_classes))
        better = self.value < self.best.value
        self.waited = 0 if better else self.waited + self.net.training.epochs
        if not self.waited or self.crowd.held is None:
            self.best = self.snapshot(truths)
        before, self.predicted = self.predicted, self.net.predict()
        changed = float((before != self.predicted).mean())
        self.steady = self.steady + 1 if changed <= self.tol else 0
        out_of_patience = self.patience is not None and self.waited >= self.patience
        return self.net.interrupted or out_of_patience or self.steady >= STEADY

    def snapshot(self, truths: Truths) -> Snapshot:
        """What is kept of this round, should it turn out the best."""
        posterior = truths.posterior[: self.crowd.votes.n_tasks]
        return Snapshot(self.value, self.net.state(), posterior, truths.confusion)


def hold_out(
    votes: Annotations, settings: Training, rng: np.random.RandomState
) -> tuple[Annotations, Annotations | None]:
    """Annotations to learn from, and those to choose the round and the restart by."""
    if not holds_out(settings) or votes.n_annotations < 2:
        return votes, None
    out = np.zeros(votes.n_annotations, dtype=bool)
    n_out = max(1, round(settings.validation_fraction * votes.n_annotations))
    out[rng.permutation(votes.n_annotations)[:n_out]] = True
    return votes.filter(~out), votes.filter(out)


def choose(posterior: Floats, rng: np.random.RandomState) -> Ints:
    """The best class of each task, a random one of tied ones."""
    best = tied(posterior)
    return np.where(best, rng.random_sample(best.shape), -1.0).argmax(axis=1)


def label_each(truth: Ints, n_classes: int, soft: Floats | None = None) -> Annotations:
    """One label per task that has a truth, by a single worker."""
    known = np.flatnonzero(truth >= 0)
    return Annotations.from_codes(
        known,
        np.zeros(len(known), dtype=np.int64),
        truth[known],
        tasks=np.arange(len(truth)),
        workers=np.arange(1),
        classes=np.arange(n_classes),
        soft=None if soft is None else soft[known],
    )


def join(votes: Annotations, new: Annotations) -> Annotations:
    """The real annotations, then those of new tasks."""
    weight, soft = votes.weight, votes.soft
    if weight is not None:
        weight = np.concatenate([weight, np.ones(new.n_annotations)])
    if soft is not None:
        soft = np.concatenate([soft, np.eye(votes.n_classes)[new.label]])
    return Annotations.from_codes(
        np.concatenate([votes.task, new.task + votes.n_tasks]),
        np.concatenate([votes.worker, new.worker]),
        np.concatenate([votes.label, new.label]),
        tasks=np.arange(votes.n_tasks + new.n_tasks),
        workers=votes.workers,
        classes=votes.classes,
        weight=weight,
        soft=soft,
    )


class Inferred(CrowdObjective):
    """A network beside truths that were inferred without it."""

    target: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData, target: Tensor) -> None:
        super().__init__(net, data)
        self.register_buffer("target", target)

    def posterior(self, batch: Batch) -> Tensor:
        return self.target[batch.task].log()


@runtime_checkable
class KnowsConfusion(Protocol):
    """An aggregator whose workers have confusion matrices."""

    confusion_: Floats


def order_by_features(data: CrowdData) -> Ints:
    """Tasks in the order of some of their features, whatever order they came in."""
    x = data.features.rows(torch.arange(data.n_tasks, device=data.device))
    x = x.flatten(1) if x.ndim > 1 else x[:, None]
    some = x[:, :: max(1, x.shape[1] // 32)].cpu().numpy()
    return np.lexsort(some.T) if some.size else np.arange(data.n_tasks)


def order_by_labels(votes: Annotations) -> Ints:
    """Workers by how much and what they label, whatever order they came in."""
    weight = np.ones(votes.n_annotations) if votes.weight is None else votes.weight
    task, label, n = votes.task + 1.0, votes.label + 1.0, votes.n_workers
    keys = (weight * task**2, weight * task * label, weight)
    return np.lexsort([np.bincount(votes.worker, key, minlength=n) for key in keys])


def columns(runs: list[list[float]]) -> list[list[float]]:
    """Values per epoch of each run, one row per epoch; nan once a run has stopped."""
    longest = max(map(len, runs))
    padded = [[*run, *[float("nan")] * (longest - len(run))] for run in runs]
    return [list(row) for row in zip(*padded, strict=True)]
