"""MBEM: train on the posterior, count confusions by the network's predictions, repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crowdwise.base.params import at_least, more_than, one_of
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.objectives import best_class
from crowdwise.learn.parts import (
    CountedConfusion,
    CountedConfusionNet,
    CrowdNet,
    CrowdObjective,
    NoisePart,
    ObjectivePart,
    joint,
    per_annotation,
    pick,
)
from crowdwise.learn.restraint import on_kept_tasks
from crowdwise.nets.batches import Batch, CrowdData, as_shares
from crowdwise.nets.features import rows_at_once
from crowdwise.nets.loop import Phase, view
from crowdwise.nets.modules import NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import RandomState


@dataclass(eq=False, repr=False)
class Bootstrap(ObjectivePart):
    """Cross-entropy with a posterior that comes from the classifier's own predictions.

    Used with :class:`CountedConfusion`.

    Parameters
    ----------
    rounds : int, default=2
        How often the classifier is trained, each time continuing from the last.
    class_prior : {"uniform", "estimate"}, default="uniform"
        P(truth) for the posterior: the same for all classes, or the frequency with which each
        is predicted.
    self_training : bool, default=False
        Whether each round ends with another training on the classifier's own most probable
        classes.
    smoothing : float, default=0.01
        Pseudo-count added to every cell of a confusion matrix and to every class.
    """

    rounds: int = 2
    class_prior: str = "uniform"
    self_training: bool = False
    smoothing: float = 0.01

    _parameter_constraints = {
        "rounds": [at_least(1)],
        "class_prior": [one_of("uniform", "estimate")],
        "self_training": ["boolean"],
        "smoothing": [more_than(0.0)],
    }

    def build(self, net: CrowdNet, data: CrowdData) -> BootstrapLoss:
        return BootstrapLoss(net, data, self)


class MBEM(CrowdClassifier):
    """Learn a classifier by bootstrapping it with what its predictions imply about workers.

    Each round trains the classifier on a distribution over classes for each task, at first its
    share of labels. Its most probable classes, used as truths, give every worker's
    confusion matrix by counting, and these the distributions for the next round. Made
    for tasks with a single label, where labels alone do not show who is good.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    penalty, prior : float or "auto", default="auto"
        Regularization of the classifier; see :class:`crowdwise.learn.CrowdClassifier`.
        Workers' matrices are counted, so the prior has no effect.
    rounds : int, default=2
        How often the classifier is trained, each time continuing from the last. If held-out
        labels choose the penalty, they also choose the round to end with.
    class_prior : {"uniform", "estimate"}, default="uniform"
        P(truth) for the posterior: the same for all classes (the authors' code), or the
        frequency with which each is predicted (the paper). If tasks have one label and classes
        differ in size, the latter drives the classifier to the largest class.
    self_training : bool, default=False
        Whether each round ends with another training on the classifier's own most probable
        classes, as in the authors' code. It drives unbalanced data to the largest class.
    smoothing : float, default=0.01
        Pseudo-count added to every cell of a confusion matrix and to every class.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train in each round; ``MBEM.default_training`` if not given. Batches consist of
        tasks.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | labels) of the training tasks, by the confusion matrices.
    confusion_, worker_accuracy_, history_, search_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    Notes
    -----
    The maths::

        target[i, k] = share of labels k at first, and then
            proportional to prior[k] * prod over w of confusion[w, k, label of w on i]
        confusion[w, k, l]
            proportional to number of w's labels l on tasks that the classifier calls k

    Works when tasks have one label each, and the classifier is better than chance after one
    round.

    Fails when the classifier is wrong about a class: its predictions are counted as truth. There
    are few rounds, so it does not recover.

    References
    ----------
    Khetan, Lipton and Anandkumar (2018). Learning from noisy singly-labeled data. ICLR.
    arXiv:1712.04577. doi:10.48550/arXiv.1712.04577

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(MBEM(random_state=0).fit(X, votes).score(X, truth) > 0.75)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **Bootstrap._parameter_constraints,
    }

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        penalty: float | str = "auto",
        prior: float | str = "auto",
        rounds: int = 2,
        class_prior: str = "uniform",
        self_training: bool = False,
        smoothing: float = 0.01,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.penalty = penalty
        self.prior = prior
        self.rounds = rounds
        self.class_prior = class_prior
        self.self_training = self_training
        self.smoothing = smoothing
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return CountedConfusion()

    def _objective(self) -> ObjectivePart:
        return Bootstrap(self.rounds, self.class_prior, self.self_training, self.smoothing)


