"""One run of ICED: warm up, then infer truths, make tasks and train in turn."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.random import RandomState
from sklearn.base import clone
from torch import Tensor

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.base.learner import expect
from crowdwise.inference import pooled_confusion
from crowdwise.inference.certainty import measure_certainty, rank_certainty
from crowdwise.inference.simplex import clamp, tied
from crowdwise.learn.crowd_smote import NewTasks, crowd_smote
from crowdwise.learn.net_classifier import NoNoise
from crowdwise.learn.noise import pick
from crowdwise.learn.objectives import CrowdNet, CrowdObjective, Direct, per_annotation
from crowdwise.learn.two_stage import names_of
from crowdwise.nets.batches import Batch, CrowdData, as_data
from crowdwise.nets.decoder import MixedRows, Reconstruction, cut, mirrored, unscaled
from crowdwise.nets.features import Features
from crowdwise.nets.loop import Phase, train
from crowdwise.nets.training import Training
from crowdwise.typing import Floats, Ints

if TYPE_CHECKING:
    from crowdwise.learn.iced import ICED

N_STAGES = 3
STEADY = 5  # rounds in a row without a change that end a run


class Inferred(CrowdObjective):
    """A network beside truths that were inferred without it."""

    target: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData, target: Tensor) -> None:
        super().__init__(net, data)
        self.register_buffer("target", target)

    def posterior(self, batch: Batch) -> Tensor:
        return self.target[batch.task].log()


@dataclass(frozen=True)
class Snapshot:
    """A network, and what was inferred beside it."""

    value: float  # negative log-likelihood of held-out labels
    state: dict[str, Tensor]
    posterior: Floats
    confusion: Floats


@dataclass
class Run:
    """The state of one run, from a fresh network on."""

    model: ICED
    net: CrowdNet
    features: Features
    votes: Annotations
    gold: Ints | None
    held: Annotations | None
    settings: Training
    rng: RandomState

    def __post_init__(self) -> None:
        self.patience = self.settings.patience
        self.settings = clone(self.settings).set_params(n_restarts=1, patience=None)
        self.body, self.head = cut(self.net.truth)
        self.mixed = MixedRows(self.net.scaler, self.body, self.head, self.features.shape)
        self.x = self.features.source
        n_embedded, n_in = self.head.in_features, self.x[:1].numel()
        self.decoder = mirrored(self.body, n_embedded, n_in).to(self.x.device)
        self.told = self.votes.votes().sum(axis=1) > 0
        if self.gold is not None:
            self.told = self.told | (self.gold >= 0)
        self.loss: list[float] = []
        self.held_out: list[float] = []
        self.interrupted, self.value = False, np.inf
        self.n_new: list[Ints] = []
        # Before the first round: shares of labels for truths.
        self.posterior = clamp(self.votes.shares(), self.gold)
        self.confusion = pooled_confusion(self.votes, self.posterior)

    def go(self) -> None:
        """All of it, until predictions settle or rounds run out."""
        self.start_decoder()
        self.warm_up()
        self.truths = [self.infer(self.votes, self.embedded()[:0].cpu().numpy())]
        self.value = self.held_out_loss()
        best, waited, steady = self.snapshot(), 0, 0
        for _ in range(self.model.rounds):
            before = self.predicted()
            self.round()
            waited = 0 if self.value < best.value else waited + self.settings.epochs
            best = best if waited and self.held is not None else self.snapshot()
            changed = float((before != self.predicted()).mean())
            steady = steady + 1 if changed <= self.model.tol else 0
            tired = self.patience is not None and waited >= self.patience
            if self.interrupted or tired or steady >= STEADY:
                break
        self.net.load_state_dict(best.state)
        self.posterior, self.confusion, self.value = best.posterior, best.confusion, best.value

    def snapshot(self) -> Snapshot:
        """What is kept of this moment, should it turn out the best."""
        state = copy.deepcopy(self.net.state_dict())
        return Snapshot(self.value, state, self.posterior, self.confusion)

    def warm_up(self) -> None:
        """Train on majority votes, the surest tasks last (section 2.5)."""
        label = choose(self.posterior, self.rng)
        level = rank_certainty(measure_certainty(self.votes, self.model.floor), N_STAGES)
        for chosen in stages(level, self.told, self.model.warm_up):
            often = 1 if self.model.warm_up == "staged" else N_STAGES
            labels = one_each(np.where(chosen, label, -1), self.votes.n_classes)
            self.learn(self.mixed.stacked(self.flat, self.flat[:0], False), labels, often)

    def round(self) -> None:
        """Make tasks, infer all truths again, and train on them (algorithm 1, lines 3 to 5)."""
        new = self.make_tasks()
        self.n_new.append(np.bincount(new.truth, minlength=self.votes.n_classes))
        everything = joined(self.votes, new.annotations)
        truth = self.infer(everything, new.X)
        self.truths.append(truth[: self.votes.n_tasks])
        rows = self.mixed.stacked(self.flat, self.decoded(new), self.model.decoder == "none")
        self.learn(rows, self.targets(truth), None)

    def infer(self, votes: Annotations, new: Floats) -> Ints:
        """Truths of real and new tasks, -1 for tasks of which nothing is known."""
        told = np.append(self.told, np.ones(len(new), dtype=bool))
        gold = None if self.gold is None else np.append(self.gold, np.full(len(new), -1))
        found = clone(self.model._aggregator()).fit(votes, names_of(gold, votes))
        chosen, posterior = locate(votes.classes, found.labels_.to_numpy()), found.posterior_
        confusion: Any = getattr(found, "confusion_", None)
        whole = np.shape(confusion)[1:] == (votes.n_classes, votes.n_classes)
        self.confusion = confusion if whole else pooled_confusion(votes, posterior)
        if self.model.class_prior == "network":
            posterior = expect(votes, self.said(new), self.confusion, gold).posterior
            chosen = choose(posterior, self.rng)
        self.everyone = clamp(posterior, gold)
        self.posterior = self.everyone[: self.votes.n_tasks]
        return np.where(told, chosen, -1)

    def targets(self, truth: Ints) -> Annotations:
        """What the network is told: the inferred classes, or their distributions."""
        if self.model.targets == "soft":
            return one_each(truth, self.votes.n_classes, self.everyone)
        return one_each(truth, self.votes.n_classes)

    def make_tasks(self) -> NewTasks:
        """Fill up the rare classes in the embedding (section 2.4)."""
        model, truth = self.model, self.truths[-1]
        return crowd_smote(
            self.embedded().cpu().numpy(),
            self.votes,
            truth,
            balance=model.balance,
            n_neighbors=model.n_neighbors,
            delta_rule=model.delta_rule,
            copy=model.copy,
            jitter=model.jitter,
            floor=model.floor,
            random_state=self.rng,
        )

    # -- the network ---------------------------------------------------------------------------

    @property
    def flat(self) -> Tensor:
        return self.x.flatten(1)

    @torch.no_grad()
    def embedded(self) -> Tensor:
        """Where the real tasks lie."""
        self.net.eval()
        return self.body(self.net.scaler(self.x)).flatten(1)

    @torch.no_grad()
    def said(self, new: Floats) -> Floats:
        """Log P(truth | features) of the real tasks, then of new ones by their embedding."""
        self.net.eval()
        logits = self.net.truth(self.net.scaler(self.x)), self.head(self.x.new_tensor(new))
        return torch.cat(logits).double().log_softmax(dim=-1).cpu().numpy()

    @torch.no_grad()
    def predicted(self) -> Ints:
        self.net.eval()
        return self.net.log_truth(self.x).argmax(dim=-1).cpu().numpy()

    def learn(self, rows: Tensor, labels: Annotations, often: int | None) -> None:
        """Some epochs on rows with labels; ``often`` times those of a warm-up stage."""
        epochs = self.settings.epochs if often is None else often * self.model.warm_up_epochs
        if not labels.n_annotations or not epochs or self.interrupted:
            return
        data = as_data(Features(rows), labels, None, rows.device)
        net = CrowdNet(torch.nn.Identity(), self.mixed, NoNoise(labels.n_classes))
        members, how = [Direct(net, data)], (self.settings, self.rng)
        _, history = train(members, data, None, [Phase(epochs)], *how)
        self.interrupted = len(history.loss) < epochs
        self.loss += [row[0] for row in history.loss]
        self.value = self.held_out_loss()
        self.held_out += [self.value] * len(history.loss)

    def held_out_loss(self) -> float:
        """Negative log-likelihood of held-out labels; the last loss where there are none."""
        if self.held is None:
            return self.loss[-1] if self.loss else np.inf
        self.net.eval()
        with torch.no_grad():
            batch = as_data(self.features, self.held, None, self.x.device).whole()
            tables = torch.as_tensor(self.confusion).to(batch.x).log()  # (worker, truth, label)
            score = pick(tables[batch.worker], batch.label)
            return -float(per_annotation(self.net.log_truth(batch.x), score, batch))

    # -- the way back --------------------------------------------------------------------------

    def start_decoder(self) -> None:
        """Pre-train an autoencoder whose encoder the network's body is."""
        if self.model.decoder in ("refit", "fixed") and len(self.body):
            self.reconstruct(Reconstruction.loss)

    def reconstruct(self, step: Callable[[Reconstruction, Batch], Tensor]) -> None:
        epochs = self.model.decoder_epochs
        data = as_data(self.features, self.votes, None, self.x.device)
        whole = Reconstruction(self.net, self.body, self.decoder, data)
        train([whole], data, None, [Phase(epochs, loss=step)], self.settings, self.rng)

    def decoded(self, new: NewTasks) -> Tensor:
        """New tasks as features; as they are if the network's head takes them."""
        if self.model.decoder == "interpolate":
            return self.x.new_tensor(new.between(self.flat.cpu().numpy()))
        z = self.x.new_tensor(new.X)
        if self.model.decoder == "none":
            return z
        if self.model.decoder == "refit" and len(self.body):
            self.reconstruct(Reconstruction.refit)
        with torch.no_grad():
            scaled = self.decoder.eval()(z) if len(self.body) else z
            return unscaled(self.net.scaler, scaled)


