"""CoNAL: confusions that all workers share, and confusions of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, normalize

from crowdwise.base.params import NUMBER, at_least, between
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.objectives import PerLabelLoss
from crowdwise.learn.parts import CrowdNet, Noise, NoisePart, ObjectivePart, WorkerTable
from crowdwise.learn.recipes import MAML
from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.modules import LINEAR, MLP, NetworkLike, build_network
from crowdwise.nets.training import Training
from crowdwise.typing import Array, Floats, RandomState


@dataclass(eq=False, repr=False)
class CommonConfusion(NoisePart):
    """A layer of free weights that mixes a common matrix with one of each worker's own.

    Used with :class:`PerLabel` or :class:`DistanceBonus`. Adds ``common_confusion_`` and
    ``common_share_``.

    Parameters
    ----------
    task_embedding : MLP and others, default=MLP(hidden=())
        Network from features to the task's embedding.
    embedding_size : int, default=20
        Size of the embeddings of tasks and workers.
    gate : float, optional
        Fixes the share of the common matrix; learned if not given.
    start : float, default=2.0
        Initial multiple of the identity of all matrices.
    """

    task_embedding: NetworkLike = LINEAR
    embedding_size: int = 20
    gate: float | None = None
    start: float = 2.0

    random_per = ("worker",)  # embeddings of workers start at random
    _parameter_constraints = {
        "task_embedding": [MLP, nn.Module, callable],
        "embedding_size": [at_least(1)],
        "gate": [between(0.0, 1.0), None],
        "start": [NUMBER],
    }

    def build(self, data: CrowdData) -> CommonConfusionNet:
        size = self.embedding_size
        task = build_network(self.task_embedding, data.n_in, size) if self.gate is None else None
        sizes = (data.n_workers, data.n_classes, size)
        return CommonConfusionNet(*sizes, task, self.gate, self.start, data.active)


@dataclass(eq=False, repr=False)
class DistanceBonus(ObjectivePart):
    """The likelihood of each label, plus the workers' distance from the common matrix.

    Used with :class:`CommonConfusion`.

    Parameters
    ----------
    penalty : float, default=1e-5
        Reward for the norm of each worker's difference from the common matrix.
    """

    penalty: float = 1e-5

    _parameter_constraints = {"penalty": [at_least(0.0)]}

    def build(self, net: CrowdNet, data: CrowdData) -> DistanceBonusLoss:
        return DistanceBonusLoss(net, data, self.penalty)


class CoNAL(CrowdClassifier):
    """Learn a classifier under noise layers, one of them common to all workers.

    The class probabilities go through a matrix that is a mix of ``g`` parts the common one and
    ``1 - g`` parts the worker's own, then through a softmax. ``g`` is the sigmoid of the cosine
    between embeddings of the task and of the worker, so it lies between 0.27 and 0.73. As in
    Crowd-Layer, the matrices are not probabilities; ``confusion_`` is their effect on a task
    whose class is certain. Known truths train the classifier apart from the layer, as there.

    The authors' 84.06 % on the music data was selected on test labels (an independent port gets
    67.0); LabelMe (87.12, port 88.75) was not. They also restart Adam in each epoch, which is not
    done here.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    task_embedding : MLP and others, default=MLP(hidden=())
        Network from features to the task's embedding. A network stronger than ``truth`` tends to
        explain the classes as noise; the authors have one hidden layer of 128.
    embedding_size : int, default=20
        Size of both embeddings; the authors use 20 on LabelMe and 80 on music.
    gate : float, optional
        Fixes ``g``: 0 leaves only the workers' own matrices (Crowd-Layer with another start), 1
        only the common one. Learned if not given.
    penalty : float, default=1e-5
        Reward, added to the mean loss of a label, for each worker's distance from the common
        matrix (the norm of the difference), which keeps the two kinds apart. It has no upper
        limit, so large values diverge.
    start : float, default=2.0
        Initial multiple of the identity of all matrices.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``CoNAL.default_training`` if not given.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    common_confusion_ : ndarray of shape (n_classes, n_classes)
        The common matrix's effect on each class; the axes are truth, label.
    common_share_ : ndarray of shape (n_workers,)
        Mean of ``g`` over each worker's annotations; over all annotations if there are none.
    posterior_, confusion_, worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    Notes
    -----
    The maths::

        P(w gives i the label l)
            = softmax over l of ((g * common + (1 - g) * own[w]) @ truth(x_i))[l]
        g = sigmoid(cosine(task embedding(x_i), worker embedding[w]))

    Works when workers share confusions, as with classes that look alike to everybody.

    Fails when workers have nothing in common. The matrices are not probabilities, and the reward
    for distance has no upper limit.

    References
    ----------
    Chu, Ma and Wang (2021). Learning from crowds by modeling common confusions. AAAI.
    doi:10.1609/aaai.v35i7.16730

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(CoNAL(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **CommonConfusion._parameter_constraints,
        **DistanceBonus._parameter_constraints,
    }
    default_training = Training(weight_decay={"noise": 1e-3})
    recipes = {"maml": MAML}

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        task_embedding: NetworkLike = LINEAR,
        embedding_size: int = 20,
        gate: float | None = None,
        penalty: float = 1e-5,
        start: float = 2.0,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.task_embedding = task_embedding
        self.embedding_size = embedding_size
        self.gate = gate
        self.penalty = penalty
        self.start = start
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return CommonConfusion(self.task_embedding, self.embedding_size, self.gate, self.start)

    def _objective(self) -> ObjectivePart:
        return DistanceBonus(self.penalty)


class CommonConfusionNet(Noise):
    """A layer of free weights that mixes a common matrix with one of each worker's own."""

    def __init__(
        self,
        n_workers: int,
        n_classes: int,
        size: int,
        task: nn.Module | None,
        gate: float | None,
        start: float,
        active: Tensor | None = None,
    ) -> None:
        super().__init__()
        matrix = start * torch.eye(n_classes)
        self.common = nn.Parameter(matrix.clone())
        self.own = WorkerTable(n_workers, matrix)
        self.task, self.gate = task, gate or 0.0
        if task is not None:
            self.worker = WorkerTable(n_workers, torch.zeros(size))
            self.worker.draw(nn.init.xavier_uniform_, active)

    def share(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Eq. 3: return the share of the common matrix in each row's matrix, (row,)."""
        if self.task is None:
            return torch.full(worker.shape, self.gate, dtype=x.dtype, device=x.device)
        task = normalize(self.task(x), dim=-1)[at]
        return torch.sigmoid((task * normalize(self.worker(worker), dim=-1)).sum(dim=-1))

    def matrix(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Return the free weights of each row, (row, truth, label)."""
        share = self.share(x, at, worker)[:, None, None]
        return share * self.common + (1.0 - share) * self.own(worker)

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Return the layer's effect on a task whose class is certain."""
        return log_softmax(self.matrix(x, at, worker), dim=-1)

    def labels(self, log_truth: Tensor, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Eq. 1: pass class probabilities through the layer, then a softmax."""
        weights = self.matrix(x, at, worker)
        return log_softmax(torch.einsum("rk,rkl->rl", log_truth.exp()[at], weights), dim=-1)

    def describe(self, net: CrowdNet, data: CrowdData, posterior: Floats) -> Mapping[str, Array]:
        total, count = torch.zeros(2, data.n_workers, dtype=torch.float64)
        for batch in data.chunks():
            share = self.share(net.scaler(batch.x), batch.at, batch.worker).double()
            total = total.index_add(0, batch.worker, share)
            count = count.index_add(0, batch.worker, torch.ones_like(share))
        usual = total.sum() / count.sum()
        return {
            "common_confusion_": torch.softmax(self.common, dim=-1).double().numpy(),
            "common_share_": torch.where(count > 0, total / count, usual).numpy(),
        }


class DistanceBonusLoss(PerLabelLoss):
    """Minus the likelihood of each label, minus the workers' distance from the common matrix."""

    def __init__(self, net: CrowdNet, data: CrowdData, penalty: float) -> None:
        super().__init__(net, data)
        self.penalty = penalty

    def loss(self, batch: Batch) -> Tensor:
        noise = self.noise_as(CommonConfusionNet, "CommonConfusion()")
        return super().loss(batch) - self.penalty * distance(noise.own.weight[:-1], noise.common)


def distance(own: Tensor, common: Tensor) -> Tensor:
    """Sum the norm of ``own - common`` over workers."""
    return torch.linalg.vector_norm(own - common, dim=(-2, -1)).sum()
