"""Parts of ICED: warm-ups, features of new tasks, its network and its run."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from crowdwise.annotations import Annotations, tied
from crowdwise.base.params import Constraints, Part, at_least, more_than
from crowdwise.errors import ParameterError, explain
from crowdwise.inference import (
    clamp,
    measure_certainty,
    pooled_confusion,
    rank_certainty,
)
from crowdwise.learn.crowd_smote import NewTasks
from crowdwise.learn.parts import CrowdNet, CrowdObjective, per_annotation, pick, total
from crowdwise.nets.batches import Batch, CrowdData, as_data
from crowdwise.nets.features import Features, rows_at_once
from crowdwise.nets.loop import Phase, Single, loss_of, train
from crowdwise.nets.modules import MLP, Standardize
from crowdwise.nets.training import Training
from crowdwise.typing import Array, Floats, Ints

N_LEVELS = 3  # levels of certainty in the paper's warm-up
STEADY = 5  # successive rounds without a change that end a run


class WarmUp(Part):
    """The part of ICED that decides which tasks the network learns from first, and how long."""

    _parameter_constraints: ClassVar[Constraints] = {
        "epochs": [at_least(0)],
        "floor": [more_than(0.0)],
    }
    epochs: int

    @abstractmethod
    def stages(self, votes: Annotations, labeled: Array) -> list[Array]:
        """Return the labeled tasks that each stage learns from."""


class StagedWarmUp(WarmUp):
    """Train on the tasks of the third-highest, the second-highest, then the highest certainty.

    Parameters
    ----------
    epochs : int, default=5
        Epochs per stage.
    floor : float, default=0.05
        See :func:`crowdwise.evaluate.certainty`.
    """

    def __init__(self, epochs: int = 5, *, floor: float = 0.05) -> None:
        self.epochs = epochs
        self.floor = floor

    def stages(self, votes: Annotations, labeled: Array) -> list[Array]:
        level = rank_certainty(measure_certainty(votes, self.floor), N_LEVELS)
        return [(level == number) & labeled for number in range(N_LEVELS, 0, -1)]


class CertainWarmUp(WarmUp):
    """Train on the tasks of the three highest certainties at once (the paper's Trad-II).

    Parameters
    ----------
    epochs : int, default=15
        Epochs in all.
    floor : float, default=0.05
        See :func:`crowdwise.evaluate.certainty`.
    """

    def __init__(self, epochs: int = 15, *, floor: float = 0.05) -> None:
        self.epochs = epochs
        self.floor = floor

    def stages(self, votes: Annotations, labeled: Array) -> list[Array]:
        level = rank_certainty(measure_certainty(votes, self.floor), N_LEVELS)
        return [(level > 0) & labeled]


class FullWarmUp(WarmUp):
    """Train on all tasks (the paper's Trad-I).

    Parameters
    ----------
    epochs : int, default=15
        Epochs in all.
    """

    _parameter_constraints = {"epochs": [at_least(0)]}

    def __init__(self, epochs: int = 15) -> None:
        self.epochs = epochs

    def stages(self, votes: Annotations, labeled: Array) -> list[Array]:
        return [labeled]


class NoWarmUp(WarmUp):
    """Start with the first round."""

    _parameter_constraints = {}
    epochs = 0

    def stages(self, votes: Annotations, labeled: Array) -> list[Array]:
        return []


class Decoder(Part):
    """The part of ICED that turns new tasks into rows to learn from."""

    def pretrain(self, net: EmbeddingNet, votes: Annotations) -> None:
        """Prepare the network before it warms up."""

    @abstractmethod
    def rows(self, net: EmbeddingNet, votes: Annotations, new: NewTasks) -> Features:
        """Return rows for the real tasks and the new ones."""


class Autoencoder(Decoder):
    """Decodes features of new tasks from the network's embedding.

    It is pretrained with the network's body as its encoder.

    Parameters
    ----------
    epochs : int, default=10
        Epochs of the decoder each time it is trained.
    refit : bool, default=True
        Whether it is trained again in each round, to follow the network.
    """

    _parameter_constraints = {"epochs": [at_least(0)], "refit": ["boolean"]}

    def __init__(self, epochs: int = 10, *, refit: bool = True) -> None:
        self.epochs = epochs
        self.refit = refit

    def pretrain(self, net: EmbeddingNet, votes: Annotations) -> None:
        if len(net.body):
            net.reconstruct(votes, self.epochs, body=True)

    def rows(self, net: EmbeddingNet, votes: Annotations, new: NewTasks) -> Features:
        if self.refit and len(net.body):
            net.reconstruct(votes, self.epochs, body=False)
        return net.stack(net.decode(new.X))


class Interpolation(Decoder):
    """Mixes the features of the two tasks that a new task lies between."""

    def rows(self, net: EmbeddingNet, votes: Annotations, new: NewTasks) -> Features:
        start, end = (net.rows_of(tasks) for tasks in (new.origin, new.neighbor))
        return net.stack(new.between(start, end))


class LastLayerOnly(Decoder):
    """Gives new tasks no features: only the network's last layer learns from their embedding."""

    def rows(self, net: EmbeddingNet, votes: Annotations, new: NewTasks) -> Features:
        return net.stack(new.X, embedded=True)


class EmbeddingNet:
    """A network with the tasks it learns from, some real and some only embeddings.

    Attributes
    ----------
    loss : list of float
        Training loss of every epoch so far.
    interrupted : bool
        Whether Ctrl-C ended training.
    """

    def __init__(
        self, net: CrowdNet, features: Features, training: Training, rng: np.random.RandomState
    ) -> None:
        self.net, self.features, self.rng = net, features, rng
        self.training = copy.copy(training).set_params(n_restarts=1, patience=None)
        self.body, self.head = cut(net.truth)
        self.rows = MixedRows(net.scaler, self.body, self.head, features.shape)
        self.device, n_in = self.head.weight.device, int(np.prod(features.shape))
        self.decoder = mirror(self.body, self.head.in_features, n_in).to(self.device)
        self.loss: list[float] = []
        self.interrupted = False

    def as_tensor(self, numbers: Floats) -> Tensor:
        return torch.as_tensor(numbers, dtype=torch.float32, device=self.device)

    @torch.no_grad()
    def over_rows(self, work: Callable[[Tensor], Tensor], tasks: Ints | None = None) -> Tensor:
        """Apply ``work`` to the features of the real tasks, or some of them, in parts."""
        chosen = np.arange(self.features.n_tasks) if tasks is None else tasks
        n_in = int(np.prod(self.features.shape))
        parts = torch.split(torch.as_tensor(chosen, device=self.device), rows_at_once(n_in))
        self.net.eval()
        return torch.cat([work(self.features.rows(some)) for some in parts])

    def rows_of(self, tasks: Ints) -> Floats:
        """Return the features of some real tasks as rows of numbers."""
        return self.over_rows(lambda x: x.flatten(1), tasks).cpu().numpy()

    def embed(self) -> Floats:
        """Return the embeddings of the real tasks, (task, dimension)."""
        found = self.over_rows(lambda x: self.body(self.net.scaler(x)).flatten(1))
        return found.cpu().numpy()

    @torch.no_grad()
    def log_proba(self, new: Floats) -> Floats:
        """Return log P(truth | features) of the real tasks, then of new ones by embedding."""
        real = self.over_rows(lambda x: self.net.truth(self.net.scaler(x)))
        logits = torch.cat([real, self.head(self.as_tensor(new))])
        return logits.double().log_softmax(dim=-1).cpu().numpy()

    def predict(self) -> Ints:
        """Return the most probable class of each real task."""
        return self.over_rows(self.net.log_truth).argmax(dim=-1).cpu().numpy()

    @torch.no_grad()
    def label_loss(self, votes: Annotations, confusion: Floats) -> float:
        """Return the negative log-likelihood of labels on the real tasks, per annotation."""
        log_truth = self.over_rows(self.net.log_truth)
        data = as_data(self.features, votes, None, self.device)
        batch = Batch(log_truth, data.task, data.task, data.worker, data.label, data.weight)
        tables = torch.as_tensor(confusion).to(log_truth).log()  # (worker, truth, label)
        score = pick(tables[batch.worker], batch.label)
        return -float(per_annotation(log_truth, score, batch))

    def learn(self, rows: Features, labels: Annotations, epochs: int) -> int:
        """Train on rows with one label each; returns the number of epochs."""
        if not labels.n_annotations or not epochs or self.interrupted:
            return 0
        data = as_data(rows, labels, None, self.device)
        net = CrowdNet(nn.Identity(), self.rows, self.net.noise)
        one = Single(CrossEntropy(net, data))
        phases: list[Phase[CrossEntropy, Batch]] = [Phase(epochs)]
        _, history = train(one, data, None, phases, self.training, self.rng)
        self.interrupted = len(history.loss) < epochs
        self.loss += [row[0] for row in history.loss]
        return len(history.loss)

    def reconstruct(self, votes: Annotations, epochs: int, *, body: bool) -> None:
        """Train the decoder to reconstruct features; with ``body``, train the embedding too."""
        data = as_data(self.features, votes, None, self.device)
        whole = Reconstruction(self.net, self.body, self.decoder, data)
        step = loss_of if body else Reconstruction.decoder_loss
        phases: list[Phase[Reconstruction, Batch]] = [Phase(epochs, loss=step)]
        train(Single(whole), data, None, phases, self.training, self.rng)

    @torch.no_grad()
    def decode(self, embedded: Floats) -> Floats:
        """Return features of embeddings, or these themselves if there is no other layer."""
        z = self.as_tensor(embedded)
        rows = unscale(self.net.scaler, self.decoder.eval()(z) if len(self.body) else z)
        return rows.cpu().numpy()

    def stack(self, new: Floats | None = None, *, embedded: bool = False) -> Features:
        """Return rows to learn from: the real tasks, then new ones as features or embeddings."""
        none = np.zeros((0, self.head.in_features)) if new is None else new
        width = max(int(np.prod(self.features.shape)), self.head.in_features)
        return MixedFeatures(
            self.features, new=self.as_tensor(none), embedded=embedded, width=width
        )

    def state(self) -> dict[str, Tensor]:
        """Return a copy of everything that the network has learned."""
        return copy.deepcopy(self.net.state_dict())


class CrossEntropy(CrowdObjective):
    """Minus log P(label | features), with labels treated as truths."""

    def loss(self, batch: Batch) -> Tensor:
        log_truth, label = self.net.log_truth(batch.x)[batch.at], batch.label
        given = log_truth * label if label.ndim > 1 else log_truth.gather(1, label[:, None])
        return -(given.sum(dim=-1) * batch.weight).sum() / total(batch)


class Reconstruction(CrowdObjective):
    """Mean squared error of scaled features decoded from their embedding."""

    by = "task"

    def __init__(
        self, net: CrowdNet, body: nn.Sequential, decoder: nn.Module, data: CrowdData
    ) -> None:
        super().__init__(net, data)
        self.body, self.decoder = body, decoder

    def loss(self, batch: Batch) -> Tensor:
        x = self.net.scaler(batch.x)
        return (self.decoder(self.body(x)) - x.flatten(1)).square().mean()

    def decoder_loss(self, batch: Batch) -> Tensor:
        """Return the same loss, which trains only the decoder."""
        x = self.net.scaler(batch.x)
        with torch.no_grad():
            embedded = self.body(x)
        return (self.decoder(embedded) - x.flatten(1)).square().mean()


class MixedRows(nn.Module):
    """Logits of rows that have features or, if the last column is 1, an embedding."""

    def __init__(
        self, scaler: nn.Module, body: nn.Sequential, head: nn.Linear, shape: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.scaler, self.body, self.head, self.shape = scaler, body, head, shape

    def forward(self, rows: Tensor) -> Tensor:
        n_in, n_embedded = torch.Size(self.shape).numel(), self.head.in_features
        x = rows[:, :n_in].reshape(len(rows), *self.shape)
        real = self.head(self.body(self.scaler(x)))
        return torch.where(rows[:, -1:] > 0, self.head(rows[:, :n_embedded]), real)


@dataclass(frozen=True)
class MixedFeatures(Features):
    """Rows for :class:`MixedRows`: of the real tasks, then of new ones."""

    new: Tensor = field(kw_only=True)  # (task, …): features or embeddings
    embedded: bool = field(kw_only=True)
    width: int = field(kw_only=True)

    @property
    def n_tasks(self) -> int:
        return int(self.source.n_tasks) + len(self.new)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.width + 1,)

    def rows(self, chosen: Tensor) -> Tensor:
        first = self.source.n_tasks
        made = chosen >= first
        found = self.new.new_zeros((len(chosen), self.width + 1))
        real, new = self.source.rows(chosen[~made]).flatten(1), self.new[chosen[made] - first]
        found[~made, : real.shape[1]], found[made, : new.shape[1]] = real, new
        found[made, -1] = float(self.embedded)
        return found

    def to(self, device: torch.device) -> MixedFeatures:
        return self  # made where the network is


@dataclass(frozen=True)
class Truths:
    """Inferred truths of real tasks, then of new ones, and workers' confusion matrices."""

    label: Ints  # (task,): class number, -1 if unknown
    posterior: Floats  # (task, class)
    confusion: Floats  # (worker, truth, label)


@dataclass(frozen=True)
class SplitCrowd:
    """The annotations that a run learns from, and those held out."""

    votes: Annotations
    held: Annotations | None
    gold: Ints | None

    @property
    def labeled(self) -> Array:
        """Return which tasks have a label or a known truth."""
        labeled = self.votes.votes().sum(axis=1) > 0
        return labeled if self.gold is None else labeled | (self.gold >= 0)

    def majority(self, rng: np.random.RandomState) -> Truths:
        """Return majority votes as truths, with ties broken at random."""
        posterior = clamp(self.votes.shares(), self.gold)
        confusion = pooled_confusion(self.votes, posterior)
        return Truths(break_ties(posterior, rng), posterior, confusion)

    def of_real(self, truths: Truths) -> Ints:
        """Return the truths of the real tasks only."""
        return truths.label[: self.votes.n_tasks]


@dataclass(frozen=True)
class Snapshot:
    """A network, with the truths inferred at the same time."""

    value: float  # negative log-likelihood of held-out labels
    state: dict[str, Tensor]
    posterior: Floats
    confusion: Floats


class Run:
    """The course of a run: the results of each round, the best of them, and when to stop."""

    best: Snapshot

    def __init__(
        self, net: EmbeddingNet, crowd: SplitCrowd, tol: float, patience: int | None
    ) -> None:
        self.net, self.crowd, self.tol, self.patience = net, crowd, tol, patience
        self.held_out: list[float] = []  # per epoch
        self.truths: list[Ints] = []  # per round, and before the first
        self.n_new: list[Ints] = []  # per round
        self.value, self.waited, self.steady = np.inf, 0, 0

    def learn(self, rows: Features, labels: Annotations, epochs: int, truths: Truths) -> None:
        """Train the network, and evaluate it on held-out labels."""
        done = self.net.learn(rows, labels, epochs)
        if done:
            self.value = self.measure(truths)
            self.held_out += [self.value] * done

    def measure(self, truths: Truths) -> float:
        """Return the held-out negative log-likelihood; the last loss if nothing is held out."""
        if self.crowd.held is None:
            return self.net.loss[-1] if self.net.loss else np.inf
        return self.net.label_loss(self.crowd.held, truths.confusion)

    def start(self, truths: Truths) -> None:
        """Record the state before the first round."""
        self.truths.append(self.crowd.of_real(truths))
        self.value, self.predicted = self.measure(truths), self.net.predict()
        self.best = self.snapshot(truths)

    def ends(self, truths: Truths, new: NewTasks) -> bool:
        """Record a round; returns whether it was the last one."""
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
        """Return what is kept of this round, in case it is the best."""
        posterior = truths.posterior[: self.crowd.votes.n_tasks]
        return Snapshot(self.value, self.net.state(), posterior, truths.confusion)


def break_ties(posterior: Floats, rng: np.random.RandomState) -> Ints:
    """Return the best class of each task, a random one of tied ones."""
    best = tied(posterior)
    return np.where(best, rng.random_sample(best.shape), -1.0).argmax(axis=1)


def cut(truth: nn.Module) -> tuple[nn.Sequential, nn.Linear]:
    """Return the layers up to the embedding, and the last one; they share the weights."""
    parts = list(truth.children()) if isinstance(truth, nn.Sequential) else []
    last = parts[-1] if parts else None
    if not isinstance(last, nn.Linear):
        raise ParameterError(
            explain(
                f"The truth model is a {type(truth).__name__} without an embedding.",
                expected="'linear', an MLP, or a torch.nn.Sequential that ends in a Linear layer",
                fix="choose one of these",
            )
        )
    return nn.Sequential(*parts[:-1]), last


def mirror(body: nn.Sequential, n_embedded: int, n_out: int) -> nn.Module:
    """Make a decoder: the linear layers of ``body`` in reverse; one layer if it has no others."""
    widths = [part.out_features for part in body.modules() if isinstance(part, nn.Linear)]
    return MLP(hidden=tuple(widths[-2::-1])).build(n_embedded, n_out)


def unscale(scaler: nn.Module, scaled: Tensor) -> Tensor:
    """Return what the scaler would turn into ``scaled``."""
    return scaled * scaler.scale + scaler.mean if isinstance(scaler, Standardize) else scaled
