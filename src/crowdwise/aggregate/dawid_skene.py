"""Dawid-Skene: one confusion matrix per worker, fitted by EM."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations.names import locate
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
from crowdwise.base.confusion_model import make_whole
from crowdwise.inference import (
    Engine,
    Posterior,
    Sums,
    fixed_prior,
    normalize,
    until_converged,
    worker_prior,
)
from crowdwise.inference.engines.pair_belief import PairBelief
from crowdwise.typing import Array, Floats


@dataclass(frozen=True, eq=False)
class WorkerHistory:
    """Expected label counts of workers, ``counts[worker, truth, label]``, to continue from."""

    workers: Array
    classes: Array
    counts: Floats

    def of(self, workers: Array, classes: Array) -> Floats:
        """Return the counts in the order of other workers and classes, 0 for unknown ones."""
        row, column = locate(self.workers, workers), locate(self.classes, classes)
        counts = np.zeros((len(workers), len(classes), len(classes)))
        known, seen = np.flatnonzero(row >= 0), np.flatnonzero(column >= 0)
        counts[np.ix_(known, seen, seen)] = self.counts[
            np.ix_(row[known], column[seen], column[seen])
        ]
        return counts


class DawidSkene(PairModel):
    """Infer truths with a full confusion matrix for every worker.

    Worker ``w``, shown a task of true class ``k``, gives label ``l`` with probability
    ``confusion_[w, k, l]``. EM starts from each task's share of labels.

    Parameters
    ----------
    smoothing : float, pair or array of shape (n_classes, n_classes), default=0.01
        Pseudo-counts added to every cell of a confusion matrix (a Dirichlet prior on its
        rows), so that no worker is ever certain: one number for all cells, one for being
        right (the diagonal) and one for each way of being wrong, or a matrix of truth x label.
    pooling : float, default=0
        Strength, in labels, of a prior that pulls each row of each worker's matrix toward the
        crowd's. If positive, matrices are unknowns whose uncertainty is averaged over, as in
        IBCC, and ``smoothing`` is added to the crowd's matrix instead of each worker's. This
        helps workers with few labels.
    class_prior : {"estimate", "uniform"} or array of shape (n_classes,), default="estimate"
        P(truth): learned, uniform, or given.
    history : WorkerHistory, optional
        ``history_`` of an earlier fit: counts of workers' labels of other tasks.
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
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth) of each worker; the axes are worker, truth, label.
    skills_ : Series
        Probability that each worker is right.
    history_ : WorkerHistory
        Expected label counts, the input ``history`` included.
    counts_ : ndarray of shape (n_workers, n_classes, n_classes)
        Expected label counts plus pseudo-counts; ``confusion_`` are their shares.
    objective_ : list of float
        Log-posterior of ``prior_`` and ``confusion_`` after each step, up to a constant.
        Never falls. With ``pooling``, a lower bound on the log-evidence given the crowd's
        matrix, which moves with every step: it may fall a little.
    n_iter_ : int
        Number of EM steps.

    Notes
    -----
    The maths::

        P(truth of i = k)
            proportional to prior[k] * prod over w of confusion[w, k, label of w on i]
        confusion[w, k, l]
            proportional to smoothing + sum over i of P(truth of i = k) * [w gave i the label l]
        prior[k] proportional to smoothing + sum over i of P(truth of i = k)

    With ``pooling``, log confusion is replaced by E[log confusion] under
    Dirichlet(counts + pooling * crowd): ``crowd`` is the shares in ``smoothing`` plus all
    workers' counts together.

    Works when workers have dozens of labels of each class, and are equally accurate on all
    tasks of a class: it detects spammers, and workers who confuse or favor classes.

    Fails when workers have few labels for the number of classes (a matrix has K (K - 1)
    unknowns; raise ``pooling``, or use IBCC or OneCoin), when workers make the same errors
    on hard tasks, and when a rare class is absorbed by a frequent one. It is overconfident.

    References
    ----------
    Dawid and Skene (1979). Maximum likelihood estimation of observer error-rates
    using the EM algorithm. Applied Statistics 28(1). doi:10.2307/2346806

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]]  # tasks x workers
    >>> DawidSkene().fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    traits = Traits(monotone=True, learns_from_gold=True)
    _updates = LiveUpdates(growth=1.005)  # EM has several local optima, depending on the start
    _parameter_constraints = {
        "smoothing": [more_than(0.0), "array-like"],
        "pooling": [at_least(0.0)],
        "class_prior": [one_of("estimate", "uniform"), "array-like"],
        "history": [WorkerHistory, None],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
        "n_jobs": THREADS,
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        smoothing: ArrayLike = 0.01,
        pooling: float = 0.0,
        class_prior: ArrayLike = "estimate",
        history: WorkerHistory | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.smoothing = smoothing
        self.pooling = pooling
        self.class_prior = class_prior
        self.history = history
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device

    @property
    def history_(self) -> WorkerHistory:
        check_is_fitted(self)
        return WorkerHistory(self.workers_, self.classes_, make_whole(self.seen_))

    def _fit(self, engine: Engine) -> Posterior:
        step = engine.tally_pairs()
        smoothing = worker_prior(self.smoothing, engine.n_classes)
        fixed = fixed_prior(self.class_prior, engine.n_classes)
        smooth = float(np.asarray(self.smoothing).mean()) if fixed is None else 0.0
        earlier = None if self.history is None else self._past(self.history)
        for em in until_converged(self.max_iter, self.tol):
            self.prior_ = normalize(step.truths + smooth) if fixed is None else fixed
            self.belief_ = PairBelief(engine.pairs, step.counts, smoothing, earlier)
            if self.pooling:
                crowd = normalize(self.belief_.crowd() + smoothing)
                self.belief_ = replace(self.belief_, pseudo=self.pooling * crowd)
            log_prior, (table, belief) = np.log(self.prior_), self._tables(engine)
            step = engine.sweep_pairs(log_prior, table)
            em.record(step.evidence + smooth * log_prior.sum() + belief)
        self.seen_ = replace(self.belief_, counts=step.counts, pseudo=0.0 * smoothing)
        self.objective_, self.n_iter_ = em.objective, len(em.objective)
        return self._posterior(engine)

    def _learn(self, sums: Sums, crowd: Floats) -> None:
        smoothing = worker_prior(self.smoothing, len(crowd))
        fixed = fixed_prior(self.class_prior, len(crowd))
        smooth = float(np.asarray(self.smoothing).mean())
        self.prior_ = normalize(sums.truths + smooth) if fixed is None else fixed
        pseudo = self.pooling * normalize(crowd + smoothing) if self.pooling else smoothing
        earlier = None if self.history is None else self._past(self.history)
        self.belief_ = PairBelief.of_all(sums.counts, pseudo, earlier)
        self.seen_ = replace(self.belief_, pseudo=0.0 * smoothing)

    @property
    def _averages(self) -> bool:
        return bool(self.pooling)

    def _past(self, history: WorkerHistory) -> Floats:
        return history.of(self.workers_, self.classes_)
