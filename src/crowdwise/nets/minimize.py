"""L-BFGS for several problems of one shape at once, as the rows of a matrix."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

MEMORY = 10  # pairs of steps and gradient changes that approximate the curvature
SUFFICIENT = 1e-4  # share of the predicted decrease that a step must achieve
PATIENCE = 3  # successive steps without improvement that end a descent
HALVINGS = 12  # of a step that does not achieve it


def minimize(
    slopes: Callable[[Tensor], tuple[Tensor, Tensor]],
    start: Tensor,
    max_iter: int,
    tol: float = 1e-6,
) -> tuple[Tensor, list[Tensor]]:
    """Minimize from the rows of ``start``; returns the points and the values on the way.

    ``slopes`` returns the value of every row, (problem,), and its gradient, (problem, number).
    A problem is done once some successive steps lower it by less than the fraction ``tol``.
    """
    x = start.clone()
    value, slope = slopes(x)
    pairs: list[tuple[Tensor, Tensor, Tensor]] = []
    path = [value]
    active, slow = torch.isfinite(value), torch.zeros_like(value)
    for _ in range(max_iter):
        heading = direction(slope, pairs)
        x_new, value_new, slope_new = descend(slopes, x, value, slope, heading, active)
        moved, bent = x_new - x, slope_new - slope
        pairs = [*pairs[-MEMORY + 1 :], remember(moved, bent)]
        small = value - value_new <= tol * value_new.abs().clamp_min(1e-8)
        slow = torch.where(small, slow + 1, 0)
        active = active & (slow < PATIENCE)
        x, value, slope = x_new, value_new, slope_new
        path.append(value)
        if not active.any():
            break
    return x, path


def direction(slope: Tensor, pairs: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Return minus the gradient times the inverse curvature, as far as it is known."""
    heading, weights = -slope, []
    for moved, bent, inverse in reversed(pairs):
        weight = inverse * dot(moved, heading)
        heading = heading - weight * bent
        weights.append(weight)
    if not pairs:
        return heading / slope.norm(dim=1, keepdim=True).clamp_min(1e-12)
    moved, bent, inverse = pairs[-1]
    size = torch.where(inverse > 0, 1.0 / (inverse * dot(bent, bent)).clamp_min(1e-30), 1.0)
    heading = heading * size
    for (moved, bent, inverse), weight in zip(pairs, reversed(weights), strict=True):
        heading = heading + moved * (weight - inverse * dot(bent, heading))
    downhill = dot(slope, heading) < 0
    return torch.where(downhill, heading, -slope)


def remember(moved: Tensor, bent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a step, the change of gradient, and the inverse of their product, 0 if useless."""
    along = dot(moved, bent)
    useful = along > 1e-8 * dot(bent, bent)
    return moved, bent, torch.where(useful, 1.0 / along.clamp_min(1e-30), 0.0)


def descend(
    slopes: Callable[[Tensor], tuple[Tensor, Tensor]],
    x: Tensor,
    value: Tensor,
    slope: Tensor,
    heading: Tensor,
    active: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Move along ``heading``, halving the step until it helps; or stay."""
    promised = SUFFICIENT * dot(slope, heading)[:, 0]
    size = active.to(value)
    for _ in range(HALVINGS):
        x_new = x + size[:, None] * heading
        value_new, slope_new = slopes(x_new)
        bad = active & ~(value_new <= value + size * promised)
        if not bad.any():
            return x_new, value_new, slope_new
        size = torch.where(bad, 0.5 * size, size)
    size = torch.where(bad, 0.0, size)
    x_new = x + size[:, None] * heading
    return x_new, *slopes(x_new)


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Return the inner product of each row, (problem, 1)."""
    return (a * b).sum(dim=1, keepdim=True)
