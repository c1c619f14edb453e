"""Minimax conditional entropy: effects of worker and task on a label."""

import warnings
from collections.abc import Mapping

import numpy as np
from scipy.special import softmax

from crowdwise.annotations import Annotations
from crowdwise.base import ConfusionModel, Traits, at_least, more_than, one_of
from crowdwise.inference import Engine, MemoryEngine, Posterior
from crowdwise.inference.conditional_entropy import Solution, choose_strength, infer, solve
from crowdwise.inference.engines.kernels import Block
from crowdwise.inference.entropy_basis import Basis, EveryCell
from crowdwise.typing import Floats, RandomState

FLAT = 1.05  # if the best truths are on average this close to 1 / n_classes, no signal is left
ROUGH = 1e-4  # tolerance that is enough to compare strengths


class MinimaxEntropy(ConfusionModel):
    """Infer truths with a matrix of confusions for every worker and for every task.

    Given task ``i`` of true class ``k``, worker ``w`` gives label ``l`` with log-odds
    ``worker_effect_[w, k, l] + task_effect_[i, k, l]``: some workers confuse some classes,
    and so do some tasks. This follows from choosing the truths that make the labels
    least surprising, under the most even model that still reproduces every worker's
    and every task's label counts. All classes are equally likely a priori.

    A task's matrix is learned from a few labels, so everything depends on the penalty on
    its size. If it is too strong, all truths become equally likely: the papers' fixed 0.25
    does this to ten classes with four labels per task. If it is too weak, each task explains
    its own labels. With fewer than about ten tasks per worker, there is too little data to
    distinguish the two.

    Time grows with n_annotations x n_classes ** 2, memory with (n_workers + n_tasks) x n_classes
    ** 2: a few seconds for a million annotations of a few classes.

    Parameters
    ----------
    regularization : {"scaled", "auto"} or float, default="scaled"
        Strength of the pull of both matrices to zero, gamma in the papers: the penalty is
        ``alpha / 2`` times the squares of a worker's matrix, ``alpha = gamma * n_classes ** 2``,
        and that times tasks per worker for a task's matrix. ``"scaled"`` is the papers' 0.25
        for two classes; with more, a worker has fewer labels for each, and alpha shrinks
        accordingly, to ``2 / n_classes``.
        ``"auto"`` takes the power of four, from 4 to 1 / 1024, under which held-out
        annotations are likeliest (five folds within workers), at the cost of 20 to 35 fits;
        the best strength for predicting labels may be weaker than that for finding truths.
    max_iter : int, default=100
        Maximum number of rounds over workers, tasks and truths.
    tol : float, default=1e-6
        Stop once a round improves the objective by less than this fraction; 0 always takes
        ``max_iter`` rounds.
    random_state : int or RandomState, optional
        Random seed for the folds of ``"auto"``; otherwise nothing is random.

    Attributes
    ----------
    worker_effect_ : ndarray of shape (n_workers, n_classes, n_classes)
        Effect of each worker on the log-odds; the axes are worker, truth, label. Sigma in the
        papers.
    task_effect_ : ndarray of shape (n_tasks, n_classes, n_classes)
        Effect of each task on them; the axes are task, truth, label. Tau in the papers; zero for
        tasks that were not fitted.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth) of each worker on a task without effect.
    prior_ : ndarray of shape (n_classes,)
        P(truth), uniform.
    skills_ : Series
        Probability that each worker is right on such a task.
    regularization_ : float
        The strength used.
    objective_ : list of float
        Penalized log-likelihood of the labels after each round, summed over truths, up to a
        constant. Never falls.
    n_iter_ : int
        Number of rounds.

    Notes
    -----
    The maths::

        P(w gives i the label l | truth k)
            proportional to exp(worker_effect[w, k, l] + task_effect[i, k, l])
        penalty = alpha / 2 * |worker_effect| ** 2 + beta / 2 * |task_effect| ** 2

    Works when workers and tasks both confuse particular classes, and there are ten labels per
    task or more: then the matrix of a task is meaningful.

    Fails when tasks have few labels, so that everything depends on the penalty; when there are
    many classes, and when they are very unequal, since all are equally likely a priori. It is
    slow on large crowds.

    References
    ----------
    Zhou, Platt, Basu and Mao (2012). Learning from the wisdom of crowds by minimax entropy.
    NeurIPS 25.

    Zhou, Liu, Platt, Meek and Shah (2015). Regularized minimax conditional entropy for
    crowdsourcing. doi:10.48550/arXiv.1503.07240

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]]  # tasks x workers
    >>> MinimaxEntropy().fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    _axes = {
        **ConfusionModel._axes,
        "worker_effect_": ("workers_", "classes_", "classes_"),
        "task_effect_": ("tasks_", "classes_", "classes_"),
    }
    traits = Traits(monotone=True, learns_from_gold=True)
    _parameter_constraints = {
        "regularization": [one_of("auto", "scaled"), more_than(0.0)],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        regularization: str | float = "scaled",
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: RandomState = None,
    ) -> None:
        self.regularization = regularization
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, engine: Engine) -> Posterior:
        self.regularization_ = self._strength(engine)
        found = self._solve(engine, self.regularization_, self.tol)
        self.worker_effect_, self.task_effect_ = found.worker_effect, found.task_effect
        self.confusion_ = softmax(found.worker_effect, axis=2)
        self.prior_ = np.full(engine.n_classes, 1.0 / engine.n_classes)
        self.objective_, self.n_iter_ = found.objective, len(found.objective)
        if not isinstance(self.regularization, str):
            warn_if_flat(found, engine.n_classes, self.regularization_)
        first = engine.own_tasks[0]

        def work(block: Block, out: Floats) -> None:
            out[:] = found.posterior[block.first - first :][: block.n_tasks]

        return engine.fill_blocks(work)

    def _strength(self, engine: Engine) -> float:
        if self.regularization == "scaled":
            return self._basis(engine.n_classes).fair_penalty / engine.n_classes**2
        if self.regularization == "auto":
            annotations, gold = engine.collect()

            def fit(some: Annotations, strength: float) -> Solution:
                return self._solve(MemoryEngine(some, gold), strength, max(self.tol, ROUGH))

            return choose_strength(fit, annotations, self.random_state)
        return float(self.regularization)

    def _solve(self, engine: Engine, strength: float, tol: float) -> Solution:
        basis, penalties = self._basis(engine.n_classes), penalties_of(engine, strength)
        return solve(engine, basis, penalties, self.max_iter, tol)

    def _posterior(self, engine: Engine) -> Posterior:
        return infer(engine, self.worker_effect_, self.task_effect_)

    def _memory(self, engine: Engine) -> int:
        cells = engine.n_classes**2
        return super()._memory(engine) + 16 * cells * (engine.n_tasks + 6 * engine.n_workers)

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"worker_effect_": self.worker_effect_}

    def _task_rows(self) -> Mapping[str, Floats]:
        return {"task_effect_": self.task_effect_}

    def _average_task(self, rows: Floats) -> Floats:
        return np.zeros(rows.shape[1:])

    def _basis(self, n_classes: int) -> Basis:
        return EveryCell(n_classes)


def penalties_of(engine: Engine, strength: float) -> tuple[float, float]:
    """Return the penalty on a worker's and on a task's parameters (alpha, beta in the papers).

    Labels per worker over labels per task is tasks over workers, of those with labels.
    """

    def work(block: Block, labeled: Floats) -> None:
        labeled += np.count_nonzero(np.diff(block.cells.indptr))

    _, (labeled,) = engine.sum_blocks(work, [(1,)])
    n_workers = max(np.count_nonzero(engine.labels_per_worker()), 1)
    alpha = strength * engine.n_classes**2
    return alpha, float(alpha * max(labeled[0], 1.0) / n_workers)


def warn_if_flat(found: Solution, n_classes: int, strength: float) -> None:
    """Warn if the penalty has left no truth more likely than another."""
    if found.best < FLAT / n_classes < found.most_common:
        warnings.warn(
            f"With regularization={strength:g} all truths become equally likely: the best has a "
            f"probability of {found.best:.3f} on average, with {n_classes} classes. "
            "Lower regularization, or set it to 'scaled' or 'auto'.",
            stacklevel=4,
        )
