"""Max-MIG: classifier and crowd agree as informatively as possible."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import log_softmax

from crowdwise.base.params import more_than, one_of
from crowdwise.errors import ParameterError
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.noise import count_log_confusion
from crowdwise.learn.objectives import PerLabelLoss
from crowdwise.learn.parts import (
    CrowdNet,
    Noise,
    NoisePart,
    ObjectivePart,
    WorkerTable,
    joint,
    pick,
)
from crowdwise.learn.recipes import MAML
from crowdwise.nets.batches import Batch, CrowdData, label_shares
from crowdwise.nets.modules import MLP, NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import RandomState


@dataclass(eq=False, repr=False)
class LabelEvidence(NoisePart):
    """How much each label of a worker supports each truth: weights that start from counts.

    Parameters
    ----------
    smoothing : float, default=0.1
        Added to the counts of label shares from which the weights start.
    """

    smoothing: float = 0.1

    _parameter_constraints = {"smoothing": [more_than(0.0)]}

    def build(self, data: CrowdData) -> LabelEvidenceNet:
        return LabelEvidenceNet(count_log_confusion(data, self.smoothing))


@dataclass(eq=False, repr=False)
class InformationGain(ObjectivePart):
    """A lower bound on the f-mutual information of classifier and labels over a batch.

    Parameters
    ----------
    divergence : {"kl", "pearson", "hellinger", "reverse_kl"}, default="kl"
        The f-divergence.
    prior : {"labels", "uniform"} or array of shape (n_classes,), default="labels"
        The classes' shares: those of the labels, all equal, or known.
    """

    divergence: str = "kl"
    prior: str | ArrayLike = "labels"

    _parameter_constraints = {
        "divergence": [one_of("kl", "pearson", "hellinger", "reverse_kl")],
        "prior": [one_of("labels", "uniform"), "array-like"],
    }

    def build(self, net: CrowdNet, data: CrowdData) -> InformationGainLoss:
        return InformationGainLoss(net, data, self._class_prior(data), self.divergence)

    def _class_prior(self, data: CrowdData) -> Tensor:
        if isinstance(self.prior, str):
            shares = label_shares(data)[data.labeled_tasks].mean(dim=0)
            return shares if self.prior == "labels" else torch.full_like(shares, 1 / len(shares))
        prior = torch.as_tensor(self.prior, dtype=torch.float32, device=data.device)
        if prior.shape != (data.n_classes,) or not (prior > 0).all():
            raise ParameterError(
                f"prior={self.prior!r} does not fit.\n"
                f"  expected: {data.n_classes} positive numbers, one per class"
                "\n  fix:      leave prior out to learn it"
            )
        return prior / prior.sum()


class MaxMIG(CrowdClassifier):
    """Learn a classifier and an aggregator that know as much as possible about each other.

    The classifier ``q`` sees features, the aggregator ``g`` the labels of a task: ``g`` is the
    softmax of ``log prior`` plus one learned weight per worker, truth and given label. Training
    raises a lower bound of the f-mutual information of the two over a batch: the pairs of one
    task should agree more than the pairs of different tasks. Unlike a likelihood, this does not
    require workers to be independent given the truth.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    divergence : {"kl", "pearson", "hellinger", "reverse_kl"}, default="kl"
        The f-divergence. (The paper's total variation has no gradient to follow.)
    prior : {"labels", "uniform"} or array of shape (n_classes,), default="labels"
        The classes' shares: those of the labels, all equal, or known.
    smoothing : float, default=0.1
        Added to the counts of label shares from which the aggregator's weights start.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``MaxMIG.default_training`` if not given. ``batch_size`` counts tasks; the
        work grows with its square.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_tasks, n_classes)
        The combination of classifier and aggregator, ``q * g / prior``.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Softmax over labels of the aggregator's weights, as the authors interpret them. They are
        trained to distinguish truths, not to predict labels.
    worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    Notes
    -----
    The maths::

        aggregator(labels of i)[k]
            proportional to prior[k] * exp(sum over w of weight[w, k, label of w on i])
        R(i, j) = sum over k of classifier(x_i)[k] * aggregator(labels of j)[k] / prior[k]
        raise mean over i of f'(R(i, i)) - mean over i, j of f*(f'(R(i, j)))

    Works when workers copy each other or err together, which a likelihood would count as
    evidence; batches are large, and the class prior is about right.

    Fails when batches are small or contain few classes, which makes the bound noisy. It does not
    model labels, so ``confusion_`` is only an interpretation of its weights.

    The authors' script reports the best epoch on test data; its LabelMe figure (86.4) is
    therefore an upper limit.

    References
    ----------
    Cao, Xu, Kong and Wang (2019). Max-MIG: an information theoretic approach for joint learning
    from crowds. ICLR. doi:10.48550/arXiv.1905.13436

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(MaxMIG(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **LabelEvidence._parameter_constraints,
        **InformationGain._parameter_constraints,
    }
    default_training = Training(learning_rate=1e-2, batch_size=256, epochs=200)
    recipes = {
        "maml": MAML,
        "labelme": {
            "truth": MLP(hidden=(128,), dropout=0.5),
            "prior": "uniform",
            "training": Training(learning_rate=1e-4, batch_size=64, epochs=20),
        },
    }

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        divergence: str = "kl",
        prior: str | ArrayLike = "labels",
        smoothing: float = 0.1,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.divergence = divergence
        self.prior = prior
        self.smoothing = smoothing
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return LabelEvidence(self.smoothing)

    def _objective(self) -> ObjectivePart:
        return InformationGain(self.divergence, self.prior)


class LabelEvidenceNet(Noise):
    """Weights of each label for each truth, close to log P(label | truth)."""

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.raw = WorkerTable(len(start), start.mean(dim=0))  # (worker, truth, label)
        with torch.no_grad():
            self.raw.weight[:-1] = start

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        return log_softmax(self.raw(worker), dim=-1)

    def score(self, x: Tensor, at: Tensor, worker: Tensor, label: Tensor) -> Tensor:
        return pick(self.raw(worker), label)


class InformationGainLoss(PerLabelLoss):
    """Minus the bound on the f-mutual information of classifier and aggregator over a batch."""

    by = "task"
    log_prior: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData, prior: Tensor, divergence: str) -> None:
        super().__init__(net, data)
        self.register_buffer("log_prior", prior.clamp_min(1e-12).log())
        self.divergence = divergence

    def loss(self, batch: Batch) -> Tensor:
        log_truth, score = self.net(batch)
        votes = joint(self.log_prior.expand_as(log_truth), score, batch)
        crowd = log_softmax(votes + self.gold[batch.task], dim=-1)  # (task, truth)
        count = torch.zeros_like(log_truth[:, 0]).index_add(0, batch.at, batch.weight)
        known = (count > 0) | torch.isinf(self.gold[batch.task]).any(dim=-1)
        return -gain(log_truth, crowd, self.log_prior, known.to(log_truth.dtype), self.divergence)


