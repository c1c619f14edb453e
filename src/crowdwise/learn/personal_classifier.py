"""Personal classifiers: one for every worker, tied together by a shared one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.base.learner import WorkersLike
from crowdwise.base.params import at_least, more_than
from crowdwise.inference.rows import LabelRows
from crowdwise.inference.simplex import one_hot
from crowdwise.learn.confusion_learner import infer_truths
from crowdwise.learn.softmax_regression import LinearLearner, Matrix
from crowdwise.typing import FeaturesLike, Floats, Ints


class PersonalLearner(LinearLearner):
    """A learner in which every worker labels by a personal classifier.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features + 1, n_classes)
        Weights of the shared classifier; the last row is the intercept.
    worker_weights_ : ndarray of shape (n_workers, n_features + 1, n_classes)
        Weights of each worker's classifier.
    """

    worker_weights_: Floats

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"worker_weights_": self.worker_weights_}

    def predict_worker_proba(self, X: FeaturesLike, workers: WorkersLike | None = None) -> Floats:
        """Return P(label) by each worker, shape (n_rows, n_workers, n_classes)."""
        weights, design = self._models()[self._worker_codes(workers)], self._design(X)
        n_workers, n_columns, n_classes = weights.shape
        logits = design @ weights.transpose(1, 0, 2).reshape(n_columns, -1)
        return softmax(logits.reshape(-1, n_workers, n_classes), axis=2)

    def predict_worker_accuracy(
        self, X: FeaturesLike, workers: WorkersLike | None = None
    ) -> Floats:
        """Return the probability that each worker is right, shape (n_rows, n_workers)."""
        labels = self.predict_worker_proba(X, workers)
        return np.einsum("tk,twk->tw", self.predict_proba(X), labels)

    def _label_proba(self, X: FeaturesLike, row: Ints, worker: Ints) -> Floats:
        models, design = self._models(), self._design(X)
        proba = np.empty((len(row), len(self.classes_)))
        for number in np.unique(worker):
            mine = worker == number
            proba[mine] = softmax(design[row[mine]] @ models[number], axis=1)
        return proba

    def _models(self) -> Floats:
        """Return the workers' classifiers, with the shared one for an unknown worker."""
        check_is_fitted(self)
        return np.concatenate([self.worker_weights_, self.weights_[None]])


