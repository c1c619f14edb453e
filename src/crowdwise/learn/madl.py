"""MaDL: confusion by task and worker from embeddings; similar workers share their weight."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crowdwise.base.params import more_than
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.embedded import EmbeddedConfusion, EmbeddedConfusionNet
from crowdwise.learn.parts import (
    CrowdNet,
    CrowdObjective,
    NoisePart,
    ObjectivePart,
    PerAnnotation,
    total,
)
from crowdwise.learn.recipes import CAREFUL, MAML
from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.modules import LINEAR, NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import Array, RandomState

CLOSE = 0.1  # workers start close together: different ones move apart, copies do not


@dataclass(eq=False, repr=False)
class SharedWeight(ObjectivePart):
    """The likelihood of each annotation, with a weight that similar workers share.

    Used with :class:`EmbeddedConfusion`. Adds ``worker_weight_``.

    Parameters
    ----------
    gamma_shape, gamma_rate : float, default=1.25 and 0.25
        The Gamma prior of ``gamma``, the rate at which similarity falls with distance.
    """

    gamma_shape: float = 1.25
    gamma_rate: float = 0.25

    _parameter_constraints = {
        "gamma_shape": [more_than(1.0)],
        "gamma_rate": [more_than(0.0)],
    }

    def build(self, net: CrowdNet, data: CrowdData) -> SharedWeightLoss:
        return SharedWeightLoss(net, data, self.gamma_shape, self.gamma_rate)


class MaDL(CrowdClassifier):
    """Learn a classifier, embeddings of tasks and workers, and weights of the workers.

    Each pair of task and worker has its own confusion matrix, computed from an embedding of
    each. Workers whose embeddings are close together are treated as copies: a worker has the
    weight ``1 / sum_v exp(-gamma * |e_w - e_v|^2)`` in the likelihood, scaled to a mean of 1, and
    ``gamma`` is learned under a Gamma prior.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    confusion : {"full", "diagonal", "isotropic"}, default="full"
        Free rows; an accuracy per class and even errors; one accuracy and even errors.
    task : MLP and others or None, default=MLP(hidden=())
        Network from features to the task's embedding; None if confusion depends on the worker
        alone. A network stronger than ``truth`` tends to explain the classes as noise.
    product : bool, default=True
        Whether to use the outer product of the embeddings.
    weigh : bool, default=True
        Whether close workers share their weight; otherwise all annotations count equally. The
        distances between all pairs of workers are computed in every step.
    embedding_size : int, default=16
        Size of both embeddings.
    accuracy : float, default=0.8
        Initial probability that a worker is right (the paper's eta).
    gamma_shape, gamma_rate : float, default=1.25 and 0.25
        The Gamma prior of ``gamma``, which starts at its mode. The prior counts once in the
        likelihood of all annotations; the authors' code adds it to the *mean* loss, which makes
        it stronger by a factor of the annotations in a batch.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``MaDL.default_training`` if not given.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    worker_weight_ : ndarray of shape (n_workers,)
        Weight of each worker's annotations.
    embedding_ : ndarray of shape (n_workers, embedding_size)
        Embedding of each worker.
    posterior_, confusion_, worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`. With ``worker_features``, embeddings are a
        function of these, and predictions can be made for new workers.

    Notes
    -----
    The maths::

        P(w gives i the label l)
            = sum over k of truth(x_i)[k] * confusion(embedding of x_i, embedding of w)[k, l]
        weight[w] = 1 / sum over v of exp(-gamma * |e_w - e_v| ** 2), scaled to a mean of 1

    Works when workers form groups that label alike, and there are many labels; features of
    workers help.

    Fails when there are few labels: confusion by task can explain the classes themselves as
    noise, so keep its network weaker than the classifier. Results vary between seeds.

    References
    ----------
    Herde, Huseljic and Sick (2023). Multi-annotator deep learning: a probabilistic framework for
    classification. Transactions on Machine Learning Research. doi:10.48550/arXiv.2304.02539

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(MaDL(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **EmbeddedConfusion._parameter_constraints,
        **SharedWeight._parameter_constraints,
        "weigh": ["boolean"],
    }
    default_training = CAREFUL
    recipes = {"maml": MAML}

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        confusion: str = "full",
        task: NetworkLike | None = LINEAR,
        product: bool = True,
        weigh: bool = True,
        embedding_size: int = 16,
        accuracy: float = 0.8,
        gamma_shape: float = 1.25,
        gamma_rate: float = 0.25,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.confusion = confusion
        self.task = task
        self.product = product
        self.weigh = weigh
        self.embedding_size = embedding_size
        self.accuracy = accuracy
        self.gamma_shape = gamma_shape
        self.gamma_rate = gamma_rate
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return EmbeddedConfusion(
            self.confusion, self.task, self.product, self.embedding_size, self.accuracy, CLOSE
        )

    def _objective(self) -> ObjectivePart:
        return SharedWeight(self.gamma_shape, self.gamma_rate) if self.weigh else EqualWeight()


@dataclass(eq=False, repr=False)
class EqualWeight(PerAnnotation):
    """:class:`PerAnnotation`, which reports that every worker has weight 1."""

    def build(self, net: CrowdNet, data: CrowdData) -> EqualWeightLoss:
        return EqualWeightLoss(net, data)


class EqualWeightLoss(CrowdObjective):
    """Minus the likelihood of each annotation."""

    active: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData) -> None:
        super().__init__(net, data)
        self.n_workers = data.n_workers
        self.register_buffer("active", data.active)

    def worker_weight(self) -> Tensor:
        """Return the weight of each worker, 1 on average; the unknown worker has weight 1."""
        return torch.ones(self.n_workers + 1)

    def describe(self) -> Mapping[str, Array]:
        return {"worker_weight_": self.worker_weight()[:-1].double().numpy()}


class SharedWeightLoss(EqualWeightLoss):
    """Minus the likelihood of each annotation, with a weight that similar workers share."""

    def __init__(self, net: CrowdNet, data: CrowdData, shape: float, rate: float) -> None:
        super().__init__(net, data)
        self.shape, self.rate = shape, rate
        self.total = float(data.weight.sum())
        self.log_gamma = nn.Parameter(torch.tensor(math.log((shape - 1.0) / rate)))

    def loss(self, batch: Batch) -> Tensor:
        log_truth, score = self.scores(batch)
        evidence = torch.logsumexp(log_truth[batch.at] + score, dim=-1)  # (row,)
        weight = batch.weight * self.worker_weight()[batch.worker]
        prior = log_gamma_density(self.log_gamma, self.shape, self.rate) / self.total
        return -(evidence * weight).sum() / total(batch) - prior

    def worker_weight(self) -> Tensor:
        noise = self.noise_as(EmbeddedConfusionNet, "EmbeddedConfusion()")
        vector = noise.worker(torch.arange(self.n_workers, device=self.gold.device)).detach()
        share = shared_weight(vector, self.log_gamma.exp(), self.active)
        return torch.cat([share, torch.ones_like(share[:1])])


def shared_weight(vector: Tensor, gamma: Tensor, active: Tensor) -> Tensor:
    """Return eqs. 21 to 23: one over how crowded each vector's place is, with a mean of 1.

    Only workers with labels are counted and averaged over.
    """
    square = (vector**2).sum(dim=-1)
    distance = square[:, None] + square[None, :] - 2.0 * vector @ vector.T
    crowded = torch.exp(-gamma * distance.clamp_min(0.0)) * active
    weight = 1.0 / crowded.sum(dim=-1)
    return weight * (active.sum() / (weight * active).sum())


def log_gamma_density(log_value: Tensor, shape: float, rate: float) -> Tensor:
    """Return the log of the Gamma density at ``exp(log_value)``."""
    constant = shape * math.log(rate) - math.lgamma(shape)
    return constant + (shape - 1.0) * log_value - rate * log_value.exp()
