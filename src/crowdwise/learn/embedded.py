"""Confusion matrices from embeddings of tasks and workers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid, relu

from crowdwise.base.params import at_least, more_than, one_of
from crowdwise.errors import ParameterError
from crowdwise.learn.noise import WorkerFeatures
from crowdwise.learn.parts import CrowdNet, Noise, NoisePart, WorkerTable
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.modules import LINEAR, MLP, NetworkLike, build_network
from crowdwise.typing import Array, Floats


@dataclass(eq=False, repr=False)
class EmbeddedConfusion(NoisePart):
    """A confusion matrix for each task and worker, from embeddings of both (MaDL).

    Workers' embeddings are learned, or are a linear function of ``worker_features`` in ``fit``.
    Adds ``embedding_``.

    Parameters
    ----------
    confusion : {"full", "diagonal", "isotropic"}, default="full"
        Free rows; an accuracy per class and even errors; one accuracy and even errors.
    task : MLP and others or None, default=MLP(hidden=())
        Network from features to the task's embedding; None if confusion depends on the worker
        alone. A network stronger than ``truth`` tends to explain the classes as noise.
    product : bool, default=True
        Whether to use the outer product of the embeddings.
    embedding_size : int, default=16
        Size of both embeddings.
    accuracy : float, default=0.8
        Initial probability that a worker is right.
    spread : float, default=1.0
        Initial standard deviation of the workers' embeddings.
    """

    confusion: str = "full"
    task: NetworkLike | None = LINEAR
    product: bool = True
    embedding_size: int = 16
    accuracy: float = 0.8
    spread: float = 1.0

    random_per = ("worker",)  # embeddings of workers start at random
    _parameter_constraints = {
        "confusion": [one_of("full", "diagonal", "isotropic")],
        "task": [MLP, nn.Module, callable, None],
        "product": ["boolean"],
        "embedding_size": [at_least(1)],
        "accuracy": [more_than(0.0)],
        "spread": [more_than(0.0)],
    }

    def build(self, data: CrowdData) -> EmbeddedConfusionNet:
        if not self.accuracy < 1.0:
            raise ParameterError(
                f"accuracy={self.accuracy} is too large.\n  expected: less than 1"
                "\n  fix:      give a share such as 0.8"
            )
        size = self.embedding_size
        return EmbeddedConfusionNet(
            worker_vectors(data.n_workers, size, data.worker_features, self.spread, data.active),
            None if self.task is None else build_network(self.task, data.n_in, size),
            size,
            data.n_classes,
            kind=self.confusion,
            product=self.product,
            accuracy=self.accuracy,
        )


class EmbeddedConfusionNet(Noise):
    """Confusion matrices from embeddings.

    Embeddings (and, with ``product``, a projection of their outer product) go through a
    linear layer; the worker's embedding is added again before the output layer, whose bias
    determines how often a worker is right initially.

    ``kind`` is ``"full"`` for free rows, ``"diagonal"`` for an accuracy per class and
    ``"isotropic"`` for one accuracy, both with even errors. Without ``task``, the matrix
    depends on the worker alone.
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
        """Return log P(label | truth) from task and worker vectors, (row, truth, label)."""
        parts = [worker] if task is None else [worker, task]
        if self.product is not None:
            both = worker if task is None else worker + task
            parts.append(torch.einsum("re,rm,pem->rp", both, both, self.product))
        hidden = relu(self.hidden(torch.cat(parts, dim=-1)) + worker)
        return as_table(self.output(hidden), self.kind, self.n_classes)

    def describe(self, net: CrowdNet, data: CrowdData, posterior: Floats) -> Mapping[str, Array]:
        return {"embedding_": self.worker(torch.arange(data.n_workers)).double().numpy()}


def as_table(output: Tensor, kind: str, n_classes: int) -> Tensor:
    """Convert the output layer's numbers to log P(label | truth), (row, truth, label)."""
    if kind == "full":
        return log_softmax(output.reshape(-1, n_classes, n_classes), dim=-1)
    if n_classes == 1:  # there is no other label, right or wrong
        return torch.zeros_like(output)[:, :, None]
    eye = torch.eye(n_classes, dtype=torch.bool, device=output.device)
    wrong = logsigmoid(-output) - math.log(max(n_classes - 1, 1))  # (row, truth or 1)
    return torch.where(eye, logsigmoid(output)[:, :, None], wrong[:, :, None])


def prior_bias(kind: str, n_classes: int, accuracy: float) -> Tensor:
    """Return the output layer's bias that makes workers right with probability ``accuracy``."""
    odds = accuracy / (1.0 - accuracy)
    if kind == "full":
        return math.log(odds * max(n_classes - 1, 1)) * torch.eye(n_classes).flatten()
    return torch.full((n_classes if kind == "diagonal" else 1,), math.log(odds))


def worker_vectors(
    n_workers: int,
    size: int,
    features: Tensor | None,
    spread: float = 1.0,
    active: Tensor | None = None,
) -> nn.Module:
    """Make a learned vector per worker, initially ``spread`` out, or one linear in features."""
    if features is not None:
        return WorkerFeatures(features, size)
    table = WorkerTable(n_workers, torch.zeros(size))
    table.draw(partial(nn.init.normal_, std=spread), active)
    return table