class PersonalClassifier(PersonalLearner):
    """Learn a logistic regression per worker around a shared one.

    Every worker labels by a personal classifier, the sum of the shared one, which is used for
    prediction, and a deviation. The problem is convex, so the result does not depend on the
    starting point. Any number of classes.

    Parameters
    ----------
    closeness : float, default=1
        Penalty on the squared deviations, the paper's lambda; more makes workers more alike.
    ridge : float, default=1
        Penalty on the squared weights of the shared classifier, the paper's eta.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    max_iter : int, default=1000
        Maximum number of optimizer steps (L-BFGS).
    tol : float, default=1e-6
        Stop once no component of the gradient per label is larger than this.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | features, labels) of the training tasks.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth), counted by ``posterior_``; the axes are worker, truth, label.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks, by this model.
    weights_ : ndarray of shape (n_features + 1, n_classes)
        Weights of the shared classifier; the last row is the intercept.
    worker_weights_ : ndarray of shape (n_workers, n_features + 1, n_classes)
        Weights of each worker's classifier.
    objective_ : list of float
        Minus the penalized loss after each step. Never falls.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    The maths::

        P(w gives i the label l) = softmax(x_i @ (weights + deviation[w]))[l]
        loss = - sum of logs
            + closeness / 2 * sum over w of |deviation[w]| ** 2 + ridge / 2 * |weights| ** 2

    Works when workers differ in opinion rather than in skill: each draws the line elsewhere,
    and the shared line is what is wanted.

    Fails when workers are random on some tasks, which no line explains, and when there are few
    labels per worker for the number of features.

    References
    ----------
    Kajino, Tsuboi and Kashima (2012). A convex formulation for learning from crowds.
    Proceedings of the AAAI Conference on Artificial Intelligence 26.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(PersonalClassifier().fit(X, votes).score(X, truth) > 0.8)
    True
    """

    _parameter_constraints = {
        **PersonalLearner._parameter_constraints,
        "closeness": [more_than(0.0)],
        "ridge": [at_least(0.0)],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
    }

    def __init__(
        self,
        *,
        closeness: float = 1.0,
        ridge: float = 1.0,
        scale: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-6,
    ) -> None:
        self.closeness = closeness
        self.ridge = ridge
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, X: FeaturesLike, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        design, shape = self._learn_design(X), (votes.n_workers + 1, -1, votes.n_classes)
        labeled = collect_labels(design, votes, gold)
        self.objective_: list[float] = []

        def loss(flat: Floats) -> tuple[float, Floats]:
            parts = flat.reshape(shape)
            value, slope = labeled.loss(add_shared(parts))
            more, steeper = penalize(parts, self.closeness, self.ridge)
            slope[0] += slope[1:].sum(axis=0)  # the shared part is in every classifier
            return value + more, (slope + steeper).reshape(-1)

        def record(intermediate_result: OptimizeResult) -> None:
            self.objective_.append(-float(intermediate_result.fun))

        start = np.zeros((votes.n_workers + 1) * design.shape[1] * votes.n_classes)
        options = {"maxiter": self.max_iter, "ftol": 0.0, "gtol": self.tol * votes.n_annotations}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options, callback=record)
        if found.status == 1:
            warnings.warn(
                f"PersonalClassifier stopped after max_iter={self.max_iter} steps before the "
                f"gradient fell to tol={self.tol:.1e} per label. Raise max_iter, or raise tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.n_iter_ = len(self.objective_)
        weights = add_shared(found.x.reshape(shape))
        self.weights_, self.worker_weights_ = weights[0], weights[1:]
        return infer_truths(votes, self.predict_proba(X), gold)


def add_shared(parts: Floats) -> Floats:
    """Return all classifiers: the shared one, and its sum with each worker's deviation."""
    weights = parts + parts[:1]
    weights[0] = parts[0]
    return weights


def penalize(parts: Floats, closeness: float, ridge: float) -> tuple[float, Floats]:
    """Return the penalty on shared classifier (the first part) and deviations; its gradient."""
    strength = np.full((len(parts), 1, 1), closeness)
    strength[0] = ridge
    return 0.5 * float((strength * parts**2).sum()), strength * parts


@dataclass(frozen=True)
class Labeled:
    """The tasks of the shared classifier (gold) and of each worker, with their labels."""

    design: tuple[Matrix, ...]  # one per classifier, with one row per label
    target: tuple[Floats, ...]  # (row, class): the label's weight

    @classmethod
    def of(cls, design: Matrix, votes: Annotations, gold: Ints | None) -> Self:
        rows, n_classes = LabelRows.of(votes), votes.n_classes
        order = np.argsort(rows.worker, kind="stable")
        edges = np.searchsorted(rows.worker[order], np.arange(1, votes.n_workers))
        mine = np.split(order, edges)
        known = np.full(votes.n_tasks, -1) if gold is None else gold
        target = one_hot(rows.label, n_classes) * rows.weight[:, None]
        return cls(
            (design[known >= 0], *(design[rows.task[some]] for some in mine)),
            (one_hot(known[known >= 0], n_classes), *(target[some] for some in mine)),
        )

    def loss(self, weights: Floats) -> tuple[float, Floats]:
        """Return minus the log-likelihood of all labels, and its gradient.

        This loops over classifiers, each a matrix product: one product for all of them would be
        larger by a factor of the number of workers.
        """
        value, slope = 0.0, np.empty_like(weights)
        for number, (design, target) in enumerate(zip(self.design, self.target, strict=True)):
            log_class = log_softmax(design @ weights[number], axis=1)
            value -= float((target * log_class).sum())
            mass = target.sum(axis=1, keepdims=True)
            slope[number] = design.T @ (mass * np.exp(log_class) - target)
        return value, slope


@dataclass(frozen=True)
class LabeledByMost:
    """The same if most workers label most tasks: every task once, with all of its labels."""

    design: Matrix  # (task, column)
    target: Floats  # (task, classifier, class): weight of the labels

    @classmethod
    def of(cls, design: Matrix, votes: Annotations, gold: Ints | None) -> Self:
        rows = LabelRows.of(votes)
        target = np.zeros((votes.n_tasks, votes.n_workers + 1, votes.n_classes))
        if gold is not None:
            known = np.flatnonzero(gold >= 0)
            target[known, 0, gold[known]] = 1.0
        np.add.at(target, (rows.task, rows.worker + 1, rows.label), rows.weight)
        return cls(design, target)

    def loss(self, weights: Floats) -> tuple[float, Floats]:
        """Do the same in one product for all classifiers."""
        n, n_columns, n_classes = weights.shape
        logits = self.design @ weights.transpose(1, 0, 2).reshape(n_columns, -1)
        log_class = log_softmax(logits.reshape(-1, n, n_classes), axis=2)
        value = -float((self.target * log_class).sum())
        mass = self.target.sum(axis=2, keepdims=True)
        rest = (mass * np.exp(log_class) - self.target).reshape(len(log_class), -1)
        slope: Floats = np.asarray(self.design.T @ rest)
        return value, slope.reshape(n_columns, n, n_classes).transpose(1, 0, 2).copy()


def collect_labels(
    design: Matrix, votes: Annotations, gold: Ints | None
) -> Labeled | LabeledByMost:
    """Collect the labels of every classifier, in the form that is faster to process."""
    cells = votes.n_tasks * votes.n_workers
    kind = LabeledByMost if cells <= 2 * votes.n_annotations else Labeled
    return kind.of(design, votes, gold)
