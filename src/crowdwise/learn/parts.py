"""The basic parts of a learner: a network of truth and noise, and its objective."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from crowdwise.base.params import NUMBER, Part, at_least, one_of
from crowdwise.errors import ParameterError, explain
from crowdwise.nets.batches import Batch, CrowdData, label_shares
from crowdwise.nets.ensemble import Ensemble
from crowdwise.nets.loop import Phase, Single
from crowdwise.nets.modules import SideBySide
from crowdwise.nets.objective import Objective, ObjectiveT
from crowdwise.typing import Array, Floats

NoiseT = TypeVar("NoiseT", bound="Noise")
HIDDEN = 128  # approximate size of a noise model's temporary arrays, per task and worker


class NoisePart(Part, ABC):
    """The description of how workers turn truths into labels; :meth:`build` makes the module.

    To write your own part, make a dataclass of its parameters with a ``build``; see
    :class:`WorkerConfusion`.
    """

    # What random numbers are drawn for one by one; see ``LearnerTraits.random_per``.
    random_per: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def build(self, data: CrowdData) -> Noise:
        """Build the untrained noise model for these numbers of workers, classes and features."""


class Noise(SideBySide, nn.Module):
    """A module for log P(label | truth, features, worker).

    Rows are annotations: ``at`` is each one's task among ``x``, and ``worker`` its worker.
    """

    imitates: ClassVar[bool] = False  # whether it can start from confusion matrices

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Return the whole table of each row, (row, truth, label)."""
        raise TypeError(f"{type(self).__name__} has no table")

    def score(self, x: Tensor, at: Tensor, worker: Tensor, label: Tensor) -> Tensor:
        """Return log P(given label | truth) of each row, (row, truth)."""
        return pick(self(x, at, worker), label)

    def labels(self, log_truth: Tensor, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Return log P(label | features) of each row, (row, label), summed over truths."""
        return torch.logsumexp(log_truth[at][:, :, None] + self(x, at, worker), dim=1)

    def accuracy(self, log_truth: Tensor, x: Tensor, workers: Tensor) -> Tensor:
        """Return P(right) of every worker on every task, (task, worker)."""
        at, everyone = grid(len(x), workers)
        table = self(x, at, everyone).exp()
        table = table.reshape(len(x), len(workers), *table.shape[1:])
        return torch.einsum("tk,twkk->tw", log_truth.exp(), table)

    def describe(self, net: CrowdNet, data: CrowdData, posterior: Floats) -> Mapping[str, Array]:
        """Return learned attributes that this noise model adds to those of every learner."""
        return {}

    def imitate(self, confusion: Tensor) -> None:
        """Start from these matrices, (worker, truth, label), if ``imitates`` is true."""
        raise TypeError(f"{type(self).__name__} cannot start from confusion matrices")


class CrowdNet(SideBySide, nn.Module):
    """A truth model and a noise model with a common scaler."""

    def __init__(self, scaler: nn.Module, truth: nn.Module, noise: Noise) -> None:
        super().__init__()
        self.scaler, self.truth, self.noise = scaler, truth, noise

    def log_truth(self, x: Tensor) -> Tensor:
        """Return log P(truth | features), (task, truth)."""
        return self.log_classes(self.truth(self.scaler(x)))

    def log_noise(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Return log P(label | truth) of each row, (row, truth, label)."""
        return self.noise(self.scaler(x), at, worker)

    def log_labels(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Return log P(label | features) of each row, (row, label)."""
        scaled = self.scaler(x)
        log_truth = self.log_classes(self.truth(scaled))
        return self.noise.labels(log_truth, scaled, at, worker)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return log P(truth | features) per task, and log P(given label | truth) per row."""
        x = self.scaler(batch.x)
        score = self.noise.score(x, batch.at, batch.worker, batch.label)
        return self.log_classes(self.truth(x)), score

    def tables(self, x: Tensor, workers: Tensor) -> Tensor:
        """Return P(label | truth) of workers on tasks, (task, worker, truth, label)."""
        at, everyone = grid(len(x), workers)
        table = self.log_noise(x, at, everyone).exp()
        return table.reshape(len(x), len(workers), *table.shape[1:])

    def worker_labels(self, x: Tensor, workers: Tensor) -> Tensor:
        """Return P(label) of workers on tasks, (task, worker, label)."""
        at, everyone = grid(len(x), workers)
        labels = self.log_labels(x, at, everyone).exp()
        return labels.reshape(len(x), len(workers), labels.shape[-1])

    def worker_accuracy(self, x: Tensor, workers: Tensor) -> Tensor:
        """Return P(right) of workers on tasks, (task, worker)."""
        return self.noise.accuracy(self.log_truth(x), self.scaler(x), workers)


class WorkerTable(nn.Module):
    """Parameters of each worker, and of the unknown one in the last row."""

    def __init__(self, n_workers: int, start: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(start.expand(n_workers + 1, *start.shape).clone())

    def forward(self, worker: Tensor) -> Tensor:
        return self.weight[worker]

    @torch.no_grad()
    def draw(self, fill: Callable[[Tensor], Tensor], active: Tensor | None = None) -> None:
        """Initialize at random, for the unknown worker and those with labels only.

        A worker without labels starts like the unknown one, without affecting the others' draws.
        """
        if active is None or active.all():
            fill(self.weight)
            return
        drawn = fill(self.weight[: int(active.sum()) + 1].clone())
        self.weight[:] = drawn[-1]
        self.weight[:-1][active] = drawn[:-1]

    @torch.no_grad()
    def average_unknown(self) -> None:
        """Set the unknown worker to the average of the others."""
        self.weight[-1] = self.weight[:-1].mean(dim=0)


@dataclass(eq=False, repr=False)
class WorkerConfusion(NoisePart):
    """A confusion matrix per worker, each row a softmax of free numbers (SpeeLFC eq. 5).

    Parameters
    ----------
    diagonal, off_diagonal : float, default=4.7 and 1.0
        Initial values of the free matrices: at first, a worker is right with
        probability ``exp(diagonal) / (exp(diagonal) + (n_classes - 1) * exp(off_diagonal))``.
    """

    diagonal: float = 4.7
    off_diagonal: float = 1.0

    _parameter_constraints = {"diagonal": [NUMBER], "off_diagonal": [NUMBER]}

    def build(self, data: CrowdData) -> WorkerConfusionNet:
        return WorkerConfusionNet(data.n_workers, data.n_classes, self.diagonal, self.off_diagonal)


class WorkerConfusionNet(Noise):
    """Free matrices of the workers, whose rows become probabilities by softmax."""

    imitates = True

    def __init__(self, n_workers: int, n_classes: int, diagonal: float, off: float) -> None:
        super().__init__()
        start = torch.full((n_classes, n_classes), float(off))
        self.raw = WorkerTable(n_workers, start.fill_diagonal_(diagonal))

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        return self.log_classes(self.raw(worker))  # (row, truth, label)

    def score(self, x: Tensor, at: Tensor, worker: Tensor, label: Tensor) -> Tensor:
        """Do the same with one softmax per worker instead of one per row."""
        tables = self.log_classes(self.raw.weight)  # (worker, truth, label)
        if label.ndim > 1:
            return pick(tables[worker], label)
        by_label = tables.movedim(-1, 0).flatten(0, 1)  # (label x worker, truth)
        return embedding(label * len(tables) + worker, by_label)

    @torch.no_grad()
    def imitate(self, confusion: Tensor) -> None:
        self.raw.weight[:-1] = confusion.log()
        self.raw.average_unknown()


@dataclass(eq=False, repr=False)
class CountedConfusion(NoisePart):
    """Confusion matrices that are counted, not trained. Used with :class:`Bootstrap`."""

    def build(self, data: CrowdData) -> CountedConfusionNet:
        return CountedConfusionNet(data.n_workers, data.n_classes)


class CountedConfusionNet(Noise):
    """Confusion matrices that are counted, not trained; the last is the average of all."""

    log_table: Tensor

    def __init__(self, n_workers: int, n_classes: int) -> None:
        super().__init__()
        shape = (n_workers + 1, n_classes, n_classes)
        self.register_buffer("log_table", torch.zeros(shape).log_softmax(dim=-1))

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        return self.log_table[worker]  # (row, truth, label)

    def take(self, confusion: Tensor) -> None:
        """Use these matrices, (worker, truth, label)."""
        everyone = torch.cat([confusion, confusion.mean(dim=0, keepdim=True)])
        self.log_table.copy_(everyone.log())


class ObjectivePart(Part, ABC):
    """The description of what training maximizes; :meth:`build` makes the module.

    To write your own part, make a dataclass of its parameters with a ``build``; see
    :class:`PerTask`.
    """

    # What random numbers are drawn for one by one; see ``LearnerTraits.random_per``.
    random_per: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def build(self, net: CrowdNet, data: CrowdData) -> CrowdObjective:
        """Build the objective of a network on these data."""


class CrowdObjective(Objective[Batch]):
    """A truth model and a noise model, together with their training loss.

    By default, the loss is minus the likelihood of every annotation on its own.
    """

    net: CrowdNet
    gold: Tensor
    restraint: nn.Module | None  # its regularization, if any
    adds_up: ClassVar[bool] = True  # losses of a batch's parts add up to the batch's

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        changed = {"loss", "held_out", "label_evidence", "scores", "phases"} & vars(cls).keys()
        if changed and "adds_up" not in vars(cls):
            cls.adds_up = False

    def __init__(self, net: CrowdNet, data: CrowdData) -> None:
        super().__init__()
        self.net, self.restraint = net, None
        self.register_buffer("gold", data.gold)

    def phases(self, epochs: int) -> Sequence[Phase[Any, Batch]]:
        """Return the phases of training; ``epochs`` is the number in the settings."""
        return [Phase(epochs)]

    def loss(self, batch: Batch) -> Tensor:
        """Return minus the objective, per annotation."""
        return -per_annotation(*self.scores(batch), batch)

    def scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the network's predictions, with truths ruled out by gold at minus infinity."""
        log_truth, score = self.net(batch)
        return log_truth + self.gold[batch.task], score

    def held_out(self, batch: Batch) -> Tensor:
        """Return the negative log-likelihood per annotation, by which restarts are chosen."""
        return -per_annotation(*self.scores(batch), batch)

    def label_evidence(self, batch: Batch) -> Tensor:
        """Return the log-likelihood of each task's labels, which share one truth, (task,)."""
        # Each label could be likely under some truth although together they are unlikely.
        log_truth, score = CrowdObjective.scores(self, batch)  # whatever the steps make of it
        return torch.logsumexp(joint(log_truth, score, batch), dim=-1)

    def posterior(self, batch: Batch) -> Tensor:
        """Return log P(truth | features, labels), (task, truth)."""
        return self.net.log_classes(joint(*self.scores(batch), batch))

    def chunks(self, data: CrowdData) -> Iterator[Batch]:
        """Yield all tasks, as many at a time as memory allows, to compute posteriors for."""
        return data.chunks(own=True)

    def settle(self, data: CrowdData) -> None:
        """Do what is left when training is over."""

    def describe(self) -> Mapping[str, Array]:
        """Return learned attributes that this objective adds to those of every learner."""
        return {}

    def noise_as(self, kind: type[NoiseT], part: str) -> NoiseT:
        """Return the noise model, which must be of a certain kind for this objective."""
        noise = self.net.noise
        if not isinstance(noise, kind):
            raise ParameterError(
                explain(
                    f"{type(self).__name__.removesuffix('Loss')} needs another noise part.",
                    first=type(noise).__name__.removesuffix("Net"),
                    expected=f"noise={part}",
                    fix="use that noise part, or another objective",
                )
            )
        return noise


@dataclass(eq=False, repr=False)
class PerAnnotation(ObjectivePart):
    """Marginal likelihood with every annotation on its own (SpeeLFC eq. 8, LIA eq. 9)."""

    def build(self, net: CrowdNet, data: CrowdData) -> CrowdObjective:
        return CrowdObjective(net, data)


@dataclass(eq=False, repr=False)
class EM(ObjectivePart):
    """Expectation maximization from the shares of labels, then the marginal likelihood.

    A round trains on the expected likelihood under each task's posterior: at first its share of
    labels, then the posterior by the model. Networks continue training from round to
    round.

    Parameters
    ----------
    rounds, epochs : int, default=5 and 40
        EM rounds, and epochs of the M-step in each.
    marginal : {"annotation", "task"} or None, default="annotation"
        Fine-tuning after EM, on every annotation alone (LIA eq. 9) or on all labels of a task
        with one shared truth (the model's likelihood); None to skip it.
    marginal_epochs : int, default=100
        Epochs of fine-tuning.
    """

    rounds: int = 5
    epochs: int = 40
    marginal: str | None = "annotation"
    marginal_epochs: int = 100

    _parameter_constraints = {
        "rounds": [at_least(0)],
        "epochs": [at_least(1)],
        "marginal": [one_of("annotation", "task"), None],
        "marginal_epochs": [at_least(0)],
    }

    def build(self, net: CrowdNet, data: CrowdData) -> EMLoss:
        return EMLoss(net, data, self)

    def weigh(self, score: Tensor) -> Tensor:
        """Return what takes the place of log P(label | truth) in every step, (row, truth)."""
        return score

    def expect(self, log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
        """Run the E-step: P(truth | features, labels), (task, truth)."""
        return torch.log_softmax(joint(log_truth, score, batch), dim=-1).exp()


class EMLoss(CrowdObjective):
    """Minus the expected likelihood under the posterior of the last E-step.

    Tasks with neither a label nor gold are left out.
    """

    by = "task"
    adds_up = True
    target: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData, em: EM) -> None:
        super().__init__(net, data)
        start = label_shares(data)
        self.em = em
        self.register_buffer("target", start)  # (task, truth)

    def phases(self, epochs: int) -> Sequence[Phase[EMLoss, Batch]]:
        em = self.em  # its epochs are used, not those of the settings
        later: Phase[EMLoss, Batch] = Phase(em.epochs, expect=EMLoss.e_step)
        rounds: list[Phase[EMLoss, Batch]] = [Phase(em.epochs), *[later] * (em.rounds - 1)]
        tuned = [Phase(em.marginal_epochs, loss=EMLoss.marginal)] if em.marginal else []
        return [*rounds[: em.rounds], *tuned]

    def loss(self, batch: Batch) -> Tensor:
        log_truth, score = self.net(batch)
        weight = log_truth.new_zeros(len(log_truth)).index_add(0, batch.at, batch.weight)
        counts = (weight > 0) | torch.isinf(self.gold[batch.task]).any(dim=-1)
        target = self.target[batch.task] * counts[:, None]
        return -expected(log_truth, self.em.weigh(score), target, batch)

    def scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        log_truth, score = super().scores(batch)
        return log_truth, self.em.weigh(score)

    def held_out(self, batch: Batch) -> Tensor:
        """Evaluate by the model's own likelihood, whatever is used in the steps."""
        return -per_annotation(*super().scores(batch), batch)

    def label_evidence(self, batch: Batch) -> Tensor:
        """Return the log-likelihood of each task's labels, each on its own, (task,)."""
        # Difficulty could explain all labels of a task at once, right or wrong.
        log_truth, score = CrowdObjective.scores(self, batch)
        evidence = torch.logsumexp(log_truth[batch.at] + score, dim=-1) * batch.weight
        return log_truth.new_zeros(len(log_truth)).index_add(0, batch.at, evidence)

    def e_step(self, batch: Batch) -> Tensor:
        """Return P(truth | features, labels), (task, truth)."""
        return self.em.expect(*self.scores(batch), batch)

    def marginal(self, batch: Batch) -> Tensor:
        """Return the loss of fine-tuning."""
        rule = per_task if self.em.marginal == "task" else per_annotation
        return -rule(*self.scores(batch), batch)


def side_by_side(members: Sequence[ObjectiveT]) -> Single[ObjectiveT]:
    """Return the members to be trained as one."""
    return Single(members[0]) if len(members) == 1 else Ensemble(members)


def pair_cells(n_classes: int) -> int:
    """Return the size of temporary arrays per task and worker."""
    return max(n_classes**2, HIDDEN)


def grid(n_rows: int, workers: Tensor) -> tuple[Tensor, Tensor]:
    """Combine every row with every worker; returns row and worker of each combination."""
    return torch.arange(n_rows).repeat_interleave(len(workers)), workers.repeat(n_rows)


def pick(log_noise: Tensor, label: Tensor) -> Tensor:
    """Return log P(given label | truth), (row, truth); a soft label weights the logarithms."""
    if label.ndim > 1:
        return torch.einsum("rkl,rl->rk", log_noise, label)
    return log_noise[torch.arange(len(label), device=label.device), :, label]


def joint(log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
    """Return log P(truth, labels | features), (task, truth)."""
    return log_truth.index_add(0, batch.at, score * batch.weight[:, None])


def per_annotation(log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
    """Return the mean over annotations of log sum_k P(k | x) P(label | k)."""
    # Summing over the outermost axis is faster if it is short.
    both = log_truth.T.index_select(1, batch.at) + score.T  # (truth, row)
    evidence = torch.logsumexp(both, dim=0)  # (row,)
    return (evidence * batch.weight).sum() / total(batch)


def per_task(log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
    """Return the sum over tasks of log sum_k P(k | x) prod_j P(label_j | k), per annotation."""
    return torch.logsumexp(joint(log_truth, score, batch), dim=-1).sum() / total(batch)


def expected(log_truth: Tensor, score: Tensor, target: Tensor, batch: Batch) -> Tensor:
    """Return the expected log P(truth, labels | x) under ``target``, per annotation."""
    labels = (target[batch.at] * score).sum(dim=-1)  # (row,)
    return ((target * log_truth).sum() + (labels * batch.weight).sum()) / total(batch)


def total(batch: Batch) -> Tensor:
    """Return the weight of the batch's annotations, or of the batch it is a part of."""
    weight = batch.weight if batch.every is None else batch.every.weight
    return weight.sum().clamp_min(1e-12)
