"""Confusion matrices from embeddings of tasks and workers."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid, relu

from crowdwise.learn.noise import Noise, WorkerFeatures, WorkerTable


class EmbeddedConfusion(Noise):
    """A confusion matrix for each task and worker, from embeddings of both (MaDL).

    Embeddings (and, with ``product``, their outer product brought back to size) go through a
    linear layer; the worker's embedding is added again before the output layer, whose bias says
    how often a worker is right before anything is known.

    ``kind`` is ``"full"`` for free rows, ``"diagonal"`` for an accuracy per class and
    ``"isotropic"`` for one accuracy, both with even errors. Without ``task`` it is the worker's
    alone.
    """

    def __init__(
        self,
        worker: nn.Module,
        task: nn.Module | None,
        size: int,
        n_classes: int,
        *,
        kind: str,
        product: bool,
        accuracy: float,
    ) -> None:
        super().__init__()
        self.worker, self.task = worker, task
        self.n_classes, self.kind = n_classes, kind
        n_parts = 1 + (task is not None) + product
        self.product = nn.Parameter(torch.empty(size, size, size)) if product else None
        if self.product is not None:
            nn.init.xavier_uniform_(self.product)
        self.hidden = nn.Linear(n_parts * size, size)
        self.output = nn.Linear(size, {"full": n_classes**2, "diagonal": n_classes}.get(kind, 1))
        with torch.no_grad():
            self.output.weight.zero_()  # so that training starts exactly at the prior accuracy
            self.output.bias.copy_(prior_bias(kind, n_classes, accuracy))

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        task = None if self.task is None else self.task(x)[at]
        return self.table(task, self.worker(worker))

    def table(self, task: Tensor | None, worker: Tensor) -> Tensor:
        """Log P(label | truth) from a task's and a worker's vector, (row, truth, label)."""
        parts = [worker] if task is None else [worker, task]
        if self.product is not None:
            both = worker if task is None else worker + task
            parts.append(torch.einsum("re,rm,pem->rp", both, both, self.product))
        hidden = relu(self.hidden(torch.cat(parts, dim=-1)) + worker)
        return as_table(self.output(hidden), self.kind, self.n_classes)


def as_table(output: Tensor, kind: str, n_classes: int) -> Tensor:
    """The output layer's numbers as log P(label | truth), (row, truth, label)."""
    if kind == "full":
        return log_softmax(output.reshape(-1, n_classes, n_classes), dim=-1)
    eye = torch.eye(n_classes, dtype=torch.bool, device=output.device)
    wrong = logsigmoid(-output) - math.log(max(n_classes - 1, 1))  # (row, truth or 1)
    return torch.where(eye, logsigmoid(output)[:, :, None], wrong[:, :, None])


def prior_bias(kind: str, n_classes: int, accuracy: float) -> Tensor:
    """The output layer's bias that makes a worker right with probability ``accuracy``."""
    odds = accuracy / (1.0 - accuracy)
    if kind == "full":
        return math.log(odds * max(n_classes - 1, 1)) * torch.eye(n_classes).flatten()
    return torch.full((n_classes if kind == "diagonal" else 1,), math.log(odds))


def worker_vectors(
    n_workers: int, size: int, features: Tensor | None, spread: float = 1.0
) -> nn.Module:
    """A learned vector per worker, ``spread`` to start with, or a linear function of features."""
    if features is not None:
        return WorkerFeatures(features, size)
    table = WorkerTable(n_workers, torch.zeros(size))
    nn.init.normal_(table.weight, std=spread)
    return table
