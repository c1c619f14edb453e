"""Noise models: what a worker makes of a task's truth.

Each is a module that maps (features of the batch's tasks, which task and which worker each row
is about) to log P(label | truth), shape (row, truth, label).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, logsigmoid

from crowdwise.errors import AnnotationError
from crowdwise.nets.modules import MLP, SideBySide


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


class Noise(SideBySide, nn.Module):
    """A model of log P(label | truth, features, worker)."""

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """The whole table of each row, (row, truth, label)."""
        raise TypeError(f"{type(self).__name__} has no table")

    def score(self, x: Tensor, at: Tensor, worker: Tensor, label: Tensor) -> Tensor:
        """Log P(the label given | truth) of each row, (row, truth)."""
        return pick(self(x, at, worker), label)

    def labels(self, log_truth: Tensor, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Log P(label | features) of each row, (row, label): the truth summed out."""
        return torch.logsumexp(log_truth[at][:, :, None] + self(x, at, worker), dim=1)


class WorkerConfusion(Noise):
    """A confusion matrix per worker, rows by softmax (SpeeLFC eq. 5, transposed)."""

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


class WorkerEase(Noise):
    """Accuracy from a worker's skill times a task's ease (SpeeLFC-D eqs. 13 to 15).

    ``accuracy = sigmoid(skill * ease)`` with ``ease = least + most * sigmoid(g(x))``; errors are
    spread evenly over the other classes.
    """

    def __init__(
        self,
        n_workers: int,
        n_classes: int,
        network: nn.Module,
        *,
        skill: float,
        least: float,
        most: float,
    ) -> None:
        super().__init__()
        self.skill = WorkerTable(n_workers, torch.tensor(skill))
        self.network = network
        self.least, self.most, self.n_classes = least, most, n_classes

    def ease(self, x: Tensor) -> Tensor:
        """How easy each task is; larger is easier."""
        return self.least + self.most * torch.sigmoid(self.network(x)).squeeze(-1)  # (task,)

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        logit = self.skill(worker) * self.ease(x)[at]  # (row,)
        return even_errors(logsigmoid(logit), logsigmoid(-logit), self.n_classes)


class Tensors(Noise):
    """LIA: difficulty of the task plus competence of the worker, in L slots.

    ``Q[k, l] ~ sum_m exp(difficulty[k, l, m] + competence[k, l, m])``, rows normalised; or, with
    ``combine="dot"``, the softmax of the inner product over the slots.
    """

    def __init__(
        self,
        difficulty: nn.Module,
        competence: nn.Module,
        n_classes: int,
        n_slots: int,
        combine: str,
    ) -> None:
        super().__init__()
        self.difficulty, self.competence = difficulty, competence
        self.shape, self.combine = (n_classes, n_classes, n_slots), combine

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        return self.combined(self.difficulty(x)[at], self.competence(worker))

    def combined(self, difficulty: Tensor, competence: Tensor) -> Tensor:
        """Log P(label | truth) from both tensors, flat, of each row."""
        difficulty = difficulty.reshape(-1, *self.shape)  # (row, truth, label, slot)
        competence = competence.reshape(-1, *self.shape)
        if self.combine == "dot":
            return self.log_classes((difficulty * competence).sum(dim=-1))
        return self.log_classes(torch.logsumexp(difficulty + competence, dim=-1))


class WorkerEmbedding(nn.Module):
    """A learned vector per worker, then a linear map: LIA's competence without features."""

    def __init__(self, n_workers: int, size: int, n_out: int) -> None:
        super().__init__()
        self.table = WorkerTable(n_workers, torch.zeros(size))
        nn.init.xavier_uniform_(self.table.weight)
        self.head = nn.Linear(size, n_out)

    def forward(self, worker: Tensor) -> Tensor:
        return self.head(self.table(worker))


class WorkerFeatures(nn.Module):
    """A network on given worker features: LIA's competence for workers never seen."""

    table: Tensor

    def __init__(self, features: Tensor, n_out: int, hidden: tuple[int, ...] = ()) -> None:
        super().__init__()
        average = features.mean(dim=0, keepdim=True)
        self.register_buffer("table", torch.cat([features, average]))
        self.network = MLP(hidden=hidden).build(features.shape[1], n_out)

    def forward(self, worker: Tensor) -> Tensor:
        return self.network(self.table[worker])

    def meet(self, features: Tensor) -> None:
        """Know other workers in place of those it was trained with; the unknown one stays."""
        if features.shape[1] != self.table.shape[1]:
            raise AnnotationError(
                f"worker_features have {features.shape[1]} columns.\n"
                f"  expected: the {self.table.shape[1]} columns that the model was learned with"
            )
        self.table = torch.cat([features, self.table[-1:]])


class FreeMatrix(nn.Module):
    """Crowd-Layer's MW: an unconstrained matrix on the class probabilities."""

    def __init__(self, n_workers: int, n_classes: int) -> None:
        super().__init__()
        self.matrix = WorkerTable(n_workers, torch.eye(n_classes))

    def forward(self, probability: Tensor, worker: Tensor) -> Tensor:
        return torch.einsum("r...k,rkl->r...l", probability, self.matrix(worker))


class FreeVector(nn.Module):
    """Crowd-Layer's VW, VB, VW-B and SW: a scale and a shift of the class probabilities."""

    def __init__(self, n_workers: int, n_classes: int, kind: str) -> None:
        super().__init__()
        width = 1 if kind == "SW" else n_classes
        scaled, shifted = kind in ("VW", "VW-B", "SW"), kind in ("VB", "VW-B")
        self.factor = WorkerTable(n_workers, torch.ones(width)) if scaled else None
        self.shift = WorkerTable(n_workers, torch.zeros(width)) if shifted else None

    def forward(self, probability: Tensor, worker: Tensor) -> Tensor:
        extra = probability.ndim - 2  # axes between row and class
        logits = probability
        if self.factor is not None:
            logits = logits * unsqueeze(self.factor(worker), extra)
        return logits if self.shift is None else logits + unsqueeze(self.shift(worker), extra)


class FreeLayer(Noise):
    """A layer of free weights on the class probabilities, then a softmax over labels."""

    def __init__(self, layer: nn.Module, n_classes: int) -> None:
        super().__init__()
        self.layer, self.n_classes = layer, n_classes

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """What the layer makes of a task whose class is certain."""
        certain = torch.eye(self.n_classes, device=x.device, dtype=x.dtype)
        return self.log_classes(self.layer(certain.expand(len(worker), -1, -1), worker))

    def labels(self, log_truth: Tensor, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        return self.log_classes(self.layer(log_truth.exp()[at], worker))


def pick(log_noise: Tensor, label: Tensor) -> Tensor:
    """Log P(the label given | truth), (row, truth); a soft label weighs the logarithms."""
    if label.ndim > 1:
        return torch.einsum("rkl,rl->rk", log_noise, label)
    return log_noise[torch.arange(len(label), device=label.device), :, label]


def unsqueeze(rows: Tensor, extra: int) -> Tensor:
    """Put ``extra`` axes of size one after the first."""
    return rows[(slice(None), *[None] * extra)]


def even_errors(log_right: Tensor, log_wrong: Tensor, n_classes: int) -> Tensor:
    """A one-coin table: right on the diagonal, errors spread over the other classes."""
    if n_classes == 1:  # there is nothing else to say, right or wrong
        return torch.logaddexp(log_right, log_wrong)[..., None, None]
    eye = torch.eye(n_classes, dtype=torch.bool, device=log_right.device)
    spread = log_wrong - math.log(n_classes - 1)
    return torch.where(eye, log_right[..., None, None], spread[..., None, None])
