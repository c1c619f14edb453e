"""Distributions over the classes, as rows of arrays: scaling, ties and known truths."""

import numpy as np

from crowdwise.typing import Array, Floats, Ints

TIE = 1e-9  # classes closer than this to the best one are tied with it, as in _native.c


def gold_mask(gold: Ints | None, n_classes: int) -> Floats | None:
    """Log of 0 for every truth that gold rules out, to be added to a log joint."""
    if gold is None or not (gold >= 0).any():
        return None
    mask = np.zeros((len(gold), n_classes))
    mask[gold >= 0] = -np.inf
    mask[np.flatnonzero(gold >= 0), gold[gold >= 0]] = 0.0
    return mask


def clamp(posterior: Floats, gold: Ints | None) -> Floats:
    """The posterior with all mass on the gold class where it is known."""
    if gold is None:
        return posterior
    posterior = posterior.copy()
    posterior[gold >= 0] = 0.0
    posterior[np.flatnonzero(gold >= 0), gold[gold >= 0]] = 1.0
    return posterior


def tied(posterior: Floats) -> Array:
    """Which classes are as good as the best one of each task."""
    return posterior >= posterior.max(axis=1, keepdims=True) - TIE


def normalize(counts: Floats) -> Floats:
    """Scale the last axis to sum to one, uniform where it is empty."""
    total = counts.sum(axis=-1, keepdims=True)
    uniform = np.full_like(counts, 1.0 / counts.shape[-1])
    return np.divide(counts, total, out=uniform, where=total > 0)
