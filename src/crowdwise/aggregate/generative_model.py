"""Generative model: one log-linear accuracy weight per worker, truths summed out."""

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult, minimize
from scipy.special import log_expit, log_softmax
from sklearn.exceptions import ConvergenceWarning

from crowdwise.base import DEVICES, ConfusionModel, Traits, at_least, more_than, one_of
from crowdwise.inference import Engine, Posterior, Trace, fixed_prior
from crowdwise.typing import Floats

SLOPE = 1e-6  # gradient components below this mean a maximum


class GenerativeModel(ConfusionModel):
    """Infer truths with one accuracy weight per worker in a log-linear model.

    This is the generative model of data programming (Snorkel up to 0.7). The joint
    probability of labels and truths is proportional to the exponential of, for each label,
    ``weight_[w]`` if it is the truth and ``-weight_[w]`` if not, and of a second weight for
    labeling at all. Snorkel samples its gradient; here truths are summed out exactly and
    L-BFGS finds the weights.

    Given that worker ``w`` labels, the label is the truth with odds ``exp(2 weight_[w])`` to
    ``n_classes - 1``, and any other label with equal probability. So this is :class:`OneCoin`
    with the accuracy written as ``expit(2 weight_[w] - log(n_classes - 1))``, and a normal
    prior on ``weight_`` instead of pseudo-counts. Whether a worker labels does not depend on
    the truth: that part of the likelihood is a separate factor, which is maximal if each
    worker labels as often as observed (``propensity_``).

    Parameters
    ----------
    class_prior : {"uniform", "estimate"} or array of shape (n_classes,), default="uniform"
        P(truth): uniform, learned, or given. A learned prior can collapse
        into one class if workers favor that class.
    initial_weight : float, default=1.0
        Initial value of the weights, toward which the penalty pulls them. At 1, a worker is right
        on 88% of the tasks with two classes, and on 45% with ten; at 0, workers guess.
    penalty : float, default=0.1
        Strength of that pull, and of a learned prior's toward a uniform one: half of it
        times the squared distance is subtracted from the log-likelihood of all labels.
    max_iter : int, default=200
        Maximum number of steps.
    tol : float, default=1e-9
        Stop once a step improves the objective by less than this fraction.
    device : str, optional
        "cuda" or "cuda:1" to sweep on a GPU (needs PyTorch), "cpu" for the same code without
        one; by default in compiled code on this machine's cores.

    Attributes
    ----------
    weight_ : ndarray of shape (n_workers,)
        Accuracy weight of each worker; 0 for one who guesses, negative for worse.
    propensity_ : ndarray of shape (n_workers,)
        Share of the tasks that each worker labels.
    prior_ : ndarray of shape (n_classes,)
        P(truth).
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth) of each worker; the axes are worker, truth, label.
    skills_ : Series
        Probability that each worker is right.
    objective_ : list of float
        Penalized log-likelihood of the labels, given who labels what, after each step. Never
        falls.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    The maths::

        P(labels, truths)
            proportional to exp(sum over annotations of weight[w] * (1 if right, else -1))
        so that P(w is right) = sigmoid(2 weight[w] - log(K - 1)), with weight[w] ~ Normal

    Works when OneCoin does: labeling functions or workers that err at random; the normal
    prior keeps those with few labels near the others.

    Fails when workers favor a class, or copy one another, since copies count twice.

    References
    ----------
    Ratner, De Sa, Wu, Selsam and Ré (2016). Data programming: creating large training sets,
    quickly. NeurIPS 29. doi:10.48550/arXiv.1605.07723

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]]  # tasks x workers
    >>> GenerativeModel().fit(labels).weight_.round(1).tolist()
    [2.1, 2.1, -1.7]
    """

    _axes = {**ConfusionModel._axes, "weight_": ("workers_",), "propensity_": ("workers_",)}
    traits = Traits(monotone=True, learns_from_gold=True)
    _parameter_constraints = {
        "class_prior": [one_of("estimate", "uniform"), "array-like"],
        "initial_weight": [more_than(0.0)],
        "penalty": [at_least(0.0)],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        class_prior: ArrayLike = "uniform",
        initial_weight: float = 1.0,
        penalty: float = 0.1,
        max_iter: int = 200,
        tol: float = 1e-9,
        device: str | None = None,
    ) -> None:
        self.class_prior = class_prior
        self.initial_weight = initial_weight
        self.penalty = penalty
        self.max_iter = max_iter
        self.tol = tol
        self.device = device

    def _fit(self, engine: Engine) -> Posterior:
        n_workers, n_classes = engine.n_workers, engine.n_classes
        prior = fixed_prior(self.class_prior, n_classes)
        start = np.full(n_workers + n_classes, float(self.initial_weight))
        start[n_workers:] = 0.0 if prior is None else np.log(prior)
        free = np.arange(len(start)) < n_workers + (n_classes if prior is None else 0)

        def loss(point: Floats) -> tuple[float, Floats]:
            weight, logit = np.split(point, [n_workers])
            value, slopes = likelihood(engine, weight, log_softmax(logit))
            pull = np.where(free, point - start, 0.0)
            value -= self.penalty / 2 * (pull**2).sum()
            return -value, -np.where(free, slopes - self.penalty * pull, 0.0)

        self.weight_, logit = np.split(self._climb(loss, start), [n_workers])
        self.prior_ = np.exp(log_softmax(logit))
        self.confusion_ = np.exp(log_confusion_of(self.weight_, n_classes))
        self.propensity_ = np.minimum(engine.labels_per_worker() / engine.n_tasks, 1.0)
        return self._posterior(engine)

    def _climb(self, loss: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
        trace = Trace([-loss(start)[0]])

        def note(intermediate_result: OptimizeResult) -> None:  # scipy requires this name
            trace.record(-intermediate_result.fun)

        options = {"maxiter": self.max_iter, "ftol": self.tol, "gtol": SLOPE}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", callback=note, options=options)
        if found.nit >= self.max_iter and self.tol > 0:
            warnings.warn(
                f"L-BFGS stopped after max_iter={self.max_iter} steps. Raise max_iter, or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.objective_, self.n_iter_ = trace.objective, found.nit
        return found.x


def likelihood(engine: Engine, weight: Floats, log_prior: Floats) -> tuple[float, Floats]:
    """Return the labels' log-likelihood, and its gradient by weights and by prior logits."""
    log_confusion = log_confusion_of(weight, len(log_prior))
    step = engine.sweep(log_prior, log_confusion)
    accuracy = np.exp(log_confusion[:, 0, 0])
    right, given = np.einsum("wkk->w", step.counts), step.counts.sum(axis=(1, 2))
    by_logit = step.truths - step.truths.sum() * np.exp(log_prior)
    return step.evidence, np.concatenate([2.0 * (right - accuracy * given), by_logit])


def log_confusion_of(weight: Floats, n_classes: int) -> Floats:
    """Return log P(label | truth), ``(worker, truth, label)``: odds of exp(2 weight) to K - 1."""
    others = np.log(max(n_classes - 1, 1))
    right, wrong = log_expit(2.0 * weight - others), log_expit(others - 2.0 * weight) - others
    diagonal = np.eye(n_classes, dtype=bool)
    return np.where(diagonal, right[:, None, None], wrong[:, None, None])
