"""Crowd-Layer: an unconstrained layer per worker on top of the classifier."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crowdwise.annotations import Annotations
from crowdwise.base.params import more_than, one_of
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.objectives import PerLabel
from crowdwise.learn.parts import Noise, NoisePart, ObjectivePart, WorkerTable
from crowdwise.learn.search import Settings
from crowdwise.learn.starting_points import Start
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.modules import MLP, NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import Ints, RandomState

STARTS = (4.0, 1.0)  # to choose from; with the first, workers are nearly always right


@dataclass(eq=False, repr=False)
class FreeLayer(NoisePart):
    """A layer of free weights per worker on the class probabilities, then a softmax over labels.

    Used with :class:`PerLabel`, since the layer is not a table of probabilities.

    Parameters
    ----------
    layer : {"MW", "VW", "VB", "VW-B", "SW"}, default="MW"
        A matrix; a scale per class; a shift per class; both; one scale.
    start : float, default=1
        Initial multiple of the identity for matrices and scales.
    """

    layer: str = "MW"
    start: float = 1.0

    _parameter_constraints = {
        "layer": [one_of("MW", "VW", "VB", "VW-B", "SW")],
        "start": [more_than(0.0)],
    }

    def build(self, data: CrowdData) -> FreeLayerNet:
        sizes = data.n_workers, data.n_classes, self.start
        layer = FreeMatrix(*sizes) if self.layer == "MW" else FreeVector(*sizes, self.layer)
        return FreeLayerNet(layer, data.n_classes)


class CrowdLayer(CrowdClassifier):
    """Learn a classifier under a layer of free weights per worker.

    The class probabilities of the truth model go through worker ``w``'s own layer, and another
    softmax gives the probability of each label. The weights are not probabilities: entries may be
    negative. ``confusion_`` is the layer's effect on a task whose class is certain. Starting at
    the identity, a worker is right with probability ``e / (e + n_classes - 1)``, only 0.23 for
    ten classes, which makes that a poor start. Known truths (``gold``) have no place in such a
    layer; they train the classifier directly, once for each label of their task.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    penalty, prior : float or "auto", default="auto"
        Regularization of the classifier and of the workers' parameters; see
        :class:`crowdwise.learn.CrowdClassifier`.
    layer : {"MW", "VW", "VB", "VW-B", "SW"}, default="MW"
        A matrix; a scale per class; a shift per class; both; one scale.
    start : float or "auto", default="auto"
        Initial multiple of the identity for matrices and scales. With "auto", held-out labels
        choose between 1 and 4; with ``training`` it is 1, as in the paper.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``CrowdLayer.default_training`` if not given. The loss is the mean over
        existing annotations (the authors' code averages over all tasks x workers, so
        its effective learning rate shrinks with sparsity).
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    posterior_, confusion_, worker_accuracy_, history_, search_, net_
        See :class:`crowdwise.learn.CrowdClassifier`. The posterior combines the classifier with
        the evidence of the labels, by ``confusion_``.

    Notes
    -----
    The maths::

        P(w gives i the label l)
            = softmax over l of (W[w] @ truth(x_i))[l], W[w] starts at the identity

    Works when workers are mostly right and there are many labels; the weights are free, so
    fitting is easy.

    Fails when there are many classes, since the identity start hardly favors the right label;
    and when the matrices are to be interpreted: they are not probabilities, and classes may be
    swapped in both parts.

    References
    ----------
    Rodrigues and Pereira (2018). Deep learning from crowds. AAAI.
    doi:10.1609/aaai.v32i1.11506

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(CrowdLayer(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **FreeLayer._parameter_constraints,
        "start": [one_of("auto"), more_than(0.0)],
    }
    recipes = {
        "labelme": {
            "truth": MLP(hidden=(128,), dropout=0.5),
            "training": Training(learning_rate=1e-3, batch_size=64, epochs=50),
        },
    }

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        penalty: float | str = "auto",
        prior: float | str = "auto",
        layer: str = "MW",
        start: float | str = "auto",
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.penalty = penalty
        self.prior = prior
        self.layer = layer
        self.start = start
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return FreeLayer(self.layer, 1.0 if self.start == "auto" else float(self.start))

    def _starts(
        self, data: CrowdData, votes: Annotations, gold: Ints | None
    ) -> list[tuple[Settings, Start]]:
        if self.start != "auto":
            return super()._starts(data, votes, gold)
        starts: list[tuple[Settings, Start]] = []
        for multiple in STARTS:
            one = copy.copy(self)
            one.start = multiple
            starts += [({"start": multiple}, start) for _, start in one._starts(data, votes, gold)]
        return starts

    def _objective(self) -> ObjectivePart:
        return PerLabel()


class FreeMatrix(nn.Module):
    """MW: an unconstrained matrix on the class probabilities."""

    def __init__(self, n_workers: int, n_classes: int, start: float = 1.0) -> None:
        super().__init__()
        self.matrix = WorkerTable(n_workers, start * torch.eye(n_classes))

    def forward(self, probability: Tensor, worker: Tensor) -> Tensor:
        return torch.einsum("r...k,rkl->r...l", probability, self.matrix(worker))


class FreeVector(nn.Module):
    """VW, VB, VW-B and SW: a scale and a shift of the class probabilities."""

    def __init__(self, n_workers: int, n_classes: int, start: float, kind: str) -> None:
        super().__init__()
        width = 1 if kind == "SW" else n_classes
        scaled, shifted = kind in ("VW", "VW-B", "SW"), kind in ("VB", "VW-B")
        self.factor = WorkerTable(n_workers, torch.full((width,), start)) if scaled else None
        self.shift = WorkerTable(n_workers, torch.zeros(width)) if shifted else None

    def forward(self, probability: Tensor, worker: Tensor) -> Tensor:
        extra = probability.ndim - 2  # axes between row and class
        logits = probability
        if self.factor is not None:
            logits = logits * unsqueeze(self.factor(worker), extra)
        return logits if self.shift is None else logits + unsqueeze(self.shift(worker), extra)


class FreeLayerNet(Noise):
    """A layer of free weights on the class probabilities, then a softmax over labels."""

    def __init__(self, layer: nn.Module, n_classes: int) -> None:
        super().__init__()
        self.layer, self.n_classes = layer, n_classes

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Return the layer's effect on a task whose class is certain."""
        certain = torch.eye(self.n_classes, device=x.device, dtype=x.dtype)
        return self.log_classes(self.layer(certain.expand(len(worker), -1, -1), worker))

    def labels(self, log_truth: Tensor, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        return self.log_classes(self.layer(log_truth.exp()[at], worker))


def unsqueeze(rows: Tensor, extra: int) -> Tensor:
    """Insert ``extra`` axes of size one after the first."""
    return rows[(slice(None), *[None] * extra)]
