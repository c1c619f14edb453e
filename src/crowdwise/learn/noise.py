"""Noise parts: how workers turn a task's truth into labels, and the network around them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Self

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from torch.nn.functional import embedding

from crowdwise.base.params import Constraints, more_than
from crowdwise.errors import AnnotationError
from crowdwise.nets.batches import Batch, CrowdData, as_shares, label_shares
from crowdwise.nets.modules import MLP, SideBySide
from crowdwise.typing import Array, Floats


class NoisePart(BaseEstimator, ABC):
    """How workers turn truths into labels, described; :meth:`build` makes the module.

    A part of your own is a dataclass of its parameters with a ``build``; see
    :class:`WorkerConfusion`.
    """

    _parameter_constraints: ClassVar[Constraints] = {}
    # What random numbers are drawn for one by one; see ``LearnerTraits.random_per``.
    random_per: ClassVar[tuple[str, ...]] = ()

    def check(self) -> Self:
        """Refuse parameters that make no sense."""
        self._validate_params()
        return self

    @abstractmethod
    def build(self, data: CrowdData) -> Noise:
        """The noise model for workers, classes and features of these sizes, untrained."""


class Noise(SideBySide, nn.Module):
    """A model of log P(label | truth, features, worker), a module.

    Rows are annotations: ``at`` says which of the tasks ``x`` each is about, ``worker`` by whom.
    """

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """The whole table of each row, (row, truth, label)."""
        raise TypeError(f"{type(self).__name__} has no table")

    def score(self, x: Tensor, at: Tensor, worker: Tensor, label: Tensor) -> Tensor:
        """Log P(the label given | truth) of each row, (row, truth)."""
        return pick(self(x, at, worker), label)

    def labels(self, log_truth: Tensor, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Log P(label | features) of each row, (row, label): the truth summed out."""
        return torch.logsumexp(log_truth[at][:, :, None] + self(x, at, worker), dim=1)

    def accuracy(self, log_truth: Tensor, x: Tensor, workers: Tensor) -> Tensor:
        """P(right) of every worker on every task, (task, worker)."""
        at, everyone = grid(len(x), workers)
        table = self(x, at, everyone).exp()
        table = table.reshape(len(x), len(workers), *table.shape[1:])
        return torch.einsum("tk,twkk->tw", log_truth.exp(), table)

    def describe(self, net: CrowdNet, data: CrowdData, posterior: Floats) -> Mapping[str, Array]:
        """Learned attributes that this noise model adds to those of every learner."""
        return {}


