"""EBCC: IBCC with subtypes of every class, so that workers may make the same errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from crowdwise.base import DEVICES, THREADS, ConfusionModel, Traits, at_least, more_than, one_of
from crowdwise.inference import (
    Engine,
    Run,
    Sums,
    best_of,
    divergence,
    expected_log,
    normalize,
    until_converged,
    worker_prior,
)
from crowdwise.inference.draws import draw_even_shares
from crowdwise.typing import Floats, RandomState


@dataclass(frozen=True)
class SubtypeBelief:
    """Dirichlet parameters of all unknowns except the truths; also those of their prior."""

    classes: Floats  # (truth,)
    subtypes: Floats  # (truth, subtype)
    confusion: Floats  # (worker, truth, subtype, label)


class EBCC(ConfusionModel):
    """Infer truths with subtypes of every class, on which workers make the same errors.

    A task of class ``k`` belongs to a hidden subtype ``m`` with probability
    ``subtypes_[k, m]``, and worker ``w`` gives it the label ``l`` with a probability that
    depends on both. Errors that workers share are thus attributed to the tasks instead of
    being counted as independent evidence. Fitted by variational Bayes from several random
    starts, and the one with the best bound is kept; on real crowds, starts, and thus results
    with different seeds, differ by percentage points of accuracy.

    Parameters
    ----------
    n_subtypes : int, default=10
        Maximum number of subtypes per class; those that are not needed become empty. Time and
        memory grow with it: a step costs ``n_subtypes`` times one of :class:`IBCC`, and a table
        of worker x truth x subtype x label is stored.
    smoothing : float, pair or array of shape (n_classes, n_classes), default=(4, 1)
        Pseudo-counts of every confusion matrix, as in :class:`IBCC`.
    subtype_smoothing : float, default=0.1
        Pseudo-count of a class's subtypes, divided evenly between them. The smaller it is, the
        fewer of them survive.
    class_smoothing : "votes" or float, default="votes"
        Pseudo-count of every class: its share of the labels over all tasks plus one, which
        ties the learned class prior to the votes, or one number for all classes.
    n_restarts : int, default=5
        Number of random starts. Time grows with it; more make the result depend less on the seed.
    max_iter : int, default=500
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
    subtypes_ : ndarray of shape (n_classes, n_subtypes)
        Mean P(subtype | truth).
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Mean P(label | truth) over the subtypes; the axes are worker, truth, label.
    prior_ : ndarray of shape (n_classes,)
        Mean P(truth).
    counts_ : ndarray of shape (n_workers, n_classes, n_subtypes, n_classes)
        Dirichlet parameters of P(label | truth, subtype); the axes are worker, truth,
        subtype, label.
    log_prior_ : ndarray of shape (n_classes, n_subtypes)
        E[log P(truth, subtype)].
    skills_ : Series
        Probability that each worker is right.
    objective_ : list of float
        Lower bound on the log-evidence (ELBO) after each step of the best start. Never
        falls.
    n_iter_ : int
        Number of steps from the best start.

    Notes
    -----
    The maths::

        P(labels of i | truth k)
            = sum over m of subtypes[k, m] * prod over w of confusion[w, k, m, label of w on i]

    Works when tasks of a class come in kinds on which workers make the same errors, and
    workers have enough labels to distinguish the kinds.

    Fails when there are few labels, since each subtype has its own matrices; the starts differ,
    so different seeds may disagree by percentage points of accuracy.

    References
    ----------
    Li, Rubinstein and Cohn (2019). Exploiting worker correlation for label aggregation in
    crowdsourcing. ICML, PMLR 97. https://proceedings.mlr.press/v97/li19i.html

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]]  # tasks x workers
    >>> EBCC(n_subtypes=2, random_state=0).fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    _axes = {
        **ConfusionModel._axes,
        "counts_": ("workers_", "classes_", "subtypes", "classes_"),
        "log_prior_": ("classes_", "subtypes"),
        "subtypes_": ("classes_", "subtypes"),
    }
    traits = Traits(monotone=True, stochastic=True, learns_from_gold=True)
    _parameter_constraints = {
        "n_subtypes": [at_least(1)],
        "smoothing": [more_than(0.0), "array-like"],
        "subtype_smoothing": [more_than(0.0)],
        "class_smoothing": [one_of("votes"), more_than(0.0)],
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
        n_subtypes: int = 10,
        smoothing: ArrayLike = (4.0, 1.0),
        subtype_smoothing: float = 0.1,
        class_smoothing: str | float = "votes",
        n_restarts: int = 5,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.n_subtypes = n_subtypes
        self.smoothing = smoothing
        self.subtype_smoothing = subtype_smoothing
        self.class_smoothing = class_smoothing
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def _fit(self, engine: Engine) -> Floats:
        prior, rng = self._prior(engine.tally_votes().truths), check_random_state(self.random_state)

        def run() -> Run[SubtypeBelief]:
            seed = int(rng.randint(0, 1 << 62, dtype=np.int64))
            split = partial(split_at_random, seed=seed, n_subtypes=self.n_subtypes)
            start = update(prior, engine.tally_votes(split))
            return climb(engine, start, prior, self.max_iter, self.tol)

        best = best_of(self.n_restarts, run)
        belief = best.end
        self.counts_, self.log_prior_ = belief.confusion, log_weights(belief)
        self.prior_, self.subtypes_ = normalize(belief.classes), normalize(belief.subtypes)
        self.confusion_ = np.einsum("wkml,km->wkl", normalize(self.counts_), self.subtypes_)
        self.objective_, self.n_iter_ = best.objective, len(best.objective)
        return self._posterior(engine)

    def _prior(self, votes: Floats) -> SubtypeBelief:
        """Return the prior belief, before any worker is known."""
        n_classes, even = len(votes), self.subtype_smoothing / self.n_subtypes
        by_votes = isinstance(self.class_smoothing, str)
        classes = votes + 1.0 if by_votes else np.full(n_classes, float(self.class_smoothing))
        subtypes = np.full((n_classes, self.n_subtypes), even)
        return SubtypeBelief(classes, subtypes, worker_prior(self.smoothing, n_classes)[:, None])

    def _posterior(self, engine: Engine) -> Floats:
        return engine.posterior(self.log_prior_.ravel(), flatten(expected_log(self.counts_)))

    def _memory(self, engine: Engine) -> int:
        return self.n_subtypes * super()._memory(engine)

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"confusion_": self.confusion_, "counts_": self.counts_}


