"""How far the labels of each task spread: the certainty that ICED weighs tasks by."""

from __future__ import annotations

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError, explain
from crowdwise.typing import Floats, Ints

SAME = 9  # digits in which certainties of one level agree


def measure_certainty(annotations: Annotations, floor: float) -> Floats:
    """One over the variance of each task's labels (ICED eq. 2.4), 0 where it has none."""
    if not floor > 0:
        raise ParameterError(explain(f"floor={floor} is out of range.", expected="more than 0"))
    variance = 1.0 - (annotations.shares() ** 2).sum(axis=1)
    labeled = annotations.votes().sum(axis=1) > 0
    return np.where(labeled, 1.0 / (np.maximum(variance, 0.0) + floor), 0.0)


def rank_certainty(certainty: Floats, n_levels: int) -> Ints:
    """Which of the highest distinct values each task has, from 1; 0 for all that are lower."""
    values = np.unique(np.round(certainty[certainty > 0], SAME))[::-1][:n_levels]
    found = np.round(certainty, SAME)[:, None] == values
    return np.where(found.any(axis=1), found.argmax(axis=1) + 1 if len(values) else 0, 0)
