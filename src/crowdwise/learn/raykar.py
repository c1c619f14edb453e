"""Raykar: logistic regression and a confusion matrix per worker, together by EM."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag
from scipy.sparse import eye_array, issparse
from scipy.special import log_softmax, softmax, xlogy
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations, find_labeled
from crowdwise.base.params import at_least, one_of
from crowdwise.inference import count_labels
from crowdwise.inference.simplex import clamp, normalize, worker_prior
from crowdwise.inference.stopping import until_converged
from crowdwise.learn.confusion_learner import expect
from crowdwise.learn.search import KEPT, Search, choose, deal_rows, penalties_for
from crowdwise.learn.softmax_regression import (
    LinearLearner,
    Matrix,
    penalty,
    softmax_regression,
)
from crowdwise.typing import Array, FeaturesLike, Floats, Ints

SMOOTHINGS: tuple[float | list[float], ...] = (0.01, [2.0, 0.2])  # to choose from
SEARCH_ROUNDS, SEARCH_STEPS = 3, 10  # EM rounds, and L-BFGS steps in each, which continue


@dataclass(frozen=True)
class State:
    """The current state of EM."""

    design: Matrix
    votes: Annotations
    gold: Ints | None
    labeled: Array
    weights: Floats
    posterior: Floats
    counts: Floats  # counts of labels by worker and truth, under the posterior
    confusion: Floats
    evidence: float

    def improve(self, ridge: float, pseudo: Floats, max_iter: int = 1000) -> State:
        """Take one M-step, of at most ``max_iter`` steps of L-BFGS, and one E-step."""
        confusion = normalize(self.counts + pseudo)
        target = self.posterior * self.labeled[:, None]
        weights = softmax_regression(self.design, target, ridge, self.weights, max_iter)
        log_class = log_softmax(self.design @ weights, axis=1)
        step = expect(self.votes, log_class, confusion, self.gold)
        return replace(
            self,
            weights=weights,
            posterior=step.posterior,
            counts=step.counts,
            confusion=confusion,
            evidence=step.evidence,
        )

    def label_evidence(self, votes: Annotations) -> Floats:
        """Return the log-likelihood of every task's labels, each on its own."""
        truth = softmax(self.design @ self.weights, axis=1)
        labels = np.einsum("rk,rkl->rl", truth[votes.task], self.confusion[votes.worker])
        given = np.eye(votes.n_classes)[votes.label] if votes.soft is None else votes.soft
        weight = 1.0 if votes.weight is None else votes.weight
        evidence = xlogy(given, np.maximum(labels, 1e-12)).sum(axis=1) * weight
        return np.bincount(votes.task, evidence, minlength=votes.n_tasks).astype(np.float64)