def gain(left: Tensor, right: Tensor, log_prior: Tensor, known: Tensor, divergence: str) -> Tensor:
    """Return the mean of f'(K) over pairs of one task, minus that of f*(f'(K)) over other pairs.

    ``K[i, j] = sum_k left[i, k] right[j, k] / prior[k]``, from the logarithms of the three;
    ``known`` is 1 for tasks that count and 0 for the others.
    """
    tilted = left - log_prior
    same = torch.logsumexp(tilted + right, dim=-1)  # (task,): log of K's diagonal
    other = tilted.exp() @ right.exp().T
    pairs = known[:, None] * known[None, :] * (1.0 - torch.eye(len(known), device=known.device))
    inside, outside = f_terms(same, other.clamp_min(1e-12), divergence)
    n_same, n_other = known.sum().clamp_min(1.0), pairs.sum().clamp_min(1.0)
    return (inside * known).sum() / n_same - (outside * pairs).sum() / n_other


def f_terms(log_same: Tensor, other: Tensor, divergence: str) -> tuple[Tensor, Tensor]:
    """Return f'(K) for K = ``exp(log_same)``, and f*(f'(K)) for K = ``other``."""
    if divergence == "kl":  # f(t) = t log t
        return 1.0 + log_same, other
    if divergence == "pearson":  # f(t) = (t - 1)^2
        return 2.0 * (log_same.exp() - 1.0), other**2 - 1.0
    if divergence == "hellinger":  # f(t) = (1 - sqrt(t))^2
        return 1.0 - (-0.5 * log_same).exp(), other.sqrt() - 1.0
    return -(-log_same).exp(), other.log() - 1.0  # f(t) = -log t
