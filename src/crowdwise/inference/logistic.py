"""Logistic models of annotations with one unknown per worker or task."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError
from crowdwise.inference.newton import Shape
from crowdwise.typing import Floats, Ints


@dataclass(frozen=True)
class Rows:
    """The annotations as columns; a soft one is a row for every class."""

    task: Ints
    worker: Ints
    cell: Ints  # task * n_classes + label
    weight: Floats | None

    def total(self, group: Ints, n_groups: int, values: Floats) -> Floats:
        """Weighted sum of the values of each group of rows."""
        weighted = values if self.weight is None else values * self.weight
        return np.asarray(np.bincount(group, weighted, minlength=n_groups), dtype=np.float64)


@dataclass(frozen=True)
class Normal:
    """A prior that pulls towards its mean."""

    mean: float
    variance: float

    def penalty(self, value: Floats) -> Floats:
        return (value - self.mean) ** 2 / (2.0 * self.variance)

    def added_to(self, shape: Shape, at: Floats) -> Shape:
        """The shape of a function plus the log of this prior."""
        slope = shape.slope - (at - self.mean) / self.variance
        return Shape(shape.value - self.penalty(at), slope, shape.curvature + 1.0 / self.variance)


def rows_of(annotations: Annotations) -> Rows:
    """One row per cell of the annotations."""
    cells, n_classes = annotations.cells, annotations.n_classes
    worker, label = np.divmod(cells.code.astype(np.intp), n_classes)
    task = np.repeat(np.arange(cells.n_tasks), np.diff(cells.indptr))
    return Rows(task, worker, task * n_classes + label, cells.value)


def normal(pair: Any, name: str) -> Normal:
    """A prior from (mean, variance)."""
    values = np.asarray(pair, dtype=np.float64)
    if values.shape != (2,) or not (np.isfinite(values).all() and values[1] > 0):
        raise ParameterError(
            f"{name}={pair!r} cannot be used.\n  expected: a mean and a positive variance"
        )
    return Normal(float(values[0]), float(values[1]))


def at_scale(scale: Floats, factor: Floats, group: Ints, rows: Rows, right: Floats) -> Shape:
    """Sum of right log sigmoid(x) + (1 - right) log sigmoid(-x), x = scale * factor, by group."""
    x = scale[group] * factor
    chance = expit(x)
    total = partial(rows.total, group, len(scale))
    curvature = total(chance * (1.0 - chance) * factor**2)
    return Shape(total(right * x - softplus(x)), total((right - chance) * factor), curvature)


def softplus(x: Floats) -> Floats:
    """Log(1 + exp(x)), which is -log sigmoid(-x)."""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
