"""Crowds that may have given these labels: draws of truths, workers and class shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.inference import MemoryEngine, normalize, one_hot
from crowdwise.typing import Array, Floats, Ints, RandomState

MOST, FEWEST, WORK = 240, 60, 12_000_000  # draws, and annotations times draws that they may take
BURN = 40  # draws of the chain that are thrown away
APART, EASY = 5, 6_000  # steps between two draws, where there are at most so many annotations
PRIOR = 6.0  # labels that the prior of a whole confusion matrix is worth


@dataclass(frozen=True)
class CrowdDraws:
    """What workers and classes may be like, one row per draw."""

    accuracy: Floats  # (draw, worker): P(right) on a task drawn from the class shares
    shares: Floats  # (draw, class)
    right: Floats  # (draw,): share of the labeled tasks whose most probable class is true
    confusion: Array | None  # (draw, worker, truth, label), if asked for

    def interval(self, name: str, confidence: float = 0.95) -> tuple[Array, Array]:
        """Bounds of one of the above that hold so often.

        A new draw is below the k-th of n with probability k / (n + 1), and levels are those:
        numpy's own quantiles lie inside, and cover 92 % rather than 95 % with 60 draws.
        """
        tail = (1.0 - confidence) / 2
        levels = [tail, 1.0 - tail]
        low, high = np.quantile(getattr(self, name), levels, axis=0, method="weibull")
        return low, high


def draw_crowds(
    data: Annotations,
    posterior: Floats,
    gold: Ints | None = None,
    *,
    confusion: bool = False,
    random_state: RandomState = 0,
) -> CrowdDraws:
    """Draw truths and workers that may be behind the labels.

    Half of the draws take truths from ``posterior``, task by task; it should be calibrated.
    The others come from a chain that draws workers given truths and truths given workers, as if
    workers erred independently: only there does doubt about workers enter the truths.
    Together they cover what is true as often as they say, whether workers err together or not.

    Parameters
    ----------
    data : Annotations
        One label per worker and task.
    posterior : ndarray of shape (n_tasks, n_classes)
        P(truth | labels).
    gold : ndarray of shape (n_tasks,), optional
        Class number of known truths, -1 for the others.
    confusion : bool, default=False
        Whether to keep the confusion matrices of all draws.
    random_state : int or RandomState, default=0
        The seed.
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    n_draws = int(np.clip(WORK // max(data.n_annotations, 1), FEWEST, MOST))
    engine = MemoryEngine(data, gold)
    prior = matrix_prior(data, posterior)
    labeled = np.flatnonzero(data.redundancy > 0)
    label = posterior[labeled].argmax(axis=1)
    accuracy, shares, right, matrices = [], [], [], []
    for truths, matrix, share in _draws(engine, posterior, prior, n_draws // 2, rng):
        accuracy.append(np.einsum("wkk,k->w", matrix, share))
        shares.append(share)
        right.append(truths[labeled, label].mean())
        if confusion:
            matrices.append(matrix.astype(np.float32))
    kept = np.array(matrices) if confusion else None
    return CrowdDraws(np.array(accuracy), np.array(shares), np.array(right), kept)


def matrix_prior(data: Annotations, posterior: Floats) -> Floats:
    """Pseudo-counts of each (truth, label): as accurate as the crowd on average."""
    right = float(posterior[data.task, data.label].mean()) if data.n_annotations else 0.5
    n_classes = data.n_classes
    same, row = np.eye(n_classes, dtype=bool), PRIOR / max(n_classes, 1)
    wrong = max(1.0 - right, 1e-3) / max(n_classes - 1, 1)
    return row * np.where(same, right, wrong)


def _draws(
    engine: MemoryEngine, posterior: Floats, pseudo: Floats, n_each: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Truths, confusion matrices and class shares, of both kinds.

    With few workers the chain is slow: their matrices and the truths hold each other in place.
    It then makes several steps from one draw to the next, which cost little there.
    """
    for _ in range(n_each):
        truths = draw_truths(posterior, rng)
        yield truths, *draw_workers(engine, truths, pseudo, rng)
    apart = int(np.clip(APART * EASY // max(engine.annotations.n_annotations, 1), 1, APART))
    for step in range(1, apart * (BURN + n_each) + 1):
        truths = draw_truths(posterior, rng)
        confusion, prior = draw_workers(engine, truths, pseudo, rng)
        posterior = engine.posterior(np.log(prior), np.log(confusion))
        if step > apart * BURN and step % apart == 0:
            yield truths, confusion, prior


def draw_truths(posterior: Floats, rng: np.random.Generator) -> Floats:
    """A truth of each task, as rows of zeros and a one."""
    level = np.cumsum(posterior[:, :-1], axis=1)
    codes = (rng.random(len(posterior))[:, None] > level).sum(axis=1)
    return one_hot(codes, posterior.shape[1])


def draw_workers(
    engine: MemoryEngine, truths: Floats, pseudo: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Confusion matrices and class shares, given all truths."""
    rows = rng.standard_gamma(engine.count(truths) + pseudo)
    shares = rng.dirichlet(truths.sum(axis=0) + 1.0)
    tiny = np.finfo(np.float64).tiny
    return np.maximum(normalize(rows), tiny), np.maximum(shares, tiny)


def sample_tasks(data: Annotations, most: int, random_state: RandomState) -> Ints:
    """Rows of all tasks, or of random ones with about ``most`` annotations."""
    if data.n_annotations <= most:
        return np.arange(data.n_tasks)
    n_tasks = max(int(data.n_tasks * most / data.n_annotations), 1)
    return np.sort(check_random_state(random_state).permutation(data.n_tasks)[:n_tasks])
