"""Softmax regressions for many penalties and many sets of rows, as one matrix product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.typing import Array, Floats, Ints

FEW_CLASSES = 16
CELLS_AT_ONCE = 1 << 23  # logits held at once


@dataclass(frozen=True)
class Problem:
    """The problem to fit regressions to: targets, and the rows that count in each group."""

    targets: Floats  # (target, row, class), rows sum to one
    target: Ints  # (group,): the number of its target
    weight: Floats  # (row, group), columns sum to one


def add_ones(coordinates: Floats) -> Floats:
    """Append a column of ones, for the intercept."""
    return np.hstack([coordinates, np.ones((len(coordinates), 1), dtype=coordinates.dtype)])


def fit_path(
    design: Floats, problem: Problem, penalties: Floats, start: Floats, n_steps: int
) -> Floats:
    """Fit weights of shape (column, group, penalty, class) by steps of Nesterov's method.

    Each regression minimizes the mean cross-entropy of a group plus half the penalty times the
    squared weights; the last column is the intercept, which is not penalized. The other columns
    are principal axes, so scaling the steps by their variance nearly solves the problem: the
    number of steps needed does not depend on how unequal the variances are.
    """
    size = step_sizes(design, problem.weight, penalties)
    at_once = max(1, CELLS_AT_ONCE // (len(design) * start.shape[1] * start.shape[3]))
    parts = [
        _descend(design, problem, penalties[some], start[:, :, some], size[:, :, some], n_steps)
        for first in range(0, len(penalties), at_once)
        for some in [slice(first, first + at_once)]
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)


def step_sizes(design: Floats, weight: Floats, penalties: Floats) -> Floats:
    """Return divisors of the gradient: a bound on the curvature, (column, 1, penalty, 1)."""
    variance = np.maximum((design**2).mean(axis=0), 1e-12)
    curvature = 0.5 * variance * steepest(design, weight, variance)
    return curvature.astype(np.float32)[:, None, None, None] + _by_column(design, penalties)


def _by_column(design: Floats, penalties: Floats) -> Floats:
    """Return the penalty of each column, (column, 1, penalty, 1): 0 for the intercept."""
    penalty: Array = np.tile(penalties.astype(np.float32), (design.shape[1], 1))
    penalty[-1] = 0.0
    return penalty[:, None, :, None]


def _descend(
    design: Floats, problem: Problem, penalties: Floats, start: Floats, size: Floats, n_steps: int
) -> Floats:
    penalty = _by_column(design, penalties)
    now, ahead = start, start
    momentum = np.ones((1, *start.shape[1:3], 1), dtype=np.float32)  # of each regression
    for _ in range(n_steps):
        slope = _slope(design, problem, ahead) + penalty * ahead
        after = ahead - slope / size
        change = after - now
        uphill = np.einsum("cgpk,cgpk->gp", slope, change)[None, :, :, None] > 0
        grown = np.where(uphill, 1.0, (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0)
        ahead = after + np.where(uphill, 0.0, (momentum - 1.0) / grown) * change
        now, momentum = after, grown
    return now


def weigh_evenly(n_rows: int) -> Array:
    """Return the weights of the rows in a single group, (row, 1)."""
    return np.full((n_rows, 1), 1.0 / n_rows, dtype=np.float32)


def step_in_batch(
    design: Floats, target: Floats, penalties: Floats, weights: Floats, size: Floats
) -> Floats:
    """Take one step of a single group's weights on some of the rows."""
    weight = weigh_evenly(len(design))
    problem = Problem(target[None].astype(np.float32), np.zeros(1, dtype=np.int64), weight)
    slope = _slope(design, problem, weights) + _by_column(design, penalties) * weights
    stepped: Floats = weights - slope / size
    return stepped


def _slope(design: Floats, problem: Problem, weights: Floats) -> Floats:
    """Return the gradient of the mean cross-entropy of every group."""
    rest = predict_path(design, weights)  # (row, group, penalty, class)
    for group, target in enumerate(problem.target):
        rest[:, group] -= problem.targets[target][:, None]
        rest[:, group] *= problem.weight[:, group, None, None]
    return (design.T @ rest.reshape(len(rest), -1)).reshape(weights.shape)


def predict_path(design: Floats, weights: Floats) -> Floats:
    """Return class probabilities of every row by every regression, (row, *weights.shape[1:])."""
    logits = design @ weights.reshape(len(weights), -1)
    logits = logits.reshape(len(design), *weights.shape[1:])
    return softmax_inplace(logits)


def softmax_inplace(logits: Floats) -> Floats:
    """Compute softmax over the last axis, in the memory of the logits."""
    logits -= reduce_classes(np.maximum, logits)
    np.exp(logits, out=logits)
    logits /= reduce_classes(np.add, logits)
    return logits


def reduce_classes(combine: np.ufunc, logits: Floats) -> Floats:
    """Reduce the last axis to length one, class by class, which is faster for few classes."""
    if logits.shape[-1] > FEW_CLASSES:
        return combine.reduce(logits, axis=-1, keepdims=True)
    total = logits[..., :1].copy()
    for number in range(1, logits.shape[-1]):
        combine(total, logits[..., number : number + 1], out=total)
    return total


def steepest(design: Floats, weight: Floats, variance: Floats, n_steps: int = 12) -> float:
    """Return how much steeper a group's weighted rows can be than the variances suggest."""
    scaled = design / np.sqrt(variance)
    most = weight.max(axis=1)[:, None].astype(np.float32)
    vector = np.ones((design.shape[1], 1), dtype=np.float32)
    size = 1.0
    for _ in range(n_steps):
        vector /= max(float(np.linalg.norm(vector)), 1e-30)
        vector = scaled.T @ (most * (scaled @ vector))
        size = float(np.linalg.norm(vector))
    return 1.05 * size