class CrowdNet(SideBySide, nn.Module):
    """A truth model and a noise model behind one scaler."""

    def __init__(self, scaler: nn.Module, truth: nn.Module, noise: Noise) -> None:
        super().__init__()
        self.scaler, self.truth, self.noise = scaler, truth, noise

    def log_truth(self, x: Tensor) -> Tensor:
        """Log P(truth | features), (task, truth)."""
        return self.log_classes(self.truth(self.scaler(x)))

    def log_noise(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Log P(label | truth) of each row, (row, truth, label)."""
        return self.noise(self.scaler(x), at, worker)

    def log_labels(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Log P(label | features) of each row, (row, label)."""
        scaled = self.scaler(x)
        log_truth = self.log_classes(self.truth(scaled))
        return self.noise.labels(log_truth, scaled, at, worker)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log P(truth | features) per task, and log P(the label given | truth) per row."""
        x = self.scaler(batch.x)
        score = self.noise.score(x, batch.at, batch.worker, batch.label)
        return self.log_classes(self.truth(x)), score

    def tables(self, x: Tensor, workers: Tensor) -> Tensor:
        """P(label | truth) of workers on tasks, (task, worker, truth, label)."""
        at, everyone = grid(len(x), workers)
        table = self.log_noise(x, at, everyone).exp()
        return table.reshape(len(x), len(workers), *table.shape[1:])

    def worker_labels(self, x: Tensor, workers: Tensor) -> Tensor:
        """P(label) of workers on tasks, (task, worker, label)."""
        at, everyone = grid(len(x), workers)
        labels = self.log_labels(x, at, everyone).exp()
        return labels.reshape(len(x), len(workers), labels.shape[-1])

    def worker_accuracy(self, x: Tensor, workers: Tensor) -> Tensor:
        """P(right) of workers on tasks, (task, worker)."""
        return self.noise.accuracy(self.log_truth(x), self.scaler(x), workers)


class WorkerTable(nn.Module):
    """Parameters of each worker, and of the unknown one in the last row."""

    def __init__(self, n_workers: int, start: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(start.expand(n_workers + 1, *start.shape).clone())

    def forward(self, worker: Tensor) -> Tensor:
        return self.weight[worker]

    @torch.no_grad()
    def average_unknown(self) -> None:
        """Let the unknown worker be the average of the others."""
        self.weight[-1] = self.weight[:-1].mean(dim=0)


@dataclass(eq=False, repr=False)
class WorkerConfusion(NoisePart):
    """A confusion matrix per worker, each row a softmax of free numbers (SpeeLFC eq. 5).

    Parameters
    ----------
    diagonal, off_diagonal : float, default=4.7 and 1.0
        Where the free matrices start: before anything is learned a worker is right with
        probability ``exp(diagonal) / (exp(diagonal) + (n_classes - 1) * exp(off_diagonal))``.
    """

    diagonal: float = 4.7
    off_diagonal: float = 1.0

    _parameter_constraints = {"diagonal": [Real], "off_diagonal": [Real]}

    def build(self, data: CrowdData) -> WorkerConfusionNet:
        return WorkerConfusionNet(data.n_workers, data.n_classes, self.diagonal, self.off_diagonal)


class WorkerConfusionNet(Noise):
    """Free matrices of the workers, whose rows become probabilities by softmax."""

    def __init__(self, n_workers: int, n_classes: int, diagonal: float, off: float) -> None:
        super().__init__()
        start = torch.full((n_classes, n_classes), off)
        self.raw = WorkerTable(n_workers, start.fill_diagonal_(diagonal))

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        return self.log_classes(self.raw(worker))  # (row, truth, label)

    def score(self, x: Tensor, at: Tensor, worker: Tensor, label: Tensor) -> Tensor:
        """The same, from one softmax per worker instead of one per row."""
        tables = self.log_classes(self.raw.weight)  # (worker, truth, label)
        if label.ndim > 1:
            return pick(tables[worker], label)
        by_label = tables.movedim(-1, 0).flatten(0, 1)  # (label x worker, truth)
        return embedding(label * len(tables) + worker, by_label)


@dataclass(eq=False, repr=False)
class CountedStart(NoisePart):
    """Confusion matrices as :class:`WorkerConfusion`, which start from counts.

    Each worker's labels are counted against the tasks' shares of labels.

    Parameters
    ----------
    smoothing : float, default=0.1
        Added to every count.
    """

    smoothing: float = 0.1

    _parameter_constraints = {"smoothing": [more_than(0.0)]}

    def build(self, data: CrowdData) -> WorkerConfusionNet:
        noise = WorkerConfusionNet(data.n_workers, data.n_classes, 1.0, 0.0)
        with torch.no_grad():
            noise.raw.weight[:-1] = count_log_confusion(data, self.smoothing)
        return noise


@dataclass(eq=False, repr=False)
class NoNoise(NoisePart):
    """Labels that are the truth."""

    def build(self, data: CrowdData) -> NoNoiseNet:
        return NoNoiseNet(data.n_classes)


class NoNoiseNet(Noise):
    """Labels that are the truth."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.n_classes = n_classes

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        table = torch.eye(self.n_classes, device=x.device, dtype=x.dtype).log()
        return table.expand(len(worker), -1, -1)

    def labels(self, log_truth: Tensor, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        return log_truth[at]


class WorkerFeatures(nn.Module):
    """A network on given worker features, which also serves workers never seen."""

    table: Tensor

    def __init__(self, features: Tensor, n_out: int, hidden: tuple[int, ...] = ()) -> None:
        super().__init__()
        average = features.mean(dim=0, keepdim=True)
        self.register_buffer("table", torch.cat([features, average]))
        self.network = MLP(hidden=hidden).build(features.shape[1], n_out)

    def forward(self, worker: Tensor) -> Tensor:
        return self.network(self.table[worker])

    def replace_workers(self, features: Tensor) -> None:
        """Know other workers in place of those it was trained with; the unknown one stays."""
        if features.shape[1] != self.table.shape[1]:
            raise AnnotationError(
                f"worker_features have {features.shape[1]} columns.\n"
                f"  expected: the {self.table.shape[1]} columns that the model was learned with"
            )
        self.table = torch.cat([features, self.table[-1:]])


def grid(n_rows: int, workers: Tensor) -> tuple[Tensor, Tensor]:
    """Every row with every worker: which row, and which worker."""
    return torch.arange(n_rows).repeat_interleave(len(workers)), workers.repeat(n_rows)


def pick(log_noise: Tensor, label: Tensor) -> Tensor:
    """Log P(the label given | truth), (row, truth); a soft label weighs the logarithms."""
    if label.ndim > 1:
        return torch.einsum("rkl,rl->rk", log_noise, label)
    return log_noise[torch.arange(len(label), device=label.device), :, label]


def count_log_confusion(data: CrowdData, smoothing: float) -> Tensor:
    """Log P(label | truth) of each worker, where truths are the tasks' shares of labels."""
    shares = label_shares(data)
    label = as_shares(data.label, data.n_classes)
    count = shares.new_full((data.n_workers, data.n_classes, data.n_classes), smoothing)
    pairs = shares[data.task][:, :, None] * (label * data.weight[:, None])[:, None, :]
    count = count.index_add(0, data.worker, pairs)
    return (count / count.sum(dim=-1, keepdim=True)).log()