def split_at_random(shares: Floats, first: int, *, seed: int, n_subtypes: int) -> Floats:
    """Divide each task's share of a class between its subtypes at random, by task number."""
    part = draw_even_shares(seed, first, (*shares.shape, n_subtypes))
    return (shares[:, :, None] * part).reshape(len(shares), shares.shape[1] * n_subtypes)


def climb(
    engine: Engine, belief: SubtypeBelief, prior: SubtypeBelief, max_iter: int, tol: float
) -> Run[SubtypeBelief]:
    """Update the truths and the beliefs in turn until the bound converges."""
    for em in until_converged(max_iter, tol, name="EBCC"):
        step = engine.sweep(log_weights(belief).ravel(), flatten(expected_log(belief.confusion)))
        em.record(step.evidence - distance(belief, prior))
        last, belief = belief, update(prior, step)
    return Run(last, em.objective)


def update(prior: SubtypeBelief, sums: Sums) -> SubtypeBelief:
    """Add the expected counts of (truth, subtype), and of labels given them, to the prior."""
    shape = prior.subtypes.shape
    tasks = sums.truths.reshape(shape)
    labels = sums.counts.reshape(len(sums.counts), *shape, shape[0])
    return SubtypeBelief(
        prior.classes + tasks.sum(axis=1), prior.subtypes + tasks, prior.confusion + labels
    )


def log_weights(belief: SubtypeBelief) -> Floats:
    """E[log P(truth, subtype)]."""
    return expected_log(belief.classes)[:, None] + expected_log(belief.subtypes)


def distance(belief: SubtypeBelief, prior: SubtypeBelief) -> float:
    """Return how far the beliefs are from the prior: the penalty in the bound."""
    return (
        divergence(belief.classes, prior.classes)
        + divergence(belief.subtypes, prior.subtypes)
        + divergence(belief.confusion, prior.confusion)
    )


def flatten(table: Floats) -> Floats:
    """Treat each (truth, subtype) as a separate truth: (worker, truth x subtype, label)."""
    return table.reshape(len(table), -1, table.shape[-1])
