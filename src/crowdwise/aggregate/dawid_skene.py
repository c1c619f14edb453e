"""Dawid-Skene: one confusion matrix per worker, fitted by EM."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.base.aggregator import ConfusionModel, Traits
from crowdwise.base.params import at_least, more_than, one_of
from crowdwise.errors import ParameterError
from crowdwise.inference.simplex import clamp, gold_mask, normalize
from crowdwise.inference.stopping import until_converged
from crowdwise.inference.sweep import count, em_pass, posterior_of
from crowdwise.typing import Array, Floats, Ints


@dataclass(frozen=True, eq=False)
class WorkerHistory:
    """Expected label counts of workers, ``counts[worker, truth, label]``, to carry on."""

    workers: Array
    classes: Array
    counts: Floats

    def of(self, workers: Array, classes: Array) -> Floats:
        """The counts in the order of other workers and classes, 0 for unknown ones."""
        row, column = locate(self.workers, workers), locate(self.classes, classes)
        counts = np.zeros((len(workers), len(classes), len(classes)))
        known, seen = np.flatnonzero(row >= 0), np.flatnonzero(column >= 0)
        counts[np.ix_(known, seen, seen)] = self.counts[
            np.ix_(row[known], column[seen], column[seen])
        ]
        return counts


class DawidSkene(ConfusionModel):
    """Infer truths with a full confusion matrix for every worker.

    Worker ``w``, shown a task of true class ``k``, gives label ``l`` with probability
    ``confusion_[w, k, l]``. EM starts from each task's share of labels.

    Parameters
    ----------
    smoothing : float or array of shape (n_classes, n_classes), default=0.01
        Pseudo-counts added to every cell of a confusion matrix (a Dirichlet prior on its
        rows), so that no worker is ever certain. A larger diagonal says that workers are
        more often right than wrong.
    pooling : float, default=0
        Strength, in labels, of a prior that pulls each row of each worker's matrix towards
        the crowd's. Helps workers with few labels when there are many classes.
    class_prior : {"estimate", "uniform"} or array of shape (n_classes,), default="estimate"
        P(truth): learned, the same for all classes, or given.
    history : WorkerHistory, optional
        ``history_`` of an earlier fit; what is known of workers from other tasks.
    max_iter : int, default=100
        Most EM steps to take.
    tol : float, default=1e-6
        Stop once a step lifts the objective by less than this fraction of it; 0 takes
        ``max_iter`` steps.

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
    objective_ : list of float
        Log-posterior of ``prior_`` and ``confusion_`` after each step, up to a constant.
        Never falls.
    n_iter_ : int
        EM steps taken.

    Notes
    -----
    The maths::

        P(truth of i = k)
            proportional to prior[k] * prod over w of confusion[w, k, label of w on i]
        confusion[w, k, l]
            proportional to smoothing + sum over i of P(truth of i = k) * [w gave i the label l]
        prior[k] proportional to smoothing + sum over i of P(truth of i = k)

    Works when workers have dozens of labels of each class, and err alike on all tasks of a
    class: it sees spammers, and workers who mix up or favour classes.

    Fails when workers have few labels for the number of classes (a matrix has K (K - 1)
    unknowns; raise ``pooling``, or take IBCC or OneCoin), when workers err together on the same
    hard tasks, and when a rare class is swallowed. It is surer than it should be.

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
    _parameter_constraints = {
        "smoothing": [more_than(0.0), "array-like"],
        "pooling": [at_least(0.0)],
        "class_prior": [one_of("estimate", "uniform"), "array-like"],
        "history": [WorkerHistory, None],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
    }

    def __init__(
        self,
        *,
        smoothing: Any = 0.01,
        pooling: float = 0.0,
        class_prior: Any = "estimate",
        history: WorkerHistory | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.smoothing = smoothing
        self.pooling = pooling
        self.class_prior = class_prior
        self.history = history
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, annotations: Annotations, gold: Ints | None) -> Floats:
        cells, mask = annotations.cells, gold_mask(gold, annotations.n_classes)
        shares = clamp(annotations.shares(), gold)
        counts = count(cells, shares, annotations.n_workers, annotations.n_classes)
        truths, pseudo = shares.sum(axis=0), self._pseudo_counts(annotations, counts)
        fixed = given_prior(self.class_prior, annotations.n_classes)
        smooth = float(np.mean(self.smoothing)) if fixed is None else 0.0
        del shares
        for em in until_converged(self.max_iter, self.tol):
            self.prior_ = normalize(truths + smooth) if fixed is None else fixed
            self.confusion_ = normalize(counts + pseudo)
            log_prior, log_confusion = np.log(self.prior_), np.log(self.confusion_)
            step = em_pass(cells, log_prior, log_confusion, offset=mask)
            truths, counts = step.truths, step.counts
            penalty = smooth * log_prior.sum() + (pseudo * log_confusion).sum()
            em.record(step.evidence + penalty)
        self.objective_, self.n_iter_ = em.objective, len(em.objective)
        earlier = 0.0 if self.history is None else self._past(annotations)
        self.history_ = WorkerHistory(annotations.workers, annotations.classes, counts + earlier)
        return posterior_of(annotations, self.prior_, self.confusion_, gold)

    def _pseudo_counts(self, annotations: Annotations, counts: Floats) -> Floats:
        """What is added to the counts of each (worker, truth, label)."""
        smoothing = matrix_of(self.smoothing, annotations.n_classes, "smoothing")
        pooled = normalize(counts.sum(axis=0) + smoothing)  # (truth, label)
        pseudo = np.broadcast_to(smoothing + self.pooling * pooled, counts.shape)
        return pseudo if self.history is None else pseudo + self._past(annotations)

    def _past(self, annotations: Annotations) -> Floats:
        assert self.history is not None
        return self.history.of(annotations.workers, annotations.classes)


def given_prior(class_prior: Any, n_classes: int) -> Floats | None:
    """The class prior if it is not to be estimated."""
    if isinstance(class_prior, str):
        return None if class_prior == "estimate" else np.full(n_classes, 1.0 / n_classes)
    prior = np.asarray(class_prior, dtype=np.float64)
    if prior.shape != (n_classes,) or not (prior > 0).all():
        raise ParameterError(
            f"class_prior has shape {prior.shape} for {n_classes} classes.\n"
            "  expected: one positive number per class"
        )
    return normalize(prior)


def matrix_of(value: Any, n_classes: int, name: str) -> Floats:
    """A number, or a matrix of them, as a matrix of truth x label."""
    matrix = np.asarray(value, dtype=np.float64)
    if matrix.ndim == 0:
        return np.full((n_classes, n_classes), float(matrix))
    if matrix.shape != (n_classes, n_classes) or not (matrix > 0).all():
        raise ParameterError(
            f"{name} has shape {matrix.shape} for {n_classes} classes.\n"
            "  expected: one positive number, or one for each truth (row) and label (column)"
        )
    return matrix
