"""Random numbers that belong to tasks, wherever and in whatever order tasks are processed."""

import numpy as np

from crowdwise.typing import Floats

AT_ONCE = 4  # numbers that Philox generates at a time


def draw_rows(seed: int, first: int, n_rows: int, width: int) -> Floats:
    """Draw uniform numbers below one, (row, number), that depend only on the row's number."""
    steps = -(-width // AT_ONCE)
    bits = np.random.Philox(key=seed)
    bits.advance(first * steps)
    found = np.random.Generator(bits).random((n_rows, steps * AT_ONCE))
    return found[:, :width]


def draw_even_shares(seed: int, first: int, shape: tuple[int, ...]) -> Floats:
    """Draw uniform shares along the last axis (Dirichlet of ones), by row number."""
    n_rows, *rest = shape
    level = draw_rows(seed, first, n_rows, int(np.prod(rest))).reshape(shape)
    part = -np.log1p(-level)
    return np.asarray(part / part.sum(axis=-1, keepdims=True))
