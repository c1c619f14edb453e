"""Hard Dawid-Skene: confusion matrices counted from decisions, also known as Fast D&S."""

import numpy as np
from numpy.typing import ArrayLike

from crowdwise.annotations import tied
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
    MemoryEngine,
    Posterior,
    Sums,
    as_confusion_counts,
    fixed_prior,
    normalize,
    share_best,
    until_converged,
)
from crowdwise.inference.engines.pair_belief import PairBelief
from crowdwise.typing import Floats

SETTLED = 5e-3  # the soft phase ends once class shares change by less than this in total


class HardDawidSkene(PairModel):
    """Infer truths with confusion matrices that are counted from decided labels.

    The model is that of :class:`DawidSkene`, but every step first decides on one label per
    task and then counts it as the truth (hard EM). It converges in fewer steps, at
    some cost in accuracy if tasks are hard to decide. Tied classes share a task in equal
    parts, so nothing is random.

    Parameters
    ----------
    hybrid : bool, default=False
        Whether to take soft steps, as :class:`DawidSkene` does, until the shares of the
        classes have settled, and hard ones only then. Slower, and usually more accurate.
    smoothing : float or array of shape (n_classes, n_classes), default=0.01
        Pseudo-counts added to every cell of a confusion matrix. Without them, a count of
        zero would rule out a class forever.
    class_prior : {"estimate", "uniform"} or array of shape (n_classes,), default="estimate"
        P(truth): learned, uniform, or given.
    ties : {"share", "first"}, default="share"
        How to start on a task whose vote is tied: its best classes share it, or the first in
        ``classes_`` gets it, as in the reference code. With the latter, the names of the
        classes matter.
    max_iter : int, default=100
        Maximum number of steps.
    tol : float, default=1e-6
        Stop once a step changes the objective by less than this fraction; 0 always takes
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
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | labels) under the two, not rounded to the decisions.
    skills_ : Series
        Probability that each worker is right.
    objective_ : list of float
        Log-likelihood of labels and decisions, plus the log-prior, after each step. Never
        falls, unless ``hybrid``: soft steps count all truths a task may have.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    The maths::

        truth[i] = argmax over k of
            log prior[k] + sum over w of log confusion[w, k, label of w on i]
        confusion[w, k, l]
            proportional to smoothing + number of tasks with truth k that w gave the label l

    Works when there are enough labels per task to decide most tasks clearly; its labels are
    then those of Dawid-Skene, in fewer steps.

    Fails when many tasks are nearly tied: an early wrong decision counts as a fact and
    reinforces itself, until a rare class may disappear. Its estimates of the workers are too
    optimistic for the same reason.

    References
    ----------
    Sinha, Rao and Balasubramanian (2018). Fast Dawid-Skene: a fast vote aggregation scheme for
    sentiment classification. doi:10.48550/arXiv.1803.02781

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]]  # tasks x workers
    >>> HardDawidSkene().fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    traits = Traits(monotone=True, learns_from_gold=True)
    _updates = LiveUpdates(growth=1.005)  # EM has several local optima, depending on the start
    _parameter_constraints = {
        "hybrid": ["boolean"],
        "smoothing": [more_than(0.0), "array-like"],
        "class_prior": [one_of("estimate", "uniform"), "array-like"],
        "ties": [one_of("share", "first")],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
        "n_jobs": THREADS,
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        hybrid: bool = False,
        smoothing: ArrayLike = 0.01,
        class_prior: ArrayLike = "estimate",
        ties: str = "share",
        max_iter: int = 100,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.hybrid = hybrid
        self.smoothing = smoothing
        self.class_prior = class_prior
        self.ties = ties
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device

    def _fit(self, engine: Engine) -> Posterior:
        fixed, hard = fixed_prior(self.class_prior, engine.n_classes), not self.hybrid
        pseudo = as_confusion_counts(self.smoothing, engine.n_classes)
        smooth = float(pseudo.mean()) if fixed is None else 0.0
        last = engine.tally_pairs(self._decide if hard else None)
        for em in until_converged(self.max_iter, self.tol):
            self.prior_ = normalize(last.truths + smooth) if fixed is None else fixed
            self.belief_ = PairBelief(engine.pairs, last.counts, pseudo)
            log_prior, (table, belief) = np.log(self.prior_), self._tables(engine)
            step = engine.sweep_pairs(log_prior, table, hard=hard)
            em.record(step.evidence + smooth * log_prior.sum() + belief)
            moved = np.abs(normalize(step.truths) - normalize(last.truths)).sum()
            hard, last = hard or moved <= SETTLED, step
        self.objective_, self.n_iter_ = em.objective, len(em.objective)
        return self._posterior(engine)

    def _decide(self, shares: Floats, _: int) -> Floats:
        return decide(shares, self.ties)

    def _learn(self, sums: Sums, crowd: Floats) -> None:
        fixed = fixed_prior(self.class_prior, len(crowd))
        pseudo = as_confusion_counts(self.smoothing, len(crowd))
        self.prior_ = normalize(sums.truths + pseudo.mean()) if fixed is None else fixed
        self.belief_ = PairBelief.of_all(sums.counts, pseudo)

    def _count(self, engine: MemoryEngine, posterior: Floats) -> Floats:
        return share_best(posterior)

    @property
    def _averages(self) -> bool:
        return False


def decide(posterior: Floats, ties: str) -> Floats:
    """Put all mass on the best class of each task: on the first of several, or in equal parts."""
    if ties == "first":
        return np.eye(posterior.shape[1])[tied(posterior).argmax(axis=1)]
    return share_best(posterior)
