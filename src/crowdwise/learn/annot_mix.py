"""annot-mix: mixup of annotations, each with its task and its worker."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.stats import beta
from torch import Tensor

from crowdwise.base.params import at_least
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.embedded import EmbeddedConfusion, EmbeddedConfusionNet
from crowdwise.learn.parts import CrowdNet, CrowdObjective, NoisePart, ObjectivePart
from crowdwise.learn.recipes import CAREFUL, MAML
from crowdwise.nets.batches import Batch, CrowdData, as_shares
from crowdwise.nets.modules import LINEAR, NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import RandomState

GRID = 1024  # steps of the quantile table for drawing shares


@dataclass(eq=False, repr=False)
class Mixup(ObjectivePart):
    """Likelihood of mixtures of two annotations: features, workers and labels.

    Used with :class:`EmbeddedConfusion`.

    Parameters
    ----------
    alpha : float, default=1.0
        Shares are drawn from Beta(alpha, alpha): uniform for 1, nearer to 0 or 1 for less, and
        no mixing at all for 0.
    within_task : bool, default=False
        Whether annotations are mixed only with others of the same task in the batch.
    """

    alpha: float = 1.0
    within_task: bool = False

    random_per = ("row", "task", "worker")  # mixtures are drawn for every annotation
    _parameter_constraints = {"alpha": [at_least(0.0)], "within_task": ["boolean"]}

    def build(self, net: CrowdNet, data: CrowdData) -> CrowdObjective:
        if not self.alpha:
            return CrowdObjective(net, data)
        return MixupLoss(net, data, self.alpha, within_task=self.within_task)


class AnnotMix(CrowdClassifier):
    """Learn a classifier, and confusion by task and worker, from mixtures of annotations.

    In training, each annotation is mixed with another one: their features, their workers'
    embeddings and their labels, all with the same shares. Mixtures are hard to memorize, and so
    are wrong labels. The noise model is MaDL's, without outer product and weights.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    task : MLP and others or None, default=MLP(hidden=())
        Network from features to the task's embedding; None if confusion depends on the worker
        alone. A network stronger than ``truth`` tends to explain the classes as noise.
    alpha : float, default=1.0
        Shares are drawn from Beta(alpha, alpha): uniform for 1, nearer to 0 or 1 for less, and
        no mixing at all for 0.
    within_task : bool, default=False
        Whether annotations are mixed only with others of the same task in the batch, so that
        workers are mixed but not features.
    embedding_size : int, default=16
        Size of both embeddings.
    accuracy : float, default=0.9
        Initial probability that a worker is right (the paper's eta).
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``AnnotMix.default_training`` if not given.
    random_state : int or RandomState, optional
        Random seed of initialization, mixtures, batches, dropout and held-out labels.

    Attributes
    ----------
    posterior_, confusion_, worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`. Annotations of tasks with a gold label are
        not mixed. Given ``worker_features``, embeddings are a function of them.

    Notes
    -----
    The maths::

        x = s x_i + (1 - s) x_j, e
            = s e_w + (1 - s) e_v, target = s label_i + (1 - s) label_j, s ~ Beta(alpha, alpha)
        loss = cross-entropy of target and sum over k of truth(x)[k] * confusion(x, e)[k]

    Works when a network would otherwise memorize wrong labels, and mixing features makes sense:
    images, smooth features.

    Fails when features cannot be mixed (codes, counts), and when there are too few labels for
    confusion by task and worker.

    The best average rank over eleven data sets is the authors' claim; we know of no independent
    reproduction.

    References
    ----------
    Herde, Lührs, Huseljic and Sick (2024). Annot-mix: learning with noisy class labels from
    multiple annotators via a mixup extension. ECAI. doi:10.3233/FAIA240829

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(AnnotMix(random_state=0).fit(X, votes).score(X, truth) > 0.85)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **EmbeddedConfusion._parameter_constraints,
        **Mixup._parameter_constraints,
    }
    default_training = CAREFUL
    recipes = {"maml": MAML}

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        task: NetworkLike | None = LINEAR,
        alpha: float = 1.0,
        within_task: bool = False,
        embedding_size: int = 16,
        accuracy: float = 0.9,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.task = task
        self.alpha = alpha
        self.within_task = within_task
        self.embedding_size = embedding_size
        self.accuracy = accuracy
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return EmbeddedConfusion(
            task=self.task,
            product=False,
            embedding_size=self.embedding_size,
            accuracy=self.accuracy,
        )

    def _objective(self) -> ObjectivePart:
        return Mixup(self.alpha, self.within_task)


class MixupLoss(CrowdObjective):
    """Likelihood of mixtures of two annotations."""

    quantiles: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData, alpha: float, *, within_task: bool) -> None:
        super().__init__(net, data)
        steps = torch.linspace(0.0, 1.0, GRID + 1, dtype=torch.float64)
        table = torch.as_tensor(beta.ppf(steps.numpy(), alpha, alpha), dtype=torch.float32)
        self.register_buffer("quantiles", table)
        self.within_task = within_task

    def loss(self, batch: Batch) -> Tensor:
        known = torch.isinf(self.gold[batch.task]).any(dim=-1)[batch.at]
        share = torch.where(known, 1.0, self.shares(len(batch.at)))
        return self.mixture(batch, share, self.partners(batch.at))

    def shares(self, n: int) -> Tensor:
        """Draw from Beta(alpha, alpha), by a table of its quantiles."""
        place = torch.rand(n, device=self.quantiles.device) * GRID
        low = place.long().clamp(0, GRID - 1)
        return torch.lerp(self.quantiles[low], self.quantiles[low + 1], place - low)

    def partners(self, at: Tensor) -> Tensor:
        """Pair each row with a random other row, of all rows or of its task."""
        draw = torch.rand(len(at), dtype=torch.float64, device=at.device)
        if not self.within_task:
            return torch.argsort(draw)
        place = torch.argsort(torch.argsort(at, stable=True))
        return torch.argsort(at + draw)[place]

    def mixture(self, batch: Batch, share: Tensor, partner: Tensor) -> Tensor:
        """Return minus the log-likelihood of rows mixed with their partners, per annotation."""

        def mix(rows: Tensor) -> Tensor:
            part = share.to(rows.dtype).reshape(-1, *[1] * (rows.ndim - 1))
            return part * rows + (1.0 - part) * rows[partner]

        x = self.net.scaler(mix(batch.x[batch.at]))
        noise = self.noise_as(EmbeddedConfusionNet, "EmbeddedConfusion()")
        log_truth = torch.log_softmax(self.net.truth(x), dim=-1) + self.gold[batch.task][batch.at]
        task = None if noise.task is None else noise.task(x)
        table = noise.table(task, mix(noise.worker(batch.worker)))  # (row, truth, label)
        log_labels = torch.logsumexp(log_truth[:, :, None] + table, dim=1)
        weight, label = mix(batch.weight), mix(as_shares(batch.label, log_truth.shape[-1]))
        return -((label * log_labels).sum(dim=-1) * weight).sum() / weight.sum().clamp_min(1e-12)
