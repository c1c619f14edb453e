"""One-coin Dawid-Skene: one accuracy per worker, fitted by EM."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from crowdwise.base import (
    DEVICES,
    THREADS,
    ConfusionModel,
    LiveUpdates,
    Traits,
    at_least,
    by_worker,
    more_than,
    one_of,
)
from crowdwise.base.confusion_model import refuse_matrices
from crowdwise.errors import ParameterError, explain
from crowdwise.inference import (
    Engine,
    Posterior,
    Sums,
    fixed_prior,
    log_of,
    normalize,
    one_coin_confusion,
    until_converged,
)
from crowdwise.inference.engines import CoinSums
from crowdwise.typing import Floats


class OneCoin(ConfusionModel):
    """Infer truths with one accuracy per worker.

    Worker ``w`` is right with probability ``accuracy_[w]``, whatever the truth, and errs
    evenly: all wrong labels are equally likely. With few labels per worker this is more
    stable than a confusion matrix, but it cannot represent a worker who favors a class. EM
    starts from each task's share of labels.

    Parameters
    ----------
    smoothing : float or pair of floats, default=0.01
        Right and wrong labels added to each worker's (a Beta prior on the accuracy), so
        that no worker is ever certain. More right than wrong ones mean that workers are
        assumed to be mostly right.
    class_prior : {"uniform", "estimate"} or array of shape (n_classes,), default="uniform"
        P(truth): uniform, learned, or given. A learned prior can collapse
        into one class if workers favor that class.
    max_iter : int, default=100
        Maximum number of EM steps.
    tol : float, default=1e-6
        Stop once a step improves the objective by less than this fraction; 0 always takes
        ``max_iter`` steps.
    n_jobs : int, optional
        Threads to use: all cores that this process may use by default and with -1, all but one
        with -2. Results do not depend on it.
    device : str, optional
        "cuda" or "cuda:1" to sweep on a GPU (needs PyTorch), "cpu" for the same code without
        one; by default in compiled code on this machine's cores.

    Attributes
    ----------
    prior_ : ndarray of shape (n_classes,)
        P(truth).
    accuracy_ : ndarray of shape (n_workers,)
        Probability that each worker is right.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        The same as P(label | truth); the axes are worker, truth, label.
    skills_ : Series
        ``accuracy_`` by worker.
    objective_ : list of float
        Log-posterior of ``prior_`` and ``accuracy_`` after each step, up to a constant.
        Never falls.
    n_iter_ : int
        Number of EM steps.

    Notes
    -----
    The maths::

        P(w gives l | truth k) = accuracy[w] if l = k, else (1 - accuracy[w]) / (K - 1)
        accuracy[w] = (smoothing + sum over i of P(truth of i = label of w on i))
            / (labels of w + 2 smoothing)

    Works when workers have few labels and err at random: one number each is quickly learned.

    Fails when workers favor a class or confuse two, since every error counts the same, and
    when classes differ much in difficulty.

    References
    ----------
    Zhang, Chen, Zhou and Jordan (2016). Spectral methods meet EM: a provably optimal algorithm
    for crowdsourcing. JMLR 17(102). doi:10.48550/arXiv.1406.3824

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]]  # tasks x workers
    >>> OneCoin().fit(labels).skills_.round(2).tolist()
    [1.0, 1.0, 0.0]
    """

    _axes = {**ConfusionModel._axes, "accuracy_": ("workers_",)}
    traits = Traits(monotone=True, learns_from_gold=True, compact=True)
    _updates = LiveUpdates(growth=1.005)  # EM has several local optima, depending on the start
    _parameter_constraints = {
        "smoothing": [more_than(0.0), "array-like"],
        "class_prior": [one_of("estimate", "uniform"), "array-like"],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
        "n_jobs": THREADS,
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        smoothing: ArrayLike = 0.01,
        class_prior: ArrayLike = "uniform",
        max_iter: int = 100,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.smoothing = smoothing
        self.class_prior = class_prior
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device

    @property
    def confusion_(self) -> Floats:  # type: ignore[override]  # made on request: it may be huge
        check_is_fitted(self)
        n_workers, n_classes = len(self.accuracy_), len(self.classes_)
        refuse_matrices(n_workers, n_classes, "use accuracy_, from which they follow")
        return one_coin_confusion(self.accuracy_, n_classes)

    @property
    def skills_(self) -> pd.Series:
        check_is_fitted(self)
        return by_worker(self.accuracy_, self.workers_)

    def _fit(self, engine: Engine) -> Posterior:
        n_classes, pseudo = engine.n_classes, right_and_wrong(self.smoothing)
        fixed = fixed_prior(self.class_prior, n_classes)
        smooth = float(pseudo.mean()) if fixed is None else 0.0
        truths, accuracy = self._start(engine, pseudo)
        for em in until_converged(self.max_iter, self.tol):
            self.accuracy_ = accuracy
            self.prior_ = normalize(truths + smooth) if fixed is None else fixed
            log_prior = np.log(self.prior_)
            step = engine.sweep_coins(log_prior, *log_chances(accuracy, n_classes))
            heard = step.given.reshape(len(accuracy), -1).any(axis=1)  # a prior alone has no effect
            belief = smooth * log_prior.sum() + log_beta(accuracy[heard], pseudo)
            em.record(step.evidence + belief)
            truths, accuracy = step.truths, accuracy_of(step, pseudo)
        self.objective_, self.n_iter_ = em.objective, len(em.objective)
        return self._posterior(engine)

    def _learn(self, sums: Sums, crowd: Floats) -> None:
        pseudo, fixed = right_and_wrong(self.smoothing), fixed_prior(self.class_prior, len(crowd))
        self.accuracy_ = accuracy_of(CoinSums.of(sums), pseudo)
        self.prior_ = normalize(sums.truths + pseudo.mean()) if fixed is None else fixed

    def _start(self, engine: Engine, pseudo: Floats) -> tuple[Floats, Floats]:
        """Return the initial expected number of tasks of each truth, and initial accuracies."""
        votes = engine.tally_coins()
        return votes.truths, accuracy_of(votes, pseudo)

    def _posterior(self, engine: Engine) -> Posterior:
        chances = log_chances(self.accuracy_, engine.n_classes)
        return engine.coin_posterior(log_of(self.prior_), *chances)

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"accuracy_": self.accuracy_}


def log_chances(accuracy: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Return log P(label | truth) if the two are equal, and if not."""
    if n_classes == 1:  # no errors are possible
        return np.zeros_like(accuracy), np.zeros_like(accuracy)
    return np.log(accuracy), np.log((1.0 - accuracy) / (n_classes - 1))


def accuracy_of(sums: CoinSums, pseudo: Floats) -> Floats:
    """M-step: return the share of right labels."""
    found = (sums.right + pseudo[0]) / (sums.given + pseudo.sum())
    # Next to huge weights, pseudo-counts are lost in rounding; 0 and 1 would be final.
    return np.clip(found, np.finfo(np.float64).tiny, 1.0 - np.finfo(np.float64).epsneg)


def log_beta(accuracy: Floats, pseudo: Floats) -> float:
    """Return the log of the Beta prior of all accuracies, up to a constant."""
    return float(pseudo[0] * np.log(accuracy).sum() + pseudo[1] * np.log1p(-accuracy).sum())


def right_and_wrong(smoothing: ArrayLike) -> Floats:
    """Return pseudo-counts of right and of wrong labels, from one number or a pair."""
    pair = np.asarray(smoothing, dtype=np.float64)
    if pair.shape not in {(), (2,)} or not (pair > 0).all():
        raise ParameterError(
            explain(
                f"smoothing={smoothing!r} is not one or two positive numbers.",
                expected="one number, or a pair (right, wrong)",
                fix="give smoothing=1.0, or smoothing=(2.0, 1.0)",
            )
        )
    return np.broadcast_to(pair, (2,))
