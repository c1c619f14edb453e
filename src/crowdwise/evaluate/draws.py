"""Crowds that may have given these labels: draws of truths, workers and class shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.inference import MemoryEngine, normalize, one_hot
from crowdwise.typing import Array, Floats, Ints, RandomState

MOST, FEWEST, WORK = 240, 60, 120_000_000  # draws, and annotations times draws that they may take
BURN = 40  # steps of the chain before its first draw
PRIOR = 6.0  # labels that the prior of a whole confusion matrix is worth


@dataclass(frozen=True)
class CrowdDraws:
    """What workers and classes may be like, one row per draw."""

    accuracy: Floats  # (draw, worker): P(right) on a task drawn from the class shares
    shares: Floats  # (draw, class)
    confusion: Floats | None  # (draw, worker, truth, label), if asked for

    def interval(self, name: str, confidence: float = 0.95) -> tuple[Array, Array]:
        """Bounds of ``accuracy``, ``shares`` or ``confusion`` that hold so often."""
        tail = (1.0 - confidence) / 2
        low, high = np.quantile(getattr(self, name), [tail, 1.0 - tail], axis=0)
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
    accuracy, shares, matrices = [], [], []
    for matrix, share in _draws(engine, posterior, prior, n_draws // 2, rng):
        accuracy.append(np.einsum("wkk,k->w", matrix, share))
        shares.append(share)
        if confusion:
            matrices.append(matrix)
    kept = np.array(matrices) if confusion else None
    return CrowdDraws(np.array(accuracy), np.array(shares), kept)


def matrix_prior(data: Annotations, posterior: Floats) -> Floats:
    """Pseudo-counts of each (truth, label): as accurate as the crowd on average."""
    right = float(posterior[data.task, data.label].mean()) if data.n_annotations else 0.5
    n_classes = data.n_classes
    same, row = np.eye(n_classes, dtype=bool), PRIOR / max(n_classes, 1)
    wrong = max(1.0 - right, 1e-3) / max(n_classes - 1, 1)
    return row * np.where(same, right, wrong)


def _draws(
    engine: MemoryEngine, posterior: Floats, pseudo: Floats, n_each: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, Floats]]:
    """Confusion matrices and class shares, of both kinds."""
    for _ in range(n_each):
        yield draw_workers(engine, draw_truths(posterior, rng), pseudo, rng)
    for step in range(BURN + n_each):
        confusion, prior = draw_workers(engine, draw_truths(posterior, rng), pseudo, rng)
        posterior = engine.posterior(np.log(prior), np.log(confusion))
        if step >= BURN:
            yield confusion, prior


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
