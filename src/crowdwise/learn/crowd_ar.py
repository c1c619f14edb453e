"""CrowdAR: the reliability of each annotation decides how far it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from crowdwise.base.params import between
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.crowd_layer import FreeLayerNet, FreeMatrix
from crowdwise.learn.objectives import PerLabelLoss
from crowdwise.learn.parts import CrowdNet, NoisePart, ObjectivePart, WorkerTable, grid, total
from crowdwise.learn.recipes import MAML
from crowdwise.nets.batches import Batch, CrowdData, as_shares
from crowdwise.nets.modules import MLP, NetworkLike, build_network
from crowdwise.nets.training import Training
from crowdwise.typing import Array, Floats, RandomState

DIFFICULTY = MLP(hidden=(128,), activation="sigmoid")


@dataclass(eq=False, repr=False)
class ReliableLayer(NoisePart):
    """Crowd-Layer's matrices, and the reliability of each annotation.

    Used with :class:`Reliability`. Adds ``expertise_`` and ``difficulty_``.

    Parameters
    ----------
    difficulty : MLP and others, default=MLP(hidden=(128,), activation="sigmoid")
        Network from features to the difficulty of each class.
    """

    difficulty: NetworkLike = DIFFICULTY

    random_per = ("worker",)  # expertise starts at random
    _parameter_constraints = {"difficulty": [MLP, nn.Module, callable]}

    def build(self, data: CrowdData) -> ReliableLayerNet:
        difficulty = build_network(self.difficulty, data.n_in, data.n_classes)
        return ReliableLayerNet(data.n_workers, data.n_classes, difficulty, data.active)


@dataclass(eq=False, repr=False)
class Reliability(ObjectivePart):
    """Labels believed as far as they are reliable, and reliability by the classifier's guess.

    Used with :class:`ReliableLayer`.

    Parameters
    ----------
    trust : float, default=0.9
        Share of the labels in the loss; the rest is agreement with the classifier's guess.
    """

    trust: float = 0.9

    _parameter_constraints = {"trust": [between(0.0, 1.0)]}

    def build(self, net: CrowdNet, data: CrowdData) -> ReliabilityLoss:
        return ReliabilityLoss(net, data, self.trust)


class CrowdAR(CrowdClassifier):
    """Learn a classifier, a layer per worker and the reliability of every annotation.

    An annotation is reliable with probability ``sigmoid(w . ((e - d) * q) + b)``: the worker's
    expertise ``e`` minus the task's difficulty ``d``, class by class, weighted by the class
    probabilities ``q`` and by ``w >= 0``. With ``m`` for this, Crowd-Layer's matrices are fitted
    to ``m`` parts of the label and ``1 - m`` parts of the uniform distribution, and ``m`` is
    fitted to whether the label is the classifier's best guess, or the truth if it is known.
    Known truths also train the classifier, once for each label of their task.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    difficulty : MLP and others, default=MLP(hidden=(128,), activation="sigmoid")
        Network from features to one difficulty per class, before a sigmoid.
    trust : float, default=0.9
        Weight of the labels' loss; the rest is the weight of the reliability's loss. With 1,
        nothing ties reliability to the classifier's guesses.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``CrowdAR.default_training`` if not given.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    expertise_ : ndarray of shape (n_workers, n_classes)
        Expertise of each worker in each class, between 0 and 1.
    difficulty_ : ndarray of shape (n_tasks,)
        Difficulty of each training task, averaged over classes by ``posterior_``, between 0
        and 1. Only the difference from expertise is meaningful.
    posterior_, confusion_, worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`. ``predict_worker_accuracy`` is the
        reliability; ``confusion_`` is the layers' effect on a task whose class is certain.

    Notes
    -----
    The maths::

        reliability(i, w)
            = sigmoid(weight . ((expertise[w] - difficulty(x_i)) * truth(x_i)) + bias)
        target of an annotation = reliability * label + (1 - reliability) * uniform

    Works when errors depend on task and worker together, and the classifier's guesses are
    good early on.

    Fails when the classifier is wrong early: its guesses teach reliability, which reduces the
    weight of the labels that would correct it.

    The weights ``w`` are a softplus of free ones, while the authors clip them after each step.
    A task's difficulty is a function of its features, not of a layer of the classifier.

    References
    ----------
    Cao, Chen, Huang, Shen and Huang (2023). Learning from crowds with annotation reliability.
    SIGIR. doi:10.1145/3539618.3592007

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(CrowdAR(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **ReliableLayer._parameter_constraints,
        **Reliability._parameter_constraints,
    }
    recipes = {"maml": MAML}

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        difficulty: NetworkLike = DIFFICULTY,
        trust: float = 0.9,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.difficulty = difficulty
        self.trust = trust
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return ReliableLayer(self.difficulty)

    def _objective(self) -> ObjectivePart:
        return Reliability(self.trust)


class ReliableLayerNet(FreeLayerNet):
    """Crowd-Layer's matrices, and the reliability of each annotation."""

    def __init__(
        self,
        n_workers: int,
        n_classes: int,
        difficulty: nn.Module,
        active: Tensor | None = None,
    ) -> None:
        super().__init__(FreeMatrix(n_workers, n_classes), n_classes)
        self.expertise = WorkerTable(n_workers, torch.zeros(n_classes))
        self.expertise.draw(nn.init.xavier_normal_, active)
        self.difficulty = difficulty
        self.weight = nn.Parameter(torch.full((n_classes,), 0.5))
        self.bias = nn.Parameter(torch.zeros(()))

    def reliability(self, truth: Tensor, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Eqs. 1 and 2: return the log-odds that each row's label is right, (row,)."""
        ahead = torch.sigmoid(self.expertise(worker)) - torch.sigmoid(self.difficulty(x))[at]
        return (ahead * truth[at] * softplus(self.weight)).sum(dim=-1) + self.bias

    def accuracy(self, log_truth: Tensor, x: Tensor, workers: Tensor) -> Tensor:
        logit = self.reliability(log_truth.exp(), x, *grid(len(x), workers))
        return torch.sigmoid(logit).reshape(len(x), len(workers))

    def describe(self, net: CrowdNet, data: CrowdData, posterior: Floats) -> Mapping[str, Array]:
        logit = [self.difficulty(net.scaler(batch.x)) for batch in data.chunks()]
        hard = torch.sigmoid(torch.cat(logit)).double().numpy()
        return {
            "expertise_": torch.sigmoid(self.expertise.weight[:-1]).double().numpy(),
            "difficulty_": (hard * posterior).sum(axis=1),
        }


class ReliabilityLoss(PerLabelLoss):
    """Labels believed as far as they are reliable, and reliability by the classifier's guess."""

    def __init__(self, net: CrowdNet, data: CrowdData, trust: float) -> None:
        super().__init__(net, data)
        self.trust = trust

    def loss(self, batch: Batch) -> Tensor:
        """Return eq. 5 per annotation, plus the loss of known truths."""
        x, noise = self.net.scaler(batch.x), self.noise_as(ReliableLayerNet, "ReliableLayer()")
        log_truth = torch.log_softmax(self.net.truth(x), dim=-1)
        log_labels = noise.labels(log_truth, x, batch.at, batch.worker)
        logit = noise.reliability(log_truth.exp(), x, batch.at, batch.worker)
        share = as_shares(batch.label, log_truth.shape[-1]).to(log_truth.dtype)
        guess = (log_truth + self.gold[batch.task]).argmax(dim=-1)[batch.at]  # (row,)
        losses = self.trust * soft_loss(log_labels, share, torch.sigmoid(logit))
        losses = losses + (1.0 - self.trust) * guess_loss(logit, share, guess)
        return (losses * batch.weight).sum() / total(batch) + self.gold_loss(log_truth, batch)


def soft_loss(log_labels: Tensor, share: Tensor, reliable: Tensor) -> Tensor:
    """Eqs. 3 and 4: cross-entropy with a label that is uniform as far as it is unreliable."""
    target = reliable[:, None] * share + (1.0 - reliable[:, None]) / share.shape[-1]
    return -(target * log_labels).sum(dim=-1)


def guess_loss(logit: Tensor, share: Tensor, guess: Tensor) -> Tensor:
    """Cross-entropy of the reliability with whether the label is the guess."""
    agrees = share.gather(1, guess[:, None])[:, 0]
    return -(agrees * logsigmoid(logit) + (1.0 - agrees) * logsigmoid(-logit))
