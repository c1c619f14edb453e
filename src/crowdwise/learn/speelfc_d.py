"""SpeeLFC-D: worker skill times task ease decides how often a label is right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from crowdwise.base.params import at_least, more_than
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.parts import (
    CrowdNet,
    Noise,
    NoisePart,
    ObjectivePart,
    PerAnnotation,
    WorkerTable,
)
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.modules import MLP, NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import Array, Floats, RandomState

EASE = MLP(hidden=(32,), dropout=0.5)


@dataclass(eq=False, repr=False)
class SkillByEase(NoisePart):
    """Accuracy from a worker's skill times a task's ease (SpeeLFC-D eqs. 13 to 15).

    Errors are spread evenly over the other classes. Adds ``skills_`` and ``difficulty_``.

    Parameters
    ----------
    ease : MLP, default=MLP(hidden=(32,), dropout=0.5)
        The network g from features to one number.
    skill : float, default=0.028
        Initial skill of every worker; with g at 0, the accuracy is then 0.80.
    least_ease, ease_range : float, default=0.001 and 100
        ``ease(x) = least_ease + ease_range * sigmoid(g(x))``. Skill and ease share a scale:
        only their product is identified.
    """

    ease: MLP | None = None
    skill: float = 0.028
    least_ease: float = 0.001
    ease_range: float = 100.0

    random_per = ("task",)  # dropout in the network of ease
    _parameter_constraints = {
        "ease": [MLP, None],
        "skill": [more_than(0.0)],
        "least_ease": [at_least(0.0)],
        "ease_range": [more_than(0.0)],
    }

    def build(self, data: CrowdData) -> SkillByEaseNet:
        n_in = data.n_in  # images and the like are flattened
        width = int(np.prod(data.features.shape)) if n_in is None else n_in
        network = (self.ease or EASE).build(width, 1)
        return SkillByEaseNet(
            data.n_workers,
            data.n_classes,
            network if n_in is not None else nn.Sequential(nn.Flatten(), network),
            self,
        )


class SpeeLFCD(CrowdClassifier):
    """Learn a classifier, one skill per worker and the ease of every task.

    A label is right with probability ``sigmoid(skill * ease(x))``, where
    ``ease(x) = least_ease + ease_range * sigmoid(g(x))`` and g is a small network; errors are
    spread evenly. One number per worker makes it more stable than SpeeLFC when workers have few
    labels, but blind to bias.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    penalty, prior : float or "auto", default="auto"
        Regularization of the classifier and of the workers' parameters; see
        :class:`crowdwise.learn.CrowdClassifier`.
    ease : MLP, default=MLP(hidden=(32,), dropout=0.5)
        The network g from features to one number.
    skill : float, default=0.028
        Initial skill of every worker; with g at 0, the accuracy is then 0.80.
    least_ease, ease_range : float, default=0.001 and 100
        The paper's lambda_1 and lambda_2. Skill and ease share a scale: only their product
        is identified.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``SpeeLFCD.default_training`` if not given.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    difficulty_ : ndarray of shape (n_tasks,)
        Probability that the average worker errs on each training task.
    skills_ : ndarray of shape (n_workers,)
        Skill of each worker, the paper's alpha.
    posterior_, confusion_, worker_accuracy_, history_, search_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    Notes
    -----
    The maths::

        P(w is right on i)
            = sigmoid(skill[w] * ease(x_i)), ease(x) = least_ease + ease_range * sigmoid(g(x))
        a wrong label is any other with equal probability

    Works when workers have few labels each and difficulty shows in the features.

    Fails when workers favor a class or confuse two: each has a single number. Skill and ease
    share a scale, so neither is meaningful on its own.

    References
    ----------
    Chen, Wang, Sun, Chen, Han, Liu and Yang (2020). Structured probabilistic end-to-end
    learning from crowds. IJCAI. doi:10.24963/ijcai.2020/210

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(SpeeLFCD(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **SkillByEase._parameter_constraints,
    }
    # Skills are small numbers (0.03) that ease multiplies by fifty, so they need smaller steps.
    default_training = Training(learning_rate={"truth": 1e-2, "noise": 1e-3})
    priors = (10.0, 1.0)  # with a weaker one, all workers could become liars at once
    recipes = {
        "mgc": {
            "truth": "linear",
            "ease": MLP(hidden=(32,), dropout=0.5),
            "penalty": 0.0,
            "prior": 0.0,
            "scale": False,
            "training": Training(
                learning_rate={"truth": 1e-3, "noise": 1e-3, "ease": 1e-4},
                batch_size=64,
                batch_of="tasks",
                epochs=5000,
            ),
        },
        "spc": {
            "truth": MLP(hidden=(1200,), dropout=0.5),
            "ease": MLP(hidden=(128,), dropout=0.5),
            "penalty": 0.0,
            "prior": 0.0,
            "scale": False,
            "training": Training(learning_rate=1e-4, batch_size=64, batch_of="tasks", epochs=200),
        },
    }

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        penalty: float | str = "auto",
        prior: float | str = "auto",
        ease: MLP | None = None,
        skill: float = 0.028,
        least_ease: float = 0.001,
        ease_range: float = 100.0,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.penalty = penalty
        self.prior = prior
        self.ease = ease
        self.skill = skill
        self.least_ease = least_ease
        self.ease_range = ease_range
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return SkillByEase(self.ease, self.skill, self.least_ease, self.ease_range)

    def _objective(self) -> ObjectivePart:
        return PerAnnotation()


class SkillByEaseNet(Noise):
    """``accuracy = sigmoid(skill * ease)``, errors spread evenly over the other classes."""

    imitates = True

    def __init__(
        self, n_workers: int, n_classes: int, network: nn.Module, part: SkillByEase
    ) -> None:
        super().__init__()
        self.skill = WorkerTable(n_workers, torch.tensor(float(part.skill)))
        self.ease = network  # a part with a learning rate of its own
        self.least, self.most, self.n_classes = part.least_ease, part.ease_range, n_classes

    def ease_of(self, x: Tensor) -> Tensor:
        """Return how easy each task is; larger is easier."""
        return self.least + self.most * torch.sigmoid(self.ease(x)).squeeze(-1)  # (task,)

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        logit = self.skill(worker) * self.ease_of(x)[at]  # (row,)
        return even_errors(logsigmoid(logit), logsigmoid(-logit), self.n_classes)

    def score(self, x: Tensor, at: Tensor, worker: Tensor, label: Tensor) -> Tensor:
        """Do the same without a whole table for each row."""
        if label.ndim > 1 or self.n_classes == 1:
            return super().score(x, at, worker, label)
        logit = self.skill(worker) * self.ease_of(x)[at]
        right = torch.arange(self.n_classes, device=label.device) == label[:, None]  # (row, truth)
        spread = logsigmoid(-logit) - math.log(self.n_classes - 1)
        return torch.where(right, logsigmoid(logit)[:, None], spread[:, None])

    @torch.no_grad()
    def imitate(self, confusion: Tensor) -> None:
        right = confusion.diagonal(dim1=1, dim2=2).mean(dim=1).clamp(0.02, 0.98)
        self.skill.weight[:-1] = right.logit() / (self.least + 0.5 * self.most)
        self.skill.average_unknown()

    def describe(self, net: CrowdNet, data: CrowdData, posterior: Floats) -> Mapping[str, Array]:
        skills = self.skill.weight[:-1].double().numpy()
        ease = torch.cat([self.ease_of(net.scaler(batch.x)) for batch in data.chunks()])
        wrong = 1.0 / (1.0 + np.exp(np.outer(ease.double().numpy(), skills)))
        return {"skills_": skills, "difficulty_": wrong.mean(axis=1)}


def even_errors(log_right: Tensor, log_wrong: Tensor, n_classes: int) -> Tensor:
    """Return a one-coin table: right on the diagonal, errors spread over the other classes."""
    if n_classes == 1:  # there is no other label, right or wrong
        return torch.logaddexp(log_right, log_wrong)[..., None, None]
    eye = torch.eye(n_classes, dtype=torch.bool, device=log_right.device)
    spread = log_wrong - math.log(n_classes - 1)
    return torch.where(eye, log_right[..., None, None], spread[..., None, None])
