"""How certain each task's class is, by its labels or an aggregator's posterior."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from crowdwise.annotations import Annotations, find_labeled
from crowdwise.base.params import Constraints, Part, at_least, one_of
from crowdwise.embed.groups import GroupTasks, Pool, class_number
from crowdwise.errors import ParameterError, explain
from crowdwise.inference import pooled_confusion
from crowdwise.learn.confusion_learner import expect
from crowdwise.typing import Array, Floats, Ints


@dataclass(frozen=True)
class Belief:
    """The current belief about every task."""

    label: Ints  # (task,): class number, -1 if there are no labels
    share: Floats  # (task, class): shares of the labels, or a posterior
    size: Floats  # (task,): number of labels, by weight
    known: Ints  # (task,): the class by gold, or -1

    @property
    def labeled(self) -> Ints:
        """Numbers of the tasks with a class."""
        return np.flatnonzero(self.label >= 0)

    @property
    def class_sizes(self) -> Ints:
        """Number of tasks of each class."""
        return np.bincount(self.label[self.labeled], minlength=self.share.shape[1])

    @classmethod
    def of(cls, votes: Annotations, share: Floats, chosen: Ints, known: Ints | None) -> Belief:
        """Make a belief from an aggregator's choice of classes; gold takes precedence."""
        size = votes.votes().sum(axis=1)
        gold = np.full(votes.n_tasks, -1) if known is None else known
        label = np.where(gold >= 0, gold, np.where(find_labeled(votes), chosen, -1))
        return cls(label, share, size, gold)


class Confidence(Part):
    """The part of an embedder that says how certain each task's class is.

    ``evidence`` is its basis: ``"labels"``, the shares of a task's labels, or ``"posterior"``,
    the aggregator's, in which the quality of workers counts.
    """

    _parameter_constraints: ClassVar[Constraints] = {"evidence": [one_of("labels", "posterior")]}
    evidence: str

    @abstractmethod
    def share(self, belief: Belief, label: Ints) -> Floats:
        """Return the confidence that each task has the class ``label``, apart from gold."""

    def of(self, belief: Belief, classes: Array) -> Floats:
        """Return the confidence in each task's class, (task,); 1 by gold, 0 without labels."""
        found = self.share(belief, belief.label.clip(min=0))
        found = np.where(belief.known >= 0, 1.0, found)
        return np.where(belief.label >= 0, found, 0.0)

    def in_epoch(self, confidence: Tensor, epoch: int) -> Tensor:
        """Return an epoch's confidences, given those of the epoch before."""
        return confidence


class Certain(Confidence):
    """Every class counts as certain.

    Parameters
    ----------
    evidence : {"posterior", "labels"}, default="posterior"
        What classes are inferred from again, if ``refresh_every`` is set.
    """

    def __init__(self, *, evidence: str = "posterior") -> None:
        self.evidence = evidence

    def share(self, belief: Belief, label: Ints) -> Floats:
        return np.ones(len(label))


class ClassConfidence(Confidence):
    """Confidence in a task's own class, or in a given class."""

    in_class: object

    def of(self, belief: Belief, classes: Array) -> Floats:
        if self.in_class is None:
            return super().of(belief, classes)
        number = class_number(self.in_class, classes)
        found = self.share(belief, np.full_like(belief.label, number))
        found = np.where(belief.known >= 0, (belief.known == number).astype(np.float64), found)
        return np.where(belief.label >= 0, found, 0.0)


class MLE(ClassConfidence):
    """The share of a task's labels that agree with its class (RLL eq. 1).

    Parameters
    ----------
    in_class : label, optional
        The class that confidence is about, whatever the task's own: RLL's equations suggest the
        positive one, which leaves clear negatives with almost no confidence. By default each
        task's own class, as in the published code.
    evidence : {"labels", "posterior"}, default="labels"
        Shares of the labels, or the aggregator's posterior, in which the quality of workers
        counts.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **Confidence._parameter_constraints,
        "in_class": [Hashable],
    }

    def __init__(self, *, in_class: object = None, evidence: str = "labels") -> None:
        self.in_class = in_class
        self.evidence = evidence

    def share(self, belief: Belief, label: Ints) -> Floats:
        return belief.share[np.arange(len(label)), label]


class Bayesian(MLE):
    """The posterior mean of the share of labels that agree, with a Dirichlet prior (RLL eq. 2).

    Parameters
    ----------
    prior : float or sequence of float, default=5
        The weight of the prior in labels, divided among the classes by how many tasks each has;
        or the weight for each class, in the order of ``classes_``: RLL's beta, alpha. A larger
        prior makes all confidences more similar.
    in_class, evidence
        As for :class:`MLE`.
    """

    _parameter_constraints = {
        **MLE._parameter_constraints,
        "prior": [at_least(0.0), "array-like"],
    }

    def __init__(
        self,
        prior: float | Sequence[float] = 5.0,
        *,
        in_class: object = None,
        evidence: str = "labels",
    ) -> None:
        self.prior = prior
        self.in_class = in_class
        self.evidence = evidence

    def share(self, belief: Belief, label: Ints) -> Floats:
        prior = self.pseudo_labels(belief)
        count = belief.size * super().share(belief, label)
        return (count + prior[label]) / (belief.size + prior.sum())

    def pseudo_labels(self, belief: Belief) -> Floats:
        """Return the prior's weight in labels for each class."""
        counts, prior = belief.class_sizes, np.asarray(self.prior, dtype=np.float64)
        if prior.ndim == 0:
            return float(prior) * counts / max(counts.sum(), 1)
        if prior.shape != counts.shape or not (prior >= 0).all():
            raise ParameterError(
                explain(
                    f"prior={self.prior} for {len(counts)} classes.",
                    expected="one number, or a number of 0 or more for each class",
                    fix="give one number for all classes",
                )
            )
        return prior


