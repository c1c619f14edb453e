"""MMSR: workers' skills from how often each pair of them agrees."""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from crowdwise import progress
from crowdwise.annotations import Annotations
from crowdwise.base import ConfusionModel, Traits, at_least, by_worker, one_of
from crowdwise.inference import Engine, Posterior, normalize, one_coin_confusion
from crowdwise.inference.moments import trimmed_mean
from crowdwise.inference.rows import LabelRows
from crowdwise.typing import Floats, Ints

SIGN_STEPS = 100  # steps of the power iteration that identifies liars


@dataclass(frozen=True)
class WorkerPairs:
    """Pairs of workers with shared tasks, as sparse symmetric matrices worker x worker."""

    agreement: csr_array  # chance-corrected: 1 always agree, 0 as often as by chance
    common: csr_array  # shared tasks; the same cells as agreement

    @property
    def degree(self) -> Ints:
        """Number of others each worker shares tasks with."""
        return np.diff(self.common.indptr)


class MMSR(ConfusionModel):
    """Infer truths by weighting workers, whose skills come from how pairs of them agree.

    If errors are spread evenly over the other classes, the chance-corrected agreement of two
    workers is the product of their skills. So the matrix of agreements has rank one, and the
    skills are read off it without guessing any truth; entries that are far off are trimmed,
    so a minority of colluding or erratic workers does little harm. Truths follow by
    weighted vote. Memory grows with the number of pairs of workers with shared tasks.

    Parameters
    ----------
    n_trimmed : "auto" or int, default="auto"
        How many of a worker's pairs to leave out on each side, the largest and smallest
        ones beyond the current estimate. ``"auto"`` is as many as the least connected
        worker can spare (half of its pairs minus one); 0 trims nothing.
    max_iter : int, default=1000
        Maximum number of rounds.
    tol : float, default=1e-5
        Stop once a round changes no skill by more than this; 0 always takes ``max_iter``
        rounds.

    Attributes
    ----------
    skills_ : Series
        Probability that each worker is right; below 1 / n_classes for one who is wrong more
        often than by chance. A worker without shared tasks gets the average.
    weights_ : Series
        Weight of each worker's vote, log((n_classes - 1) skill / (1 - skill)).
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth) that follows; the axes are worker, truth, label.
    prior_ : ndarray of shape (n_classes,)
        P(truth), uniform.
    n_iter_ : int
        Number of rounds.

    Notes
    -----
    The maths::

        E[(K * agreement of v and w - 1) / (K - 1)]
            = skill[v] * skill[w], fitted with trimmed means
        weight[w] = log((K - 1) accuracy[w] / (1 - accuracy[w])), accuracy[w]
            = (1 + (K - 1) skill[w]) / K

    Works when pairs of workers share many tasks, and a minority of workers is adversarial or
    copies: outliers are trimmed away.

    Fails when pairs of workers share few tasks, so that agreements are noise; when workers
    favor a class, which looks like agreement; and when more than half of a worker's partners
    are bad.

    References
    ----------
    Ma and Olshevsky (2020). Adversarial crowdsourcing through robust rank-one matrix
    completion. NeurIPS 33. https://arxiv.org/abs/2010.12181

    Examples
    --------
    >>> labels = [[0, 0, 0, 1], [1, 1, 1, 0], [0, 0, 1, 1], [1, 1, 1, 0], [0, 1, 0, 1]]
    >>> model = MMSR().fit(labels)  # tasks x workers; the last worker lies
    >>> model.labels_.tolist(), bool(model.weights_[3] < 0)
    ([0, 1, 0, 1, 0], True)
    """

    traits = Traits(blockwise=False)
    _parameter_constraints = {
        "n_trimmed": [one_of("auto"), at_least(0)],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
    }

    def __init__(
        self, *, n_trimmed: str | int = "auto", max_iter: int = 1000, tol: float = 1e-5
    ) -> None:
        self.n_trimmed = n_trimmed
        self.max_iter = max_iter
        self.tol = tol

    @property
    def weights_(self) -> pd.Series:
        skill, n_others = self.skills_.to_numpy(), max(len(self.classes_) - 1, 1)
        with np.errstate(divide="ignore"):  # with a single class, nobody can be wrong
            weight = np.log(n_others * skill / (1.0 - skill))
        return by_worker(weight, self.workers_, "weight")

    def _fit(self, engine: Engine) -> Posterior:
        annotations, _ = engine.collect()
        n_tasks, n_classes = annotations.n_tasks, annotations.n_classes
        pairs = pairs_of(annotations)
        labeled = engine.labels_per_worker() > 0
        margin = 1.0 / np.sqrt(n_tasks + 1.0)  # nobody is known to be perfect
        size, self.n_iter_ = rank_one(
            pairs, self._count_trimmed(pairs.degree[labeled]), margin, self.max_iter, self.tol
        )
        skill = np.clip(size * signs(pairs), margin - 1.0 / max(n_classes - 1, 1), 1.0 - margin)
        self.prior_ = normalize(np.ones(n_classes))
        accuracy = (1.0 + (n_classes - 1) * skill) / n_classes
        self.confusion_ = one_coin_confusion(accuracy, n_classes)
        return self._posterior(engine)

    def _count_trimmed(self, degree: Ints) -> int:
        """Return how many pairs each worker leaves out on each side, given all degrees."""
        if not isinstance(self.n_trimmed, str):
            return int(self.n_trimmed)
        return max(int(degree.min()) // 2 - 1, 0)


def pairs_of(annotations: Annotations) -> WorkerPairs:
    """Compute the agreement of each pair of workers, scaled to 0 by chance and 1 at best."""
    rows, n_classes = LabelRows.of(annotations), annotations.n_classes
    choice, who = rows.task * n_classes + rows.label, (rows.worker, rows.weight)
    common = meetings(rows.task, *who, annotations.n_workers)
    agreed = meetings(choice, *who, annotations.n_workers)
    share = (agreed + common).data / common.data - 1.0  # the sum has all cells of common
    corrected = (n_classes * share - 1.0) / max(n_classes - 1, 1)
    return WorkerPairs(csr_array((corrected, common.indices, common.indptr), common.shape), common)


def meetings(place: Ints, worker: Ints, weight: Floats, n_workers: int) -> csr_array:
    """Count how often two workers share a place, as a matrix with zero diagonal."""
    shape = int(place.max()) + 1, n_workers
    present = csr_array((weight, (place, worker)), shape=shape)
    met = (present.T @ present).tocoo()
    row, column = met.coords
    apart = row != column
    return csr_array((met.data[apart], (row[apart], column[apart])), shape=met.shape)


def rank_one(
    pairs: WorkerPairs, n_trimmed: int, least: float, max_iter: int, tol: float
) -> tuple[Floats, int]:
    """Return sizes whose products approximate ``|agreement|``, and the number of rounds.

    Two copies take turns: with one fixed, each of a worker's pairs claims a value for the
    other, and the trimmed mean of the claims is taken.
    """
    magnitude, alone = abs(pairs.agreement), pairs.degree == 0
    left = right = np.ones(len(alone))
    changes: list[float] = []
    for _ in progress.track(range(max_iter), "MMSR, at most"):
        before = left
        right = np.maximum(trimmed_mean(claims(magnitude, left), right, n_trimmed), least)
        left = np.maximum(trimmed_mean(claims(magnitude, right), left, n_trimmed), least)
        changes.append(float(np.abs(left - before).max()))
        if changes[-1] < tol:
            break
    if changes[-1] >= tol > 0:
        warnings.warn(
            f"MMSR stopped after max_iter={max_iter} rounds while skills still changed by "
            f"{changes[-1]:.1e} per round (tol={tol:.1e}). Raise max_iter, or raise tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
    size = np.sqrt(left * right)
    size[alone] = 1.0 if alone.all() else size[~alone].mean()
    return size, len(changes)


def claims(magnitude: csr_array, held: Floats) -> csr_array:
    """Return the size that each of a worker's pairs claims for the worker."""
    ratio = magnitude.data / held[magnitude.indices]
    return csr_array((ratio, magnitude.indices, magnitude.indptr), shape=magnitude.shape)


def signs(pairs: WorkerPairs) -> Floats:
    """Return which workers agree with the majority (1) and which oppose it (-1).

    Power iteration on the signed graph of agreements, starting from an honest crowd; each
    connected part of the crowd is thereby judged by itself.
    """
    evidence = pairs.agreement * pairs.common
    strength = np.maximum(abs(evidence).sum(axis=1), np.finfo(float).tiny)
    side = np.ones(len(strength))
    for _ in range(SIGN_STEPS):
        side = side + (evidence @ side) / strength
        side /= max(np.abs(side).max(), np.finfo(float).tiny)
    return np.where(side < -1e-12, -1.0, 1.0)
