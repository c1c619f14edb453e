"""Logistic models with one unknown per worker or task, and Newton steps on them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from crowdwise.errors import ParameterError, explain
from crowdwise.inference.engines.kernels import Block
from crowdwise.inference.rows import as_columns
from crowdwise.typing import Array, Floats, Ints

LONGEST = 1.0  # maximum step; where a function is flat, Newton's own would be far too long
MOST_HALVINGS = 30
ROUNDING = 1e-12  # decreases below this fraction of the value are ignored


@dataclass(frozen=True)
class LabelResponses:
    """The annotations as columns; a soft one is a row for every class."""

    task: Ints
    worker: Ints
    cell: Ints  # task * n_classes + label
    weight: Floats | None

    def total(self, group: Ints, n_groups: int, values: Floats) -> Floats:
        """Return the weighted sum of the values of each group of rows."""
        weighted = values if self.weight is None else values * self.weight
        return np.asarray(np.bincount(group, weighted, minlength=n_groups), dtype=np.float64)


@dataclass(frozen=True)
class Shape:
    """Many functions of one variable, described at one point of each."""

    value: Floats
    slope: Floats
    curvature: Floats  # rate at which the slope falls, made positive


@dataclass(frozen=True)
class Normal:
    """A prior that pulls toward its mean."""

    mean: float
    variance: float

    def penalty(self, value: Floats) -> Floats:
        return (value - self.mean) ** 2 / (2.0 * self.variance)

    def added_to(self, shape: Shape, at: Floats) -> Shape:
        """Return the shape of a function plus the log of this prior."""
        slope = shape.slope - (at - self.mean) / self.variance
        return Shape(shape.value - self.penalty(at), slope, shape.curvature + 1.0 / self.variance)


def responses_of(block: Block, worker: Ints) -> LabelResponses:
    """Return one row per cell of a block."""
    task, code, value = as_columns(block.cells)
    return LabelResponses(task, worker[code], task * block.n_classes + block.label[code], value)


def normal_prior(pair: ArrayLike, name: str) -> Normal:
    """Make a prior from (mean, variance)."""
    values = np.asarray(pair, dtype=np.float64)
    if values.shape != (2,) or not (np.isfinite(values).all() and values[1] > 0):
        raise ParameterError(
            explain(
                f"{name}={pair!r} cannot be used.",
                expected="a mean and a positive variance",
                fix="leave it out for the default",
            )
        )
    return Normal(float(values[0]), float(values[1]))


def at_scale(
    scale: Floats, factor: Floats, group: Ints, responses: LabelResponses, right: Floats
) -> Shape:
    """Sum right log sigmoid(x) + (1 - right) log sigmoid(-x), x = scale * factor, by group."""
    x = scale[group] * factor
    chance = expit(x)
    total = partial(responses.total, group, len(scale))
    curvature = total(chance * (1.0 - chance) * factor**2)
    return Shape(total(right * x - softplus(x)), total((right - chance) * factor), curvature)


def softplus(x: Floats) -> Floats:
    """Return log(1 + exp(x)), which is -log sigmoid(-x)."""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def ascend(point: Floats, shape: Callable[[Floats], Shape]) -> Floats:
    """Take a Newton step up each function, halved until that function does not decrease."""
    here = shape(point)
    step = np.clip(here.slope / here.curvature, -LONGEST, LONGEST)
    for _ in range(MOST_HALVINGS):
        fallen = falls(here.value, shape(point + step).value)
        if not fallen.any():
            break
        step = np.where(fallen, step / 2.0, step)
    else:
        step = np.where(fallen, 0.0, step)
    return point + step


def falls(before: Floats, after: Floats) -> Array:
    """Return where a value has decreased by more than rounding, or is not a number."""
    return ~(after >= before - ROUNDING * (1.0 + np.abs(before)))
