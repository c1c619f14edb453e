"""The order of classes, for methods that treat them as steps of a scale."""

import numpy as np

from crowdwise.annotations.names import is_number
from crowdwise.screen import printable
from crowdwise.typing import Array, Floats

MOST = 20  # classes shown


def as_numbers(classes: Array) -> Floats | None:
    """Return the classes as finite numbers, or None if one of them is not a number."""
    names = classes.tolist()
    if any(isinstance(name, str) and not is_number(name.strip()) for name in names):
        return None  # such as 5_20, which Python reads as 520
    try:
        values = np.array([float(name) for name in names])
    except (TypeError, ValueError):
        return None
    return values if np.isfinite(values).all() else None


def describe_order(classes: Array) -> str:
    """Say in which order classes are taken; empty if they are rising numbers.

    >>> describe_order(np.array(["bad", "fair", "good"]))
    'Order taken: bad < fair < good.'
    """
    values = as_numbers(classes)
    if values is not None and (np.diff(values) > 0).all():
        return ""
    names = [printable(str(name), keep="") for name in classes.tolist()]
    shown = names if len(names) <= MOST else [*names[: MOST - 1], "…", names[-1]]
    return f"Order taken: {' < '.join(shown)}."