class Assurance(Confidence):
    """0 for evenly spread labels, 1 for unanimous ones (NeuCrowd definition 2).

    With two classes, this is the absolute value of 1 - 2 v / d for v of d labels; with K,
    (K max - 1) / (K - 1) for the largest share.

    Parameters
    ----------
    evidence : {"labels", "posterior"}, default="labels"
        As for :class:`MLE`.
    """

    def __init__(self, *, evidence: str = "labels") -> None:
        self.evidence = evidence

    def share(self, belief: Belief, label: Ints) -> Floats:
        n_classes = belief.share.shape[1]
        return (n_classes * belief.share.max(axis=1) - 1.0) / max(n_classes - 1, 1)


class Renewal:
    """Classes and confidences during training, updated before each epoch.

    Attributes
    ----------
    belief : Belief
        The current belief about every task.
    values : ndarray of shape (n_tasks,)
        Confidence in the class of each task.
    """

    def __init__(
        self, confidence: Confidence, belief: Belief, votes: Annotations, every: int | None
    ) -> None:
        self.confidence, self.votes, self.every = confidence, votes, every
        self.first = self.belief = belief
        self.values = confidence.of(belief, votes.classes)

    def __call__(self, tasks: GroupTasks) -> None:
        if self.every is not None and tasks.epoch and tasks.epoch % self.every == 0:
            self.refresh(tasks)
        tasks.confidence = self.confidence.in_epoch(tasks.confidence, tasks.epoch)

    def refresh(self, tasks: GroupTasks) -> None:
        """Infer classes from labels and the current representation together."""
        everyone = torch.arange(len(tasks.label))
        belief = refresh(self.belief, tasks.embedded(everyone).double().cpu().numpy(), self.votes)
        label = torch.as_tensor(belief.label).long()
        # Tasks without labels join; those held out stay out.
        joining = everyone[(tasks.label.cpu() < 0) & (label >= 0)]
        drawn = torch.cat([tasks.tasks, joining])
        if not tasks.sampler.allows(Pool.of(drawn, label, tasks.n_classes)):
            return  # groups cannot be drawn, as if all tasks are of one class: keep the belief
        self.belief, self.values = belief, self.confidence.of(belief, self.votes.classes)
        tasks.tasks, tasks.label = drawn, label.to(tasks.device)
        tasks.confidence = torch.as_tensor(self.values, device=tasks.device).float()

    def posterior(self, first: Floats) -> Floats:
        """Return P(truth | labels, representation); ``first`` if never updated."""
        return first if self.belief is self.first else self.belief.share


def refresh(belief: Belief, embedding: Floats, votes: Annotations) -> Belief:
    """Infer all classes again, using a classifier on the representation as each task's prior.

    A logistic regression is fitted to the current belief, by which workers are assessed as well;
    its prediction for a task and the workers' labels then give the new belief, as in Raykar's
    E-step. Tasks without labels get a class as well.
    """
    labeled, n_classes = belief.labeled, belief.share.shape[1]
    row, label = np.nonzero(belief.share[labeled] > 0)
    if len(np.unique(label)) < 2:
        return belief
    classifier = LogisticRegression(max_iter=200)
    weight = belief.share[labeled][row, label]
    classifier.fit(embedding[labeled][row], label, sample_weight=weight)
    proba = np.zeros((len(embedding), n_classes))
    proba[:, classifier.classes_] = classifier.predict_proba(embedding)
    with np.errstate(divide="ignore"):
        log_class = np.log(proba)
    confusion = pooled_confusion(votes, belief.share)
    posterior = expect(votes, log_class, confusion, belief.known).posterior
    return Belief(posterior.argmax(axis=1), posterior, belief.size, belief.known)