class BootstrapLoss(CrowdObjective):
    """Cross-entropy with a posterior that comes from the classifier's own predictions."""

    by = "task"
    adds_up = True  # but E-steps and evidence need the predictions of all tasks
    sees_all = True
    held_out_everywhere = True  # predictions of all tasks count confusions
    target: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData, part: Bootstrap) -> None:
        super().__init__(net, data)
        self.part = part
        self.register_buffer("target", torch.zeros_like(data.gold))  # (task, truth)
        self.n_workers = data.n_workers
        self.everything = (data.task, data.worker, data.label, data.weight)
        self.features = data.features
        self.found: tuple[Tensor, Tensor] | None = None  # confusions and truths, once settled

    def phases(self, epochs: int) -> Sequence[Phase[BootstrapLoss, Batch]]:
        steps = (BootstrapLoss.shares, BootstrapLoss.e_step, BootstrapLoss.guess)
        first, later, again = (Phase(epochs, expect=step) for step in steps)
        own = [again] if self.part.self_training else []
        return [first, *own, *[later, *own] * (self.part.rounds - 1)]

    def settle(self, data: CrowdData) -> None:
        """Count the confusions by the last predictions."""
        self.found = self.count(next(view(data, self).chunks(data.n_tasks)))
        noise = self.noise_as(CountedConfusionNet, "CountedConfusion()")
        noise.take(self.found[0])

    def loss(self, batch: Batch) -> Tensor:
        """Average over the tasks that have labels or gold; the others have no effect."""
        given = (self.target[batch.task] * self.log_truth(batch)).sum(dim=-1)  # (task,)
        counts = self.labeled(batch.task[batch.at], batch.weight)[batch.task]
        all_of_them, every = counts, batch.every
        if every is not None:
            all_of_them = self.labeled(every.task, every.weight)[every.tasks]
        return -(given * counts).sum() / all_of_them.sum().clamp_min(1)

    def labeled(self, task: Tensor, weight: Tensor) -> Tensor:
        """Return which of all tasks have gold or labels that count, given the labels' columns."""
        total = torch.zeros_like(self.gold[:, 0]).index_add(0, task, weight)
        return (total > 0) | torch.isinf(self.gold).any(dim=-1)

    def shares(self, batch: Batch) -> Tensor:
        """Return each task's share of labels, uniform without any: the first posterior."""
        label = as_shares(batch.label, self.gold.shape[-1]) * batch.weight[:, None]
        votes = torch.zeros_like(self.gold[batch.task]).index_add(0, batch.at, label)
        votes = torch.where(votes.sum(dim=-1, keepdim=True) > 0, votes, 1.0)
        votes = torch.where(self.known(batch)[:, None], self.gold[batch.task].exp(), votes)
        return (votes / votes.sum(dim=-1, keepdim=True)).log().exp()  # rounded like an E-step

    def e_step(self, batch: Batch) -> Tensor:
        """Return P(truth | labels), (task, truth), under confusions that predictions imply."""
        return self.posterior(batch).exp()

    def guess(self, batch: Batch) -> Tensor:
        """Return the classifier's own most probable class of each task."""
        return best_class(self.classes(batch).exp())

    def posterior(self, batch: Batch) -> Tensor:
        """Return log P(truth | labels), (task, truth), under confusions from predictions."""
        confusion, truths = self.count(batch) if self.found is None else self.found
        uniform, smoothing = self.part.class_prior == "uniform", self.part.smoothing
        often = truths * (0.0 if uniform else 1.0) + smoothing
        log_prior = torch.log_softmax(often.log(), dim=-1) + self.gold[batch.task]
        score = pick(confusion.log()[batch.worker], batch.label)
        return torch.log_softmax(joint(log_prior, score, batch), dim=-1)

    def held_out(self, batch: Batch) -> Tensor:
        """Return the negative log-likelihood of held-out labels, under the counted confusions."""
        log_truth = self.classes(batch)
        rest = Batch(batch.x, batch.task, *self.everything)
        confusion = self.confusion(self.counts(one_hot(log_truth), rest))
        score = pick(confusion.log()[batch.worker], batch.label)
        return -per_annotation(log_truth, score, batch)

    def label_evidence(self, batch: Batch) -> Tensor:
        """Do the same task by task, under confusions counted from the tasks to learn from."""
        log_truth = self.classes(batch)
        truth = one_hot(log_truth)
        counts = on_kept_tasks(lambda _, rest: self.counts(truth, rest))(self, batch)
        score = pick(self.confusion(counts).log()[batch.worker], batch.label)
        both = log_truth[batch.at] + score
        evidence = torch.logsumexp(both, dim=-1) * batch.weight
        return evidence.new_zeros(len(batch.task)).index_add(0, batch.at, evidence)

    def classes(self, batch: Batch) -> Tensor:
        """Return log P(truth | features), (task, truth), without what gold rules out."""
        return self.log_truth(batch) + self.gold[batch.task]

    def log_truth(self, batch: Batch) -> Tensor:
        """Return log P(truth | features), (task, truth); reads features in parts if need be."""
        if len(batch.x) == len(batch.task):
            return self.net.log_truth(batch.x)
        size = len(batch.task)  # slopes need all rows
        if not torch.is_grad_enabled():
            size = rows_at_once(int(np.prod(self.features.shape)))
        parts = (self.features.rows(some) for some in torch.split(batch.task, size))
        rows = (x.to(self.gold) if x.is_floating_point() else x for x in parts)
        return torch.cat([self.net.log_truth(x) for x in rows])

    def count(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the confusions that all predictions imply, and how often each class is one."""
        predicted = one_hot(self.classes(batch))
        return self.confusion(self.counts(predicted, batch)), predicted.sum(dim=0)

    def counts(self, truth: Tensor, batch: Batch) -> Tensor:
        """Return the weight of each worker's labels by truth, (worker, truth, label)."""
        rows, n_classes = truth[batch.at] * batch.weight[:, None], truth.shape[-1]
        if batch.label.ndim > 1:
            none = rows.new_zeros(self.n_workers, n_classes, n_classes)
            return none.index_add(0, batch.worker, rows[:, :, None] * batch.label[:, None, :])
        none = rows.new_zeros(self.n_workers * n_classes, n_classes)
        by_label = none.index_add(0, batch.worker * n_classes + batch.label, rows)
        return by_label.reshape(self.n_workers, n_classes, n_classes).transpose(1, 2)

    def confusion(self, counts: Tensor) -> Tensor:
        """Return P(label | truth) of each worker, from counts."""
        smooth = counts + self.part.smoothing
        return smooth / smooth.sum(dim=-1, keepdim=True)

    def known(self, batch: Batch) -> Tensor:
        """Return which of the batch's tasks have a gold label."""
        return torch.isinf(self.gold[batch.task]).any(dim=-1)


def one_hot(log_truth: Tensor) -> Tensor:
    """Return the most probable class of each task, one-hot."""
    number = torch.arange(log_truth.shape[-1], device=log_truth.device)
    return (log_truth.argmax(dim=-1, keepdim=True) == number).to(log_truth.dtype)
