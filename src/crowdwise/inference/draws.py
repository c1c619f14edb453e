"""Random numbers that belong to tasks, wherever and in whatever order tasks are worked on."""

import numpy as np

from crowdwise.typing import Floats

AT_ONCE = 4  # numbers that Philox makes at a time


def draw_rows(seed: int, first: int, n_rows: int, width: int) -> Floats:
    """Uniform numbers below one, (row, number); those of a row depend on its number alone."""
    steps = -(-width // AT_ONCE)
    bits = np.random.Philox(key=seed)
    bits.advance(first * steps)
    found = np.random.Generator(bits).random((n_rows, steps * AT_ONCE))
    return found[:, :width]


def draw_even_shares(seed: int, first: int, shape: tuple[int, ...]) -> Floats:
    """Shares along the last axis, all as likely (Dirichlet of ones), by the number of the row."""
    n_rows, *rest = shape
    level = draw_rows(seed, first, n_rows, int(np.prod(rest))).reshape(shape)
    part = -np.log1p(-level)
    return np.asarray(part / part.sum(axis=-1, keepdims=True))
