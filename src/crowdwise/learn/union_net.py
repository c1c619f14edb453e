"""UnionNet: who answers and what, as one draw from the union of all workers' labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from crowdwise.base.params import between
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.objectives import PerLabelLoss
from crowdwise.learn.parts import (
    CrowdNet,
    Noise,
    NoisePart,
    ObjectivePart,
    WorkerTable,
    per_annotation,
    pick,
)
from crowdwise.learn.recipes import MAML
from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.modules import NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import RandomState

NO_SHARE = 100.0  # so far below the others that exp is 0 in single precision


@dataclass(eq=False, repr=False)
class UnionConfusion(NoisePart):
    """One matrix, (worker, label) by truth, whose columns are softmaxes over all workers' labels.

    Parameters
    ----------
    error : float, default=1e-5
        The matrix starts at ``1 - error`` for right pairs and ``error / (n_classes - 1)`` for
        wrong ones.
    """

    error: float = 1e-5

    _parameter_constraints = {"error": [between(0.0, 1.0)]}

    def build(self, data: CrowdData) -> UnionConfusionNet:
        net = UnionConfusionNet(data.n_workers, data.n_classes, self.error)
        with (
            torch.no_grad()
        ):  # workers without labels keep their matrix, but have no share of the union
            net.raw.weight[:-1][~data.active] -= NO_SHARE
        return net


@dataclass(eq=False, repr=False)
class PerPair(ObjectivePart):
    """Likelihood of each pair of worker and label; held-out labels are judged without workers."""

    def build(self, net: CrowdNet, data: CrowdData) -> PerPairLoss:
        return PerPairLoss(net, data)


class UnionNet(CrowdClassifier):
    """Learn a classifier and one matrix over the union of all workers' labels.

    An annotation is a draw of a pair (worker, label): its probability under truth ``k`` is an
    entry of a matrix with a row for every pair, and each *column* is a softmax over the whole
    union. So the matrix also learns how often a worker answers when the truth is ``k``, which
    counts as evidence in ``posterior_``; ``confusion_`` is the matrix normalized within each
    worker. This is the variant that the authors call UnionNet-B.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    error : float, default=1e-5
        The matrix starts at ``1 - error`` for right pairs and ``error / (n_classes - 1)`` for
        wrong ones. These go through the softmax, so at first a worker is right with a probability
        of only about ``e / (e + n_classes - 1)``.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``UnionNet.default_training`` if not given.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    posterior_, confusion_, worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`. ``history_.loss`` is about pairs of worker
        and label, ``history_.held_out`` about labels alone, as for other methods.

    Notes
    -----
    The maths::

        P((w, l) | i)
            = sum over k of truth(x_i)[k] * M[k, (w, l)], M[k] = softmax over all pairs (w, l)

    Works when workers are few and each labels most tasks.

    Fails when workers label by choice or by batch: who labels counts as evidence about the
    truth. With thousands of workers the softmax is over thousands of pairs, and starts nearly
    uniform.

    References
    ----------
    Wei, Xie, Feng, Han and An (2022). Deep learning from multiple noisy annotators as a union.
    IEEE Transactions on Neural Networks and Learning Systems. doi:10.1109/TNNLS.2022.3168696

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(UnionNet(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **UnionConfusion._parameter_constraints,
    }
    recipes = {"maml": MAML}

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        error: float = 1e-5,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.error = error
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return UnionConfusion(self.error)

    def _objective(self) -> ObjectivePart:
        return PerPair()


class UnionConfusionNet(Noise):
    """One matrix, (worker, label) by truth, whose columns are softmaxes over the union."""

    def __init__(self, n_workers: int, n_classes: int, error: float) -> None:
        super().__init__()
        start = torch.full((n_classes, n_classes), error / max(n_classes - 1, 1))
        self.raw = WorkerTable(n_workers, start.fill_diagonal_(1.0 - error))

    def union(self) -> Tensor:
        """Return log P(worker, label | truth), (worker, truth, label).

        The unknown worker in the last row is not part of the union; it answers as often as the
        average worker.
        """
        known = self.raw.weight[:-1]
        column = torch.logsumexp(known, dim=(0, 2))  # (truth,)
        unknown = log_softmax(self.raw.weight[-1:], dim=-1) - math.log(len(known))
        return torch.cat([known - column[None, :, None], unknown])

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Return log P(label | truth, worker): the union within each worker."""
        return log_softmax(self.raw(worker), dim=-1)

    def score(self, x: Tensor, at: Tensor, worker: Tensor, label: Tensor) -> Tensor:
        return pick(self.union()[worker], label)

    def labels(self, log_truth: Tensor, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Return log P(label | features, worker); that a worker answers is evidence too."""
        pairs = torch.logsumexp(log_truth[at][:, :, None] + self.union()[worker], dim=1)
        return log_softmax(pairs, dim=-1)


class PerPairLoss(PerLabelLoss):
    """Likelihood of each pair of worker and label; held-out labels are judged without workers."""

    def loss(self, batch: Batch) -> Tensor:
        return -per_annotation(*self.scores(batch), batch)