def stages(level: Ints, told: Any, how: str) -> list[Any]:
    """Which tasks each stage of the warm-up trains on."""
    sure = (level > 0) & told
    if how == "staged":
        return [(level == number) & told for number in range(N_STAGES, 0, -1)]
    return {"together": [sure], "all": [told], "none": []}[how]


def choose(posterior: Floats, rng: RandomState) -> Ints:
    """The best class of each task, a random one of tied ones."""
    best = tied(posterior)
    return np.where(best, rng.random_sample(best.shape), -1.0).argmax(axis=1)


def one_each(truth: Ints, n_classes: int, soft: Floats | None = None) -> Annotations:
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


def joined(votes: Annotations, new: Annotations) -> Annotations:
    """The real annotations, then those of new tasks."""

    def both(name: str, own: Any, other: Any) -> Any:
        return None if getattr(votes, name) is None else np.concatenate([own, other])

    size = new.n_annotations
    return Annotations.from_codes(
        np.concatenate([votes.task, new.task + votes.n_tasks]),
        np.concatenate([votes.worker, new.worker]),
        np.concatenate([votes.label, new.label]),
        tasks=np.arange(votes.n_tasks + new.n_tasks),
        workers=votes.workers,
        classes=votes.classes,
        weight=both("weight", votes.weight, np.ones(size)),
        soft=both("soft", votes.soft, np.eye(votes.n_classes)[new.label]),
    )
