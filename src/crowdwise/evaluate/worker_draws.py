"""Draws of workers and class shares, given all truths, and of truths."""

from __future__ import annotations

import numpy as np

from crowdwise.inference import MemoryEngine, normalize, one_hot
from crowdwise.typing import Floats, Ints

PRIOR = 6.0  # pseudo-labels in the prior of a worker's accuracy, over all classes
HABIT = 3.0  # pseudo-errors in the prior of how errors are spread, per true class
TINY = 1e-12

Draw = tuple[Floats, Floats, Floats]  # truths, confusion matrices, class shares


def draw_truths(posterior: Floats, rng: np.random.Generator) -> Floats:
    """Draw a truth for each task, as one-hot rows."""
    return one_hot(draw_codes(posterior, rng), posterior.shape[1])


def draw_codes(proba: Floats, rng: np.random.Generator) -> Ints:
    """Draw a class number from each row of probabilities."""
    level = np.cumsum(proba[:, :-1], axis=1)
    return (rng.random(len(proba))[:, None] > level).sum(axis=1)


def draw_workers(
    engine: MemoryEngine, truths: Floats, right: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw confusion matrices and class shares, given all truths."""
    return draw_tables(engine.count(truths), truths.sum(axis=0), right, rng)


def draw_tables(
    counts: Floats, n_tasks: Floats, right: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw matrices, given (worker, truth, label) counts, and shares, given those of classes.

    Whether a label is right and, if not, which one it is have separate priors: workers as
    accurate as the crowd, and errors spread like the crowd's. One prior for both, with few
    pseudo-counts over many classes, would rule out any error not seen so far.
    """
    n_classes = counts.shape[2]
    same, worth = np.eye(n_classes, dtype=bool), PRIOR / max(n_classes, 1)
    hits = counts[:, same]
    misses = np.maximum(counts.sum(axis=2) - hits, 0.0)
    good = min(max(right, 1e-3), 1.0 - 1e-3)
    chance = rng.beta(hits + worth * good, misses + worth * (1.0 - good))[:, :, None]
    fall = HABIT * normalize(np.where(same, 0.0, counts.sum(axis=0) + 1.0) + TINY)
    habit = np.where(same, 0.0, rng.standard_gamma(counts + fall) + TINY)
    matrices = np.where(same, chance, (1.0 - chance) * normalize(habit + TINY * same))
    shares = rng.dirichlet(n_tasks + 1.0)
    return np.maximum(matrices, TINY), np.maximum(shares, TINY)
