"""TraceReg: SpeeLFC's likelihood with a penalty on trusting the workers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from crowdwise.base.params import at_least
from crowdwise.learn.crowd_classifier import CrowdClassifier
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
from crowdwise.nets.modules import NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import RandomState


@dataclass(eq=False, repr=False)
class TracePenalty(ObjectivePart):
    """The likelihood of each annotation, minus the mean trace of the confusion matrices.

    Used with :class:`WorkerConfusion`.

    Parameters
    ----------
    penalty : float, default=0.01
        Weight of the mean trace relative to the mean loss of a label.
    """

    penalty: float = 0.01

    _parameter_constraints = {"penalty": [at_least(0.0)]}

    def build(self, net: CrowdNet, data: CrowdData) -> TracePenaltyLoss:
        return TracePenaltyLoss(net, data, self.penalty)


class TraceReg(CrowdClassifier):
    """Learn a classifier and the noisiest confusion matrices that explain the labels.

    The likelihood is SpeeLFC's; the loss also has ``trace`` times the mean trace of
    ``confusion_``. Noise can be moved between classifier and confusion without changing the
    likelihood: a small trace puts the noise into the workers and leaves the classifier sure.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    penalty, prior : float or "auto", default="auto"
        Regularization of the classifier and of the workers' parameters; see
        :class:`crowdwise.learn.CrowdClassifier`.
    trace : float, default=0.01
        Weight of the mean trace relative to the mean loss of a label; 0 is SpeeLFC. Too large a
        weight makes workers look worse than they are.
    diagonal, off_diagonal : float, default=1.0 and -5.0
        Initial values of the free matrices: at first, a worker is right with
        probability ``1 / (1 + (n_classes - 1) * exp(off_diagonal - diagonal))``, above 0.9 up to
        45 classes.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``TraceReg.default_training`` if not given.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    posterior_, confusion_, worker_accuracy_, history_, search_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    Notes
    -----
    The maths::

        loss = SpeeLFC's + trace * mean over w of trace(confusion[w])

    Works when the average worker's matrix has a dominant diagonal: the weight then finds the
    right split between classifier and workers.

    Fails when the weight is large: workers look worse than they are, and the classifier becomes
    overconfident.

    References
    ----------
    Tanno, Saeedi, Sankaranarayanan, Alexander and Silberman (2019). Learning from noisy labels
    by regularized estimation of annotator confusion. CVPR. doi:10.1109/CVPR.2019.01150

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(TraceReg(random_state=0).fit(X, votes).score(X, truth) > 0.8)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        "trace": TracePenalty._parameter_constraints["penalty"],
        **WorkerConfusion._parameter_constraints,
    }
    recipes = {"maml": MAML}

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        penalty: float | str = "auto",
        prior: float | str = "auto",
        trace: float = 0.01,
        diagonal: float = 1.0,
        off_diagonal: float = -5.0,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.penalty = penalty
        self.prior = prior
        self.trace = trace
        self.diagonal = diagonal
        self.off_diagonal = off_diagonal
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return WorkerConfusion(self.diagonal, self.off_diagonal)

    def _objective(self) -> ObjectivePart:
        return TracePenalty(self.trace)


class TracePenaltyLoss(CrowdObjective):
    """Minus the likelihood of each annotation, plus the mean trace of the confusion matrices."""

    active: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData, penalty: float) -> None:
        super().__init__(net, data)
        self.penalty = penalty
        self.register_buffer("active", data.active)

    def loss(self, batch: Batch) -> Tensor:
        noise = self.noise_as(WorkerConfusionNet, "WorkerConfusion()")
        return super().loss(batch) + self.penalty * mean_trace(noise.raw.weight[:-1], self.active)


def mean_trace(raw: Tensor, active: Tensor) -> Tensor:
    """Return the mean over active workers of the trace of their confusion matrices."""
    table = torch.softmax(raw, dim=-1)  # (worker, truth, label)
    trace = table.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    return (trace * active).sum() / active.sum()
