"""MACE: workers who know the truth, and workers who make labels up."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from crowdwise.base import (
    DEVICES,
    THREADS,
    Aggregator,
    Traits,
    at_least,
    by_worker,
    more_than,
    one_of,
)
from crowdwise.inference import (
    Engine,
    Posterior,
    Run,
    best_of,
    divergence,
    expected_log,
    normalize,
    positive_pair,
    until_converged,
)
from crowdwise.inference.engines.engine import CELL, CoinSums
from crowdwise.typing import Floats, RandomState


@dataclass(frozen=True)
class WorkerCounts:
    """Labels by what workers did, expected or as a prior; or the logs of their shares."""

    knowing: Floats  # (worker, 2): knew the truth, made it up
    spam: Floats  # (worker, label): made up, by label

    def plus(self, other: Self) -> Self:
        return replace(self, knowing=self.knowing + other.knowing, spam=self.spam + other.spam)


class MACE(Aggregator):
    """Infer truths with workers who sometimes know the truth and otherwise make a label up.

    On every task, worker ``w`` knows the truth and gives it with probability ``skills_[w]``;
    otherwise the label is drawn from ``spam_[w]``, whatever the task. All classes are
    equally likely a priori. EM is started ``n_restarts`` times from random values, and the run
    with the best objective is kept.

    Parameters
    ----------
    inference : {"vb", "em"}, default="vb"
        Average over the parameters (variational Bayes), or take their most probable values.
        The former works better for workers with few labels.
    knowing_prior : pair of float, default=(0.5, 0.5)
        Beta prior of "vb" on knowing: pseudo-counts of labels known and made up. Below one,
        workers are pulled to the extremes.
    spam_prior : float, default=10
        Dirichlet prior of "vb" on ``spam_``: pseudo-count of every class. The larger it is, the
        more evenly made-up labels are assumed to be distributed.
    smoothing : float, optional
        Pseudo-count of "em" on every probability, 0.01 / n_classes by default.
    n_restarts : int, default=10
        Number of random starts. Time grows with it.
    max_iter : int, default=200
        Maximum number of steps from each start.
    tol : float, default=1e-6
        Stop once a step improves the objective by less than this fraction; 0 always takes
        ``max_iter`` steps.
    random_state : int or RandomState, optional
        Random seed of the starts.
    n_jobs : int, optional
        Threads to use: all cores that this process may use by default and with -1, all but one
        with -2. Results do not depend on it.
    device : str, optional
        "cuda" or "cuda:1" to sweep on a GPU (needs PyTorch), "cpu" for the same code without
        one; by default in compiled code on this machine's cores.

    Attributes
    ----------
    skills_ : Series
        Competence: probability that each worker knows the truth. This is not the same as being
        right, which also happens by chance; see the diagonal of ``confusion_``.
    spam_ : ndarray of shape (n_workers, n_classes)
        Strategy: P(label | the worker makes it up); the axes are worker, label.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth) that follows from both; the axes are worker, truth, label.
    knowing_counts_ : ndarray of shape (n_workers, 2)
        Expected labels known and made up, prior included; ``skills_`` are their shares.
    spam_counts_ : ndarray of shape (n_workers, n_classes)
        Expected made-up labels of each class, prior included; ``spam_`` are their shares.
    objective_ : list of float
        After each step of the best start: with "vb" the lower bound on the log-evidence
        (ELBO), with "em" the log-posterior up to a constant. Never falls.
    n_iter_ : int
        Number of steps from the best start.

    Notes
    -----
    The maths::

        P(w gives l | truth k) = skill[w] * [l = k] + (1 - skill[w]) * spam[w, l]

    Works when part of the crowd labels without looking: the habits of spammers are learned,
    so that even a majority of them is recognized. Good with many classes.

    Fails when honest workers confuse two particular classes, which it can only explain as
    spam, and when classes are very unequal, since all are equally likely a priori. Different
    seeds may give different results.

    References
    ----------
    Hovy, Berg-Kirkpatrick, Vaswani and Hovy (2013). Learning whom to trust with MACE.
    NAACL-HLT. https://aclanthology.org/N13-1132

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1]]  # tasks x workers
    >>> model = MACE(inference="em", random_state=0).fit(labels)
    >>> model.labels_.tolist(), model.skills_.round(2).tolist()
    ([0, 1, 0, 1], [1.0, 1.0, 0.0])
    """

    _axes = {
        **Aggregator._axes,
        "knowing_counts_": ("workers_", 2),
        "spam_counts_": ("workers_", "classes_"),
    }
    traits = Traits(monotone=True, stochastic=True, learns_from_gold=True)
    _parameter_constraints = {
        "inference": [one_of("vb", "em")],
        "knowing_prior": ["array-like"],
        "spam_prior": [more_than(0.0)],
        "smoothing": [more_than(0.0), None],
        "n_restarts": [at_least(1)],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
        "random_state": ["random_state"],
        "n_jobs": THREADS,
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        inference: str = "vb",
        knowing_prior: ArrayLike = (0.5, 0.5),
        spam_prior: float = 10.0,
        smoothing: float | None = None,
        n_restarts: int = 10,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.inference = inference
        self.knowing_prior = knowing_prior
        self.spam_prior = spam_prior
        self.smoothing = smoothing
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    @property
    def skills_(self) -> pd.Series:
        check_is_fitted(self)
        return by_worker(normalize(self.knowing_counts_)[:, 0], self.workers_)

    @property
    def spam_(self) -> Floats:
        check_is_fitted(self)
        return normalize(self.spam_counts_)

    @property
    def confusion_(self) -> Floats:
        known = self.skills_.to_numpy()[:, None, None]
        return known * np.eye(len(self.classes_)) + (1.0 - known) * self.spam_[:, None]

    def _fit(self, engine: Engine) -> Posterior:
        rng = check_random_state(self.random_state)
        labeled = engine.labels_per_worker() > 0  # only these draw random numbers

        def run() -> Run[WorkerCounts]:
            knowing, spam = (np.ones((engine.n_workers, size)) for size in (2, engine.n_classes))
            for start in (knowing, spam):
                start[labeled] = rng.uniform(1, 2.5, start[labeled].shape)
            return self._climb(engine, WorkerCounts(knowing, spam))

        best = best_of(self.n_restarts, run)
        self.knowing_counts_, self.spam_counts_ = best.end.knowing, best.end.spam
        self.objective_, self.n_iter_ = best.objective, len(best.objective)
        return self._posterior(engine)

    def _climb(self, engine: Engine, start: WorkerCounts) -> Run[WorkerCounts]:
        """Run EM from one start."""
        prior, log_classes = self._prior(engine.n_classes), even(engine.n_classes)
        rates = log_rates(start, variational=False)
        step = engine.sweep_coins(log_classes, *log_chances(rates))
        for em in until_converged(self.max_iter, self.tol, name="MACE"):
            counts = expected_counts(step, rates).plus(prior)
            rates = log_rates(counts, variational=self.inference == "vb")
            step = engine.sweep_coins(log_classes, *log_chances(rates))
            em.record(step.evidence - self._penalty(counts, rates, prior))
        return Run(counts, em.objective)

    def _prior(self, n_classes: int) -> WorkerCounts:
        """Return the pseudo-counts of every worker."""
        if self.inference == "em":
            smoothing = self.smoothing or 0.01 / n_classes
            return WorkerCounts(np.full(2, smoothing), np.full(n_classes, smoothing))
        knowing = positive_pair(self.knowing_prior, "knowing_prior", "labels known and made up")
        return WorkerCounts(knowing, np.full(n_classes, float(self.spam_prior)))

    def _penalty(self, counts: WorkerCounts, rates: WorkerCounts, prior: WorkerCounts) -> float:
        """Return how far the workers are from the prior."""
        if self.inference == "em":
            return -float((prior.knowing * rates.knowing).sum() + (prior.spam * rates.spam).sum())
        return divergence(counts.knowing, prior.knowing) + divergence(counts.spam, prior.spam)

    def _posterior(self, engine: Engine) -> Posterior:
        counts = WorkerCounts(self.knowing_counts_, self.spam_counts_)
        rates = log_rates(counts, variational=self.inference == "vb")
        return engine.coin_posterior(even(engine.n_classes), *log_chances(rates))

    def _memory(self, engine: Engine) -> int:
        return super()._memory(engine) + CELL * engine.n_workers * engine.n_classes

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"knowing_counts_": self.knowing_counts_, "spam_counts_": self.spam_counts_}


def even(n_classes: int) -> Floats:
    """Return the log of a uniform class prior."""
    return np.full(n_classes, -np.log(n_classes))


def log_rates(counts: WorkerCounts, *, variational: bool) -> WorkerCounts:
    """M-step: return log rates (EM), or expected log rates, which sum to less than one (VB)."""
    if variational:
        return WorkerCounts(expected_log(counts.knowing), expected_log(counts.spam))
    return WorkerCounts(np.log(normalize(counts.knowing)), np.log(normalize(counts.spam)))


def log_chances(rates: WorkerCounts) -> tuple[Floats, Floats]:
    """Return log P(label | truth) if the two are equal, and if not, (worker, label).

    This is log(knows [label = truth] + (1 - knows) spam[label]).
    """
    made_up = rates.knowing[:, 1:] + rates.spam
    return np.logaddexp(rates.knowing[:, :1], made_up), made_up


def expected_counts(sums: CoinSums, rates: WorkerCounts) -> WorkerCounts:
    """E-step: return known and made-up labels, from counts by worker and label."""
    right, _ = log_chances(rates)
    known = sums.right * np.exp(rates.knowing[:, :1] - right)  # only right labels can be known
    spam = np.maximum(sums.given - known, 0.0)
    return WorkerCounts(np.stack([known.sum(axis=1), spam.sum(axis=1)], axis=1), spam)
