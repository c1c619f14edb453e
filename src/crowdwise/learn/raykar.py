"""Raykar: logistic regression and a confusion matrix per worker, together by EM."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, xlogy

from crowdwise.annotations import Annotations, find_labeled
from crowdwise.base.params import at_least, one_of
from crowdwise.inference import count_labels
from crowdwise.inference.dirichlet import worker_prior
from crowdwise.inference.simplex import clamp, normalize
from crowdwise.inference.stopping import until_converged
from crowdwise.learn.confusion_learner import expect
from crowdwise.learn.softmax_regression import LinearLearner, penalty, softmax_regression
from crowdwise.typing import FeaturesLike, Floats, Ints


class Raykar(LinearLearner):
    """Learn a logistic regression and every worker's confusion matrix by EM.

    A task's truth ``k`` has probability ``softmax(x @ weights_)[k]``, and worker ``w`` turns it
    into label ``l`` with probability ``confusion_[w, k, l]``; all labels of a task share one
    truth. Without a prior (``smoothing=0``) a class that a worker never met leaves a row of
    their matrix without labels. Such rows are uniform here; as 0 / 0 they break the method
    on thin crowds with many classes.

    Parameters
    ----------
    smoothing : float, pair or array of shape (n_classes, n_classes), default=0.01
        Pseudo-counts of every confusion matrix: one number for all cells, one for being right
        and one for each way of being wrong, or a matrix of truth x label. 0 for no prior.
    ridge : float, default=1
        Penalty on the squared weights; more makes the classifier plainer.
    start : {"identity", "shares"}, default="identity"
        Where EM starts: from workers who are nearly always right and a classifier that knows
        nothing, or from each task's share of labels.
    scale : bool, default=True
        Whether to standardize features with the mean and deviation of the training rows.
    max_iter : int, default=100
        Most EM steps to take.
    tol : float, default=1e-5
        Stop once a step lifts the objective by less than this fraction of it; 0 takes
        ``max_iter`` steps.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | features, labels) of the training tasks.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth); the axes are worker, truth, label.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks, by this model.
    weights_ : ndarray of shape (n_features + 1, n_classes)
        Weights of the scaled features; the last row is the intercept.
    objective_ : list of float
        Log-posterior of ``weights_`` and ``confusion_`` after each step, up to a constant.
        Never falls.
    n_iter_ : int
        EM steps taken.

    Notes
    -----
    The maths::

        P(truth of i = k) proportional to softmax(x_i @ weights)[k]
            * prod over w of confusion[w, k, label of w on i]
        M-step: logistic regression on these; confusion from counts plus smoothing

    Works when classes are nearly linear in the features and tasks have several labels: both
    parts help each other, and EM needs no tuning.

    Fails when classes are not linear, and when workers have few labels for the number of
    classes (then ``smoothing`` has to do the work).

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
        "smoothing": [at_least(0.0), "array-like"],
        "ridge": [at_least(0.0)],
        "start": [one_of("identity", "shares")],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
    }

    def __init__(
        self,
        *,
        smoothing: float | ArrayLike = 0.01,
        ridge: float = 1.0,
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
        design, pseudo = self._learn_design(X), pseudo_counts(self.smoothing, votes.n_classes)
        # A task that nobody labeled says nothing: its posterior is the classifier's own.
        labeled = find_labeled(votes) if gold is None else find_labeled(votes) | (gold >= 0)
        self.weights_ = np.zeros((design.shape[1], votes.n_classes))
        posterior, counts = self._start(votes, gold)
        for em in until_converged(self.max_iter, self.tol, name="Raykar"):
            confusion = normalize(counts + pseudo)
            target = posterior * labeled[:, None]
            self.weights_ = softmax_regression(design, target, self.ridge, self.weights_)
            log_class = log_softmax(design @ self.weights_, axis=1)
            step = expect(votes, log_class, confusion, gold)
            posterior, counts = step.posterior, step.counts
            log_prior = xlogy(pseudo, confusion).sum() - penalty(self.weights_, self.ridge)
            em.record(step.evidence + log_prior)
        self.objective_, self.n_iter_ = em.objective, len(em.objective)
        return posterior, confusion

    def _start(self, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        """The first posterior, and the labels it makes of every worker and truth."""
        if self.start == "shares":
            shares = clamp(votes.shares(), gold)
            return shares, count_labels(votes, shares)
        nearly = normalize(np.eye(votes.n_classes) + 0.01)
        everyone = np.broadcast_to(nearly, (votes.n_workers, *nearly.shape))
        ignorant = np.full((votes.n_tasks, votes.n_classes), -np.log(votes.n_classes))
        step = expect(votes, ignorant, everyone, gold)
        return step.posterior, step.counts


def pseudo_counts(smoothing: float | ArrayLike, n_classes: int) -> Floats:
    """What is added to the counts of truth x label; nothing where there is no prior."""
    if np.ndim(smoothing) == 0 and not np.any(smoothing):
        return np.zeros((n_classes, n_classes))
    return worker_prior(smoothing, n_classes)
