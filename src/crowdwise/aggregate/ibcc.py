"""IBCC: Bayesian Dawid-Skene, with a distribution over every confusion matrix."""

import numpy as np
from numpy.typing import ArrayLike

from crowdwise.base import (
    DEVICES,
    THREADS,
    LiveUpdates,
    PairModel,
    Traits,
    at_least,
    more_than,
    one_of,
)
from crowdwise.inference import (
    Engine,
    Posterior,
    Sums,
    divergence,
    expected_log,
    fixed_prior,
    normalize,
    until_converged,
    worker_prior,
)
from crowdwise.inference.engines.pair_belief import PairBelief
from crowdwise.typing import Floats


class IBCC(PairModel):
    """Infer truths with a distribution over every worker's confusion matrix.

    As in Dawid-Skene, worker ``w`` gives a task of true class ``k`` the label ``l`` with
    probability ``confusion_[w, k, l]``; but the matrices and the class prior are unknowns
    with Dirichlet priors, and their uncertainty is averaged over (mean-field variational
    Bayes) instead of ignored. A worker with few labels therefore stays close to the prior,
    and counts for little. A good first choice: it does not collapse on sparse data.

    Parameters
    ----------
    smoothing : float, pair or array of shape (n_classes, n_classes), default=(4, 1)
        Pseudo-counts of every confusion matrix: one number for all cells, one for being
        right (the diagonal) and one for each way of being wrong, or a matrix of truth x
        label. The higher the diagonal, the more a new worker is trusted.
    class_prior : {"estimate", "uniform"} or array of shape (n_classes,), default="estimate"
        P(truth): learned, uniform, or given.
    class_smoothing : float, default=1
        Pseudo-count of every class, if the prior is learned.
    max_iter : int, default=500
        Maximum number of steps.
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
    counts_ : ndarray of shape (n_workers, n_classes, n_classes)
        Dirichlet parameters of each worker's rows, expected label counts plus
        ``smoothing``; the axes are worker, truth, label.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Mean P(label | truth) of each worker; the axes are worker, truth, label.
    log_prior_ : ndarray of shape (n_classes,)
        E[log P(truth)], from which the posterior is computed.
    prior_ : ndarray of shape (n_classes,)
        Mean P(truth).
    skills_ : Series
        Probability that each worker is right.
    objective_ : list of float
        Lower bound on the log-evidence (ELBO) after each step. Never falls.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    The maths::

        confusion[w, k] ~ Dirichlet, prior ~ Dirichlet;
            q(truth) q(confusion) q(prior) maximize the evidence bound
        log q(truth of i = k)
            = E[log prior[k]] + sum over w of E[log confusion[w, k, label of w on i]] + constant

    Works when Dawid-Skene does, and even when workers have few labels: what is unknown
    about a worker stays uncertain and counts for little. A good first choice.

    Fails when workers make the same errors on the same tasks; and when its prior, that
    workers are mostly right, is wrong for most of a crowd.

    References
    ----------
    Kim and Ghahramani (2012). Bayesian classifier combination. AISTATS, PMLR 22.
    https://proceedings.mlr.press/v22/kim12.html

    Simpson, Roberts, Psorakis and Smith (2013). Dynamic Bayesian combination of multiple
    imperfect classifiers. doi:10.1007/978-3-642-36406-8_1

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]]  # tasks x workers
    >>> model = IBCC().fit(labels)
    >>> model.labels_.tolist(), model.skills_.round(2).tolist()
    ([0, 1, 0, 1], [0.85, 0.85, 0.58])
    """

    _axes = {**PairModel._axes, "log_prior_": ("classes_",)}
    traits = Traits(monotone=True, learns_from_gold=True)
    _updates = LiveUpdates()
    _parameter_constraints = {
        "smoothing": [more_than(0.0), "array-like"],
        "class_prior": [one_of("estimate", "uniform"), "array-like"],
        "class_smoothing": [more_than(0.0)],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
        "n_jobs": THREADS,
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        smoothing: ArrayLike = (4.0, 1.0),
        class_prior: ArrayLike = "estimate",
        class_smoothing: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.smoothing = smoothing
        self.class_prior = class_prior
        self.class_smoothing = class_smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device

    def _fit(self, engine: Engine) -> Posterior:
        fixed, smooth = fixed_prior(self.class_prior, engine.n_classes), self.class_smoothing
        pseudo, step = worker_prior(self.smoothing, engine.n_classes), engine.tally_pairs()
        for em in until_converged(self.max_iter, self.tol, name="IBCC"):
            truths = self._take_truths(step.truths)
            self.belief_ = PairBelief(engine.pairs, step.counts, pseudo)
            table, belief = self._tables(engine)
            step = engine.sweep_pairs(self.log_prior_, table)
            bound = step.evidence + belief
            if fixed is None:
                bound -= divergence(truths, np.full(engine.n_classes, smooth))
            em.record(bound)
        self.objective_, self.n_iter_ = em.objective, len(em.objective)
        return self._posterior(engine)

    def _learn(self, sums: Sums, crowd: Floats) -> None:
        self._take_truths(sums.truths)
        self.belief_ = PairBelief.of_all(sums.counts, worker_prior(self.smoothing, len(crowd)))

    def _take_truths(self, truths: Floats) -> Floats:
        """Set the belief about the classes; returns their counts, pseudo-counts included."""
        fixed, counts = fixed_prior(self.class_prior, len(truths)), truths + self.class_smoothing
        self.prior_ = normalize(counts) if fixed is None else fixed
        self.log_prior_ = expected_log(counts) if fixed is None else np.log(fixed)
        return counts

    @property
    def _log_prior(self) -> Floats:
        return self.log_prior_
