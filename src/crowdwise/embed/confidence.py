"""How sure one can be of each task's class: from labels, or from any aggregator's posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from crowdwise.annotations import Annotations, find_labeled
from crowdwise.base.learner import expect
from crowdwise.errors import ParameterError, explain
from crowdwise.inference import pooled_confusion
from crowdwise.learn._classifier import class_proba
from crowdwise.typing import Floats, Ints

CONFIDENCES = ("none", "mle", "bayesian", "assurance")


@dataclass(frozen=True)
class Belief:
    """What is believed of every task."""

    label: Ints  # (task,): number of its class, -1 where nobody said anything
    share: Floats  # (task, class): shares of the labels, or a posterior
    size: Floats  # (task,): how many labels it has, by weight
    known: Ints  # (task,): the class that gold says, or -1

    @property
    def told(self) -> Ints:
        """Numbers of the tasks that have a class."""
        return np.flatnonzero(self.label >= 0)


def confidence_of(
    belief: Belief, kind: str, prior: Floats | None = None, *, positive: int | None = None
) -> Floats:
    """Confidence in each task's class, (task,); 1 where gold says it, 0 where nobody does.

    ``kind`` is ``"none"`` (1 for every task), ``"mle"``, ``"bayesian"`` (with the pseudo-labels
    ``prior``) or ``"assurance"``. With ``positive`` it is the confidence that a task is of that
    class, whatever its own: what RLL's equations 1 and 2 say.
    """
    label = belief.label.clip(min=0) if positive is None else np.full_like(belief.label, positive)
    if kind == "none":
        found = np.ones(len(label))
    elif kind == "mle":
        found = mle(belief.share, label)
    elif kind == "bayesian":
        strength = class_prior(belief) if prior is None else prior
        found = bayesian(belief.share, belief.size, label, strength)
    else:
        found = assurance(belief.share)
    if kind != "assurance" and positive is not None:
        certain = (belief.known == positive).astype(np.float64)
    else:
        certain = np.ones(len(label))
    found = np.where(belief.known >= 0, certain, found)
    return np.where(belief.label >= 0, found, 0.0)


def mle(share: Floats, label: Ints) -> Floats:
    """Share of the labels that say ``label`` (RLL eq. 1)."""
    return share[np.arange(len(label)), label]


def bayesian(share: Floats, size: Floats, label: Ints, prior: Floats) -> Floats:
    """Mean of a Dirichlet with ``prior`` labels of each class beside those given (RLL eq. 2)."""
    count = size * mle(share, label)
    return (count + prior[label]) / (size + prior.sum())


def assurance(share: Floats) -> Floats:
    """0 for labels that are spread evenly, 1 for a single voice (NeuCrowd definition 2).

    With two classes, the absolute value of 1 - 2 v / d; with K, (K max - 1) / (K - 1).
    """
    n_classes = share.shape[1]
    return (n_classes * share.max(axis=1) - 1.0) / max(n_classes - 1, 1)


def class_prior(belief: Belief, strength: float = 5.0) -> Floats:
    """``strength`` pseudo-labels, dealt to the classes by how many tasks are of each."""
    counts = np.bincount(belief.label[belief.told], minlength=belief.share.shape[1])
    return strength * counts / max(counts.sum(), 1)


def pseudo_labels(
    belief: Belief, alpha: float | None, beta: float | None, strength: float, positive: int
) -> Floats:
    """The Bayesian confidence's prior: RLL's alpha and beta, or the classes' own shares."""
    if alpha is None and beta is None:
        return class_prior(belief, strength)
    if alpha is None or beta is None or belief.share.shape[1] != 2:
        raise ParameterError(
            explain(
                f"alpha={alpha}, beta={beta} for {belief.share.shape[1]} classes.",
                expected="both, for two classes; or neither, for the shares of the classes",
            )
        )
    prior = np.full(2, float(beta))
    prior[positive] = alpha
    return prior


def believed(votes: Annotations, posterior: Floats, chosen: Ints, known: Ints | None) -> Belief:
    """The belief that an aggregator's posterior and choice of classes amount to."""
    size = votes.votes().sum(axis=1)
    gold = np.full(votes.n_tasks, -1) if known is None else known
    label = np.where(gold >= 0, gold, np.where(find_labeled(votes), chosen, -1))
    return Belief(label, posterior, size, gold)


def refreshed(belief: Belief, embedding: Floats, votes: Annotations) -> Belief:
    """The belief once more, with a classifier on the representation as each task's prior.

    A logistic regression learns the current belief, and workers are judged by it; what the
    regression says of a task and what its workers say then make the new one, as in an E-step of
    Raykar's. Tasks without labels get a class as well.
    """
    told, n_classes = belief.told, belief.share.shape[1]
    row, label = np.nonzero(belief.share[told] > 0)
    if len(np.unique(label)) < 2:
        return belief
    weight = belief.share[told][row, label]
    classifier = LogisticRegression(max_iter=200)
    classifier.fit(embedding[told][row], label, sample_weight=weight)
    with np.errstate(divide="ignore"):
        log_class = np.log(class_proba(classifier, embedding, n_classes))
    confusion = pooled_confusion(votes, belief.share)
    posterior = expect(votes, log_class, confusion, belief.known).posterior
    return Belief(posterior.argmax(axis=1), posterior, belief.size, belief.known)