class Raykar(LinearLearner):
    """Learn a logistic regression and every worker's confusion matrix by EM.

    A task's truth ``k`` has probability ``softmax(x @ weights_)[k]``, and worker ``w`` turns it
    into label ``l`` with probability ``confusion_[w, k, l]``; all labels of a task share one
    truth. Without a prior (``smoothing=0``), a class that a worker never met leaves a row of the
    worker's matrix empty. Such rows are uniform here; as 0 / 0 they would break the method
    on sparse crowds with many classes.

    Parameters
    ----------
    smoothing : "auto", float, pair or array of shape (n_classes, n_classes), default="auto"
        Pseudo-counts of every confusion matrix: one number for all cells, one for being right
        and one for each way of being wrong, or a matrix of truth x label. 0 for no prior.
    ridge : float or "auto", default="auto"
        Penalty on the squared weights; a larger one makes the classifier simpler. If ridge or
        smoothing is "auto", the labels of held-out tasks choose: of the settings that predict
        these best, within one standard error, the one with the largest ridge.
    start : {"identity", "shares"}, default="identity"
        The start of EM: workers who are nearly always right and a classifier that knows
        nothing, or each task's share of labels.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    max_iter : int, default=100
        Maximum number of EM steps.
    tol : float, default=1e-5
        Stop once a step raises the objective by less than this fraction of it; with 0,
        ``max_iter`` steps are run.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | features, labels) of the training tasks.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth); the axes are worker, truth, label.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks, by this model.
    search_ : Search
        The settings tried, how well each predicts the labels of held-out tasks, the choice and
        the reason.
    weights_ : ndarray of shape (n_features + 1, n_classes)
        Weights of the scaled features; the last row is the intercept.
    objective_ : list of float
        Log-posterior of ``weights_`` and ``confusion_`` after each step, up to a constant.
        Never falls.
    n_iter_ : int
        Number of EM steps.

    Notes
    -----
    The maths::

        P(truth of i = k) proportional to softmax(x_i @ weights)[k]
            * prod over w of confusion[w, k, label of w on i]
        M-step: logistic regression on these; confusion from counts plus smoothing

    Works when classes are nearly linear in the features and tasks have several labels: both
    parts help each other, and EM needs no tuning.

    Fails when classes are not linear, and when workers have few labels for the number of
    classes (then ``smoothing`` has to make up for it).

    References
    ----------
    Raykar, Yu, Zhao, Valadez, Florin, Bogoni and Moy (2010). Learning from crowds. Journal of
    Machine Learning Research 11. https://jmlr.org/papers/v11/raykar10a.html

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(Raykar().fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **LinearLearner._parameter_constraints,
        "smoothing": [one_of("auto"), at_least(0.0), "array-like"],
        "ridge": [one_of("auto"), at_least(0.0)],
        "start": [one_of("identity", "shares")],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
    }

    def __init__(
        self,
        *,
        smoothing: str | float | ArrayLike = "auto",
        ridge: str | float = "auto",
        start: str = "identity",
        scale: bool = True,
        max_iter: int = 100,
        tol: float = 1e-5,
    ) -> None:
        self.smoothing = smoothing
        self.ridge = ridge
        self.start = start
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, X: FeaturesLike, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        plain = self._learn_design(X)
        design, axes = turn(plain)
        fold = deal_rows(plain, find_labeled(votes), check_random_state(0))
        self.search_ = self._search(design, votes, gold, fold)
        ridge, smoothing = (
            self.search_.chosen.get(name, getattr(self, name)) for name in ("ridge", "smoothing")
        )
        pseudo = pseudo_counts(smoothing, votes.n_classes)
        state = self._first(design, votes, gold)
        for em in until_converged(self.max_iter, self.tol, name="Raykar"):
            state = state.improve(float(ridge), pseudo)
            log_prior = xlogy(pseudo, state.confusion).sum() - penalty(state.weights, float(ridge))
            em.record(state.evidence + log_prior)
        self.weights_ = axes @ state.weights
        self.objective_, self.n_iter_ = em.objective, len(em.objective)
        return state.posterior, state.confusion

    def _first(self, design: Matrix, votes: Annotations, gold: Ints | None) -> State:
        """Return the initial state of EM."""
        # A task without labels adds nothing: its posterior is the classifier's own prediction.
        labeled = find_labeled(votes) if gold is None else find_labeled(votes) | (gold >= 0)
        weights = np.zeros((design.shape[1], votes.n_classes))
        posterior, counts = self._start(votes, gold)
        return State(design, votes, gold, labeled, weights, posterior, counts, counts, -np.inf)

    def _search(self, design: Matrix, votes: Annotations, gold: Ints | None, fold: Ints) -> Search:
        """Choose ridge and smoothing by the labels of held-out tasks."""
        n_labeled = int(find_labeled(votes).sum())
        known = [p * n_labeled for p in penalties_for(self.n_features_in_)]
        ridges = known if is_auto(self.ridge) else [self.ridge]
        smoothings = SMOOTHINGS if is_auto(self.smoothing) else [self.smoothing]
        if len(ridges) * len(smoothings) == 1 or n_labeled < 2:
            chosen: dict[str, Any] = {"ridge": ridges[0]} if is_auto(self.ridge) else {}
            if is_auto(self.smoothing):
                chosen["smoothing"] = SMOOTHINGS[0]
            return Search(chosen=chosen, why="There was nothing to choose.")
        folds = [votes.filter(fold[votes.task] != f) for f in range(fold.max() + 1)]
        starts = [[self._first(design, some, gold)] for some in folds]
        usual = pseudo_counts(smoothings[0], votes.n_classes)
        for path in starts:  # from strong to weak, each starting from the one before
            for ridge in ridges:
                first = replace(path[0], weights=path[-1].weights)
                path.append(first.improve(float(ridge), usual, SEARCH_STEPS))
        levels = [[path[i + 1] for path in starts] for i in range(len(ridges))]
        worse = [-self._held_out(votes, fold, states).mean() for states in levels]
        best = np.sort(np.argsort(worse, kind="stable")[:KEPT])
        tried: list[dict[str, Any]] = []
        evidence = []
        for i, smoothing in itertools.product(best, smoothings):
            pseudo, states = pseudo_counts(smoothing, votes.n_classes), levels[i]
            for _ in range(SEARCH_ROUNDS):
                states = [s.improve(float(ridges[i]), pseudo, SEARCH_STEPS) for s in states]
            tried.append({"ridge": ridges[i], "smoothing": smoothing})
            evidence.append(self._held_out(votes, fold, states))
        plainness = [(float(one["ridge"]),) for one in tried]
        return choose(tried, plainness, np.stack(evidence))[0]

    def _held_out(self, votes: Annotations, fold: Ints, states: list[State]) -> Floats:
        """Return the log-likelihood of each labeled task's labels, learned without them."""
        found = np.zeros(votes.n_tasks)
        for f, state in enumerate(states):
            found = np.where(fold == f, state.label_evidence(votes), found)
        return found[fold >= 0]

    def _start(self, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        """Return the first posterior, and the label counts it implies by worker and truth."""
        if self.start == "shares":
            shares = clamp(votes.shares(), gold)
            return shares, count_labels(votes, shares)
        nearly = normalize(np.eye(votes.n_classes) + 0.01)
        everyone = np.broadcast_to(nearly, (votes.n_workers, *nearly.shape))
        ignorant = np.full((votes.n_tasks, votes.n_classes), -np.log(votes.n_classes))
        step = expect(votes, ignorant, everyone, gold)
        return step.posterior, step.counts


def turn(design: Matrix) -> tuple[Matrix, Matrix]:
    """Rotate the design matrix to its own axes if it is wider than high; also return the inverse.

    A rotation changes neither predictions nor squared weights; the intercept stays.
    """
    if issparse(design) or design.shape[1] <= design.shape[0] + 1:
        return design, eye_array(design.shape[1], format="csr")
    left, size, right = np.linalg.svd(design[:, :-1], full_matrices=False)
    return np.hstack([left * size, design[:, -1:]]), block_diag(right.T, 1.0)


def pseudo_counts(smoothing: float | ArrayLike, n_classes: int) -> Floats:
    """Return pseudo-counts of truth x label; 0 without a prior."""
    if np.ndim(smoothing) == 0 and not np.any(smoothing):
        return np.zeros((n_classes, n_classes))
    return worker_prior(smoothing, n_classes)


def is_auto(value: object) -> bool:
    """Return whether a parameter is to be chosen."""
    return isinstance(value, str) and value == "auto"
