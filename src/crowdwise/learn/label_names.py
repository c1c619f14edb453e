"""Networks with the number of a label name in the last column of their input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crowdwise.errors import ParameterError
from crowdwise.learn.embedded import worker_vectors
from crowdwise.learn.lia import EMBEDDING, DifficultyTensors, TensorsNet
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.modules import NetworkLike, build_network


@dataclass(frozen=True)
class ByLabel:
    """How a network is extended to several label names.

    ``heads`` is ``"per_label"`` for a head each, or ``"embedding"`` for a vector of the label
    name beside the features.
    """

    heads: str
    n_names: int
    features: Tensor | None  # of the label names

    def front(self, scaler: nn.Module) -> nn.Module:
        """Return the common input of all networks: features, and the name's number or vector."""
        if self.heads == "per_label":
            return scaler
        return WithLabelVectors(scaler, LabelVectors(self.n_names, EMBEDDING, self.features))

    @property
    def size(self) -> int:
        """Number of last columns, as seen by networks, that represent the label name."""
        return 1 if self.heads == "per_label" else EMBEDDING

    def build(self, kind: NetworkLike, n_in: int | None, n_out: int) -> nn.Module:
        """Build a network on features, the last of which is the number of a label name."""
        if n_in is None:
            raise ParameterError("LIAML needs rows of numbers.\n  fix:      flatten X")
        return self.wrap(lambda width, size: build_network(kind, width, size), n_in - 1, n_out)

    def wrap(self, body: Callable[[int, int], nn.Module], width: int, n_out: int) -> nn.Module:
        """Build a network from ``width`` features and a label name to ``n_out`` numbers."""
        if self.heads == "per_label":
            return LabelHeads(body(width, EMBEDDING), self.n_names, EMBEDDING, n_out)
        return body(width + EMBEDDING, n_out)


@dataclass(eq=False, repr=False)
class PairTensors(DifficultyTensors):
    """LIA's tensors, with difficulty and competence that also depend on the label name."""

    labels: ByLabel = ByLabel("per_label", 1, None)

    def build(self, data: CrowdData) -> PairTensorsNet:
        n_out = data.n_classes**2 * self.n_slots
        difficulty = self.labels.build(self.difficulty, data.n_in, n_out)
        worker = worker_vectors(data.n_workers, EMBEDDING, data.worker_features, active=data.active)
        competence = PairCompetence(worker, self.labels.wrap(nn.Linear, EMBEDDING, n_out))
        net = PairTensorsNet(difficulty, competence, data.n_classes, self.n_slots)
        net.label_size = self.labels.size
        return net


class LabelHeads(nn.Module):
    """A body shared by all label names, followed by a linear head for each."""

    def __init__(self, body: nn.Module, n_names: int, size: int, n_out: int) -> None:
        super().__init__()
        self.body = body
        heads = [nn.Linear(size, n_out) for _ in range(n_names)]
        self.weight = nn.Parameter(torch.stack([head.weight for head in heads]).detach())
        self.bias = nn.Parameter(torch.stack([head.bias for head in heads]).detach())

    def forward(self, x: Tensor) -> Tensor:
        name = x[:, -1].long()
        hidden = self.body(x[:, :-1])
        return torch.einsum("rs,ros->ro", hidden, self.weight[name]) + self.bias[name]


class LabelVectors(nn.Module):
    """A vector for each label name: learned, or a linear function of its features."""

    table: Tensor | None

    def __init__(self, n_names: int, size: int, features: Tensor | None) -> None:
        super().__init__()
        self.register_buffer("table", features)
        self.layer = nn.Embedding(n_names, size) if features is None else None
        self.map = None if features is None else nn.Linear(features.shape[1], size)

    def forward(self, name: Tensor) -> Tensor:
        if self.map is None or self.table is None:
            assert self.layer is not None
            return self.layer(name)
        return self.map(self.table[name])


class WithLabelVectors(nn.Module):
    """Scaled features, with the label name's vector instead of its number."""

    def __init__(self, scaler: nn.Module, vectors: LabelVectors) -> None:
        super().__init__()
        self.scaler, self.vectors = scaler, vectors

    def forward(self, x: Tensor) -> Tensor:
        scaled = self.scaler(x)
        return torch.cat([scaled[..., :-1], self.vectors(scaled[..., -1].long())], dim=-1)


class PairCompetence(nn.Module):
    """Competence of a worker for a label name."""

    def __init__(self, worker: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.worker, self.head = worker, head

    def forward(self, worker: Tensor, label: Tensor) -> Tensor:
        return self.head(torch.cat([self.worker(worker), label], dim=1))


class PairTensorsNet(TensorsNet):
    """LIA's tensors, with competence that also depends on the label name."""

    label_size = 1  # columns for the label name

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        competence = self.competence(worker, x[at, -self.label_size :])
        return self.combined(self.difficulty(x)[at], competence)


def average_by_name(
    table: Tensor, posterior: Tensor, name: Tensor, worker: Tensor, sizes: tuple[int, int]
) -> Tensor:
    """Average the rows' matrices by posterior, (name, worker, truth, label).

    Cells without a row get the average of all workers' rows for the name.
    """
    n_names, n_workers = sizes
    cell = name * n_workers + worker
    total = table.new_zeros(n_names * n_workers, 2, 2).index_add(
        0, cell, table * posterior[:, :, None]
    )
    count = table.new_zeros(n_names * n_workers, 2).index_add(0, cell, posterior)
    total, count = total.reshape(*sizes, 2, 2), count.reshape(*sizes, 2, 1)
    everybody = (total.sum(dim=1, keepdim=True) + 0.5e-6) / (count.sum(dim=1, keepdim=True) + 1e-6)
    return torch.where(count > 1e-6, total / count.clamp_min(1e-6), everybody)
