"""Axes to draw in."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdwise.errors import ParameterError, explain
from crowdwise.typing import Array

AxesLike: TypeAlias = Axes | Sequence[Axes] | Array | None  # None for those of a new figure


def one_axes(ax: Axes | None, size: tuple[float, float] = (5.0, 4.0)) -> Axes:
    """Return the given axes, or those of a new figure outside of pyplot."""
    return ax if ax is not None else Figure(figsize=size, layout="constrained").add_subplot()


def grid_of_axes(axes: AxesLike, n_rows: int, n_columns: int, cell: tuple[float, float]) -> Array:
    """Return the given axes as a grid, or those of a new figure."""
    if axes is None:
        size = (n_columns * cell[0] + 1.0, n_rows * cell[1] + 0.8)
        figure = Figure(figsize=size, layout="constrained")
        return figure.subplots(n_rows, n_columns, squeeze=False)
    grid = np.asarray(axes, dtype=object)
    if grid.size != n_rows * n_columns:
        raise ParameterError(
            explain(
                f"There are {grid.size} axes for {n_rows} x {n_columns} plots.",
                fix=f"axes = figure.subplots({n_rows}, {n_columns})",
            )
        )
    return grid.reshape(n_rows, n_columns)
