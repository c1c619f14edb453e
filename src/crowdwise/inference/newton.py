"""Newton's method on many one-dimensional functions at once."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdwise.typing import Array, Floats

LONGEST = 1.0  # longest step; where a function is flat, Newton's own would leave the data
MOST_HALVINGS = 30
ROUNDING = 1e-12  # a fall below this fraction of the value is none


@dataclass(frozen=True)
class Shape:
    """Functions at one point of each."""

    value: Floats
    slope: Floats
    curvature: Floats  # how fast the slope falls, made positive


def ascend(point: Floats, shape: Callable[[Floats], Shape]) -> Floats:
    """Take a Newton step up each function, halved until that function does not fall."""
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
    """Where a value has fallen by more than rounding, or is no number."""
    return ~(after >= before - ROUNDING * (1.0 + np.abs(before)))
