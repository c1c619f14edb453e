"""Further noise parts: initial counts, no noise at all, and workers described by features."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crowdwise.base.params import more_than
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.learn.parts import CrowdNet, Noise, NoisePart, WorkerConfusionNet
from crowdwise.nets.batches import CrowdData, as_shares, label_shares
from crowdwise.nets.modules import MLP


@dataclass(eq=False, repr=False)
class CountedStart(NoisePart):
    """Confusion matrices like :class:`WorkerConfusion`'s, which start from counts.

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
    """Labels that equal the truth."""

    def build(self, data: CrowdData) -> NoNoiseNet:
        return NoNoiseNet(data.n_classes)


class NoNoiseNet(Noise):
    """Labels that equal the truth."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.n_classes = n_classes

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        table = torch.eye(self.n_classes, device=x.device, dtype=x.dtype).log()
        return table.expand(len(worker), -1, -1)

    def labels(self, log_truth: Tensor, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        return log_truth[at]


class WorkerFeatures(nn.Module):
    """A network on given worker features, which also handles new workers."""

    table: Tensor

    def __init__(self, features: Tensor, n_out: int, hidden: tuple[int, ...] = ()) -> None:
        super().__init__()
        average = features.mean(dim=0, keepdim=True)
        self.register_buffer("table", torch.cat([features, average]))
        self.network = MLP(hidden=hidden).build(features.shape[1], n_out)

    def forward(self, worker: Tensor) -> Tensor:
        return self.network(self.table[worker])

    def replace_workers(self, features: Tensor) -> None:
        """Replace the workers it was trained with by others; the unknown one stays."""
        if features.shape[1] != self.table.shape[1]:
            raise AnnotationError(
                f"worker_features have {features.shape[1]} columns.\n"
                f"  expected: the {self.table.shape[1]} columns that the model was learned with"
                "\n  fix:      use the same worker features as for fit"
            )
        self.table = torch.cat([features, self.table[-1:]])


def with_workers(net: CrowdNet, features: Tensor | None, name: str) -> CrowdNet:
    """Return the same network for other workers, described by features."""
    other = copy.deepcopy(net)
    readers = [part for part in other.modules() if isinstance(part, WorkerFeatures)]
    if not readers or features is None:
        raise ParameterError(
            f"This {name} was learned without worker features.\n"
            "  fix:      use a method that reads them (LIA, MaDL, AnnotMix), and give\n"
            "            fit(X, annotations, worker_features=…)"
        )
    for part in readers:
        part.replace_workers(features)
    return other


def count_log_confusion(data: CrowdData, smoothing: float) -> Tensor:
    """Return log P(label | truth) of each worker, with the tasks' shares of labels as truths."""
    shares = label_shares(data)
    label = as_shares(data.label, data.n_classes)
    count = shares.new_full((data.n_workers, data.n_classes, data.n_classes), smoothing)
    pairs = shares[data.task][:, :, None] * (label * data.weight[:, None])[:, None, :]
    count = count.index_add(0, data.worker, pairs)
    return (count / count.sum(dim=-1, keepdim=True)).log()
