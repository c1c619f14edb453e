"""Personal classifiers: one for every worker, held together by a shared one."""

import warnings
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from crowdwise.annotations import Annotations
from crowdwise.base.learner import judged
from crowdwise.base.params import at_least, more_than
from crowdwise.learn._personal import PersonalLearner, labeled_tasks
from crowdwise.typing import Floats, Ints


class PersonalClassifier(PersonalLearner):
    """Learn a logistic regression per worker around a shared one.

    Every worker labels by a classifier of their own, which is the shared classifier, the one
    that predicts, and a deviation. The problem is convex: the result does not depend on a
    start. Any number of classes.

    Parameters
    ----------
    closeness : float, default=1
        Penalty on the squared deviations, the paper's lambda; more makes workers more alike.
    ridge : float, default=1
        Penalty on the squared weights of the shared classifier, the paper's eta.
    scale : bool, default=True
        Whether to standardise features with the mean and deviation of the training rows.
    max_iter : int, default=1000
        Most steps of the optimiser (L-BFGS).
    tol : float, default=1e-6
        Stop once no slope of the loss per label is larger than this.

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
        Weights of each worker's.
    objective_ : list of float
        Minus the penalised loss after each step. Never falls.
    n_iter_ : int
        Steps taken.

    Notes
    -----
    The maths::

        P(w gives i the label l) = softmax(x_i @ (weights + deviation[w]))[l]
        loss = - sum of logs
            + closeness / 2 * sum over w of |deviation[w]| ** 2 + ridge / 2 * |weights| ** 2

    Works when workers differ in opinion rather than in skill: each draws the line elsewhere,
    and the shared line is what is wanted.

    Fails when workers are random on some tasks, which no line explains, and with few labels per
    worker for the number of features.

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

    def _fit(self, X: Any, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        design, shape = self._learn_design(X), (votes.n_workers + 1, -1, votes.n_classes)
        labeled = labeled_tasks(design, votes, gold)
        self.objective_: list[float] = []

        def loss(flat: Floats) -> tuple[float, Floats]:
            parts = flat.reshape(shape)
            value, slope = labeled.loss(together(parts))
            more, steeper = penalized(parts, self.closeness, self.ridge)
            slope[0] += slope[1:].sum(axis=0)  # the shared part is in every classifier
            return value + more, (slope + steeper).reshape(-1)

        def record(intermediate_result: Any) -> None:
            self.objective_.append(-float(intermediate_result.fun))

        start = np.zeros((votes.n_workers + 1) * design.shape[1] * votes.n_classes)
        options = {"maxiter": self.max_iter, "ftol": 0.0, "gtol": self.tol * votes.n_annotations}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options, callback=record)
        if found.status == 1:
            warnings.warn(
                f"PersonalClassifier stopped after max_iter={self.max_iter} steps before the "
                f"slope fell to tol={self.tol:.1e} per label. Raise max_iter, or raise tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.n_iter_ = len(self.objective_)
        weights = together(found.x.reshape(shape))
        self.weights_, self.worker_weights_ = weights[0], weights[1:]
        return judged(votes, self.predict_proba(X), gold)


def together(parts: Floats) -> Floats:
    """All classifiers: the shared one, and it with each worker's deviation."""
    weights = parts + parts[:1]
    weights[0] = parts[0]
    return weights


def penalized(parts: Floats, closeness: float, ridge: float) -> tuple[float, Floats]:
    """Penalty on the shared classifier (the first part) and on the deviations; its slope."""
    strength = np.full((len(parts), 1, 1), closeness)
    strength[0] = ridge
    return 0.5 * float((strength * parts**2).sum()), strength * parts
