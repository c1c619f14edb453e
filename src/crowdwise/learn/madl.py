"""MaDL: confusion by task and worker from embeddings; workers who copy share their weight."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from crowdwise.base.learner import LearnerTraits
from crowdwise.base.params import at_least, more_than, one_of
from crowdwise.errors import ParameterError
from crowdwise.learn._base import CrowdClassifier
from crowdwise.learn._recipes import CAREFUL, MAML
from crowdwise.learn.embedded import EmbeddedConfusion, worker_vectors
from crowdwise.learn.noise import Noise
from crowdwise.learn.objectives import CrowdNet, CrowdObjective, PerAnnotation, total
from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.modules import MLP, build_truth
from crowdwise.nets.training import Training
from crowdwise.typing import Floats

CLOSE = 0.1  # workers start as neighbours: those who differ move apart, copies do not


class MaDL(CrowdClassifier):
    """Learn a classifier, embeddings of tasks and workers, and whom to count how much.

    Each task and worker have a confusion matrix of their own, computed from an embedding of
    each. Workers whose embeddings lie close together are taken for copies: a worker weighs
    ``1 / sum_v exp(-gamma * |e_w - e_v|^2)`` in the likelihood, scaled to a mean of 1, and
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
        Whether the outer product of the embeddings takes part.
    weigh : bool, default=True
        Whether close workers share their weight; else each annotation counts alike. The
        distances between all pairs of workers are computed in every step.
    embedding_size : int, default=16
        Size of both embeddings.
    accuracy : float, default=0.8
        How often a worker is right before anything is learned (the paper's eta).
    gamma_shape, gamma_rate : float, default=1.25 and 0.25
        The Gamma prior of ``gamma``, which starts at its mode. The prior counts once in the
        likelihood of all annotations; the authors' code adds it to the *mean* loss, which makes
        it as many times stronger as there are annotations in a batch.
    scale : bool, default=True
        Whether to standardise features with the mean and deviation of the training rows.
    training : Training, optional
        How to train; ``MaDL.default_training`` if not given.
    random_state : int or RandomState, optional
        Decides starts, batches, dropout and held-out labels.

    Attributes
    ----------
    worker_weight_ : ndarray of shape (n_workers,)
        How much each worker's annotations count.
    embedding_ : ndarray of shape (n_workers, embedding_size)
        Where each worker lies.
    posterior_, confusion_, worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`. Given ``worker_features``, embeddings are a
        function of them and new workers can be predicted for.

    Notes
    -----
    The maths::

        P(w gives i the label l)
            = sum over k of truth(x_i)[k] * confusion(embedding of x_i, embedding of w)[k, l]
        weight[w] = 1 / sum over v of exp(-gamma * |e_w - e_v| ** 2), scaled to a mean of 1

    Works when workers come in groups that label alike, and labels are many; features of workers
    help.

    Fails when labels are few: confusion by task can explain the classes themselves as noise, so
    keep its network weaker than the classifier. Seeds differ much.

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

    traits = LearnerTraits(luck=("worker",))  # embeddings of workers start at random
    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        "confusion": [one_of("full", "diagonal", "isotropic")],
        "task": [MLP, nn.Module, callable, None],
        "product": ["boolean"],
        "weigh": ["boolean"],
        "embedding_size": [at_least(1)],
        "accuracy": [more_than(0.0)],
        "gamma_shape": [more_than(1.0)],
        "gamma_rate": [more_than(0.0)],
    }
    default_training = CAREFUL
    recipes = {"maml": MAML}

    def __init__(
        self,
        *,
        truth: Any = "linear",
        confusion: str = "full",
        task: Any = MLP(hidden=()),  # noqa: B008  never changed
        product: bool = True,
        weigh: bool = True,
        embedding_size: int = 16,
        accuracy: float = 0.8,
        gamma_shape: float = 1.25,
        gamma_rate: float = 0.25,
        scale: bool = True,
        training: Training | None = None,
        random_state: Any = None,
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

    def _noise(self, data: CrowdData, n_in: int | None) -> Noise:
        refuse_certainty(self.accuracy)
        size = self.embedding_size
        return EmbeddedConfusion(
            worker_vectors(data.n_workers, size, self.worker_features_, CLOSE),
            None if self.task is None else build_truth(self.task, n_in, size),
            size,
            data.n_classes,
            kind=self.confusion,
            product=self.product,
            accuracy=self.accuracy,
        )

    def _objective(self, net: CrowdNet, data: CrowdData) -> CrowdObjective:
        if not self.weigh:
            return PerAnnotation(net, data)
        return Weighed(net, data, self.gamma_shape, self.gamma_rate)

    @torch.no_grad()
    def _describe_noise(self, data: CrowdData) -> None:
        noise: Any = self.net_.noise
        everyone = torch.arange(len(self.workers_))
        self.embedding_: Floats = noise.worker(everyone).double().numpy()
        weight = torch.ones(len(everyone))
        if isinstance(self._objective_, Weighed):
            weight = self._objective_.worker_weight()[:-1]
        self.worker_weight_: Floats = weight.double().numpy()


class Weighed(PerAnnotation):
    """The likelihood of each annotation, where workers who are alike share their weight."""

    def __init__(self, net: CrowdNet, data: CrowdData, shape: float, rate: float) -> None:
        super().__init__(net, data)
        self.shape, self.rate = shape, rate
        self.n_workers, self.total = data.n_workers, float(data.weight.sum())
        self.log_gamma = nn.Parameter(torch.tensor(math.log((shape - 1.0) / rate)))

    def loss(self, batch: Batch) -> Tensor:
        log_truth, score = self.scores(batch)
        evidence = torch.logsumexp(log_truth[batch.at] + score, dim=-1)  # (row,)
        weight = batch.weight * self.worker_weight()[batch.worker]
        prior = log_gamma_density(self.log_gamma, self.shape, self.rate) / self.total
        return -(evidence * weight).sum() / total(batch) - prior

    def worker_weight(self) -> Tensor:
        """How much each worker counts, 1 on average; the unknown worker counts 1."""
        noise: Any = self.net.noise
        vector = noise.worker(torch.arange(self.n_workers, device=self.gold.device)).detach()
        share = shared_weight(vector, self.log_gamma.exp())
        return torch.cat([share, torch.ones_like(share[:1])])


def shared_weight(vector: Tensor, gamma: Tensor) -> Tensor:
    """Eqs. 21 to 23: one over how crowded each vector's place is, with a mean of 1."""
    square = (vector**2).sum(dim=-1)
    distance = square[:, None] + square[None, :] - 2.0 * vector @ vector.T
    weight = 1.0 / torch.exp(-gamma * distance.clamp_min(0.0)).sum(dim=-1)
    return weight / weight.mean()


def log_gamma_density(log_value: Tensor, shape: float, rate: float) -> Tensor:
    """Log of the Gamma density at ``exp(log_value)``."""
    constant = shape * math.log(rate) - math.lgamma(shape)
    return constant + (shape - 1.0) * log_value - rate * log_value.exp()


def refuse_certainty(accuracy: float) -> None:
    """A prior accuracy is a probability, and neither 0 nor 1."""
    if not accuracy < 1.0:
        raise ParameterError(f"accuracy={accuracy} is too large.\n  expected: less than 1")
