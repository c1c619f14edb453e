"""Plot of training curves."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from crowdwise.errors import ParameterError, explain
from crowdwise.plot._axes import one_axes

if TYPE_CHECKING:
    from crowdwise.nets.loop import History


def plot_training(history: "History", *, ax: Axes | None = None) -> Axes:
    """Draw the loss of every epoch, or the objective of every step.

    Parameters
    ----------
    history : History or fitted model
        ``history_`` of a learner, or a model that has one; or one with ``objective_``.
        Restarts are thin lines, the one kept is thick; held-out labels are dashed.
        A mapping from names to any of these draws one line each, for comparison.
    ax : Axes, optional
        Where to draw.
    """
    ax = one_axes(ax, (5.5, 3.5))
    if isinstance(history, Mapping):
        return _draw_several(ax, history)
    losses = getattr(history, "history_", history)
    if hasattr(losses, "loss"):
        _draw_restarts(ax, losses)
    elif hasattr(history, "objective_"):
        ax.plot(np.arange(1, len(history.objective_) + 1), history.objective_, label="objective")
        ax.set_xlabel("step")
        ax.set_ylabel("objective")
    else:
        raise ParameterError(
            explain(
                f"A {type(history).__name__} has no history.",
                expected="history_ of a learner, or a fitted model with history_ or objective_",
                fix="draw a learner after fit",
            )
        )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def _draw_several(ax: Axes, histories: Mapping[str, "History"]) -> Axes:
    """Draw the kept restart of each model, with its name."""
    for name, history in histories.items():
        losses = getattr(history, "history_", history)
        kept = np.array(losses.loss, dtype=np.float64)[:, losses.best]
        ax.plot(np.arange(1, len(kept) + 1), kept, label=name)
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss")
    ax.legend()
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def _draw_restarts(ax: Axes, history: "History") -> None:
    curves = {"training labels": (history.loss, "-"), "held-out labels": (history.held_out, "--")}
    for number, (what, (rows, style)) in enumerate(curves.items()):
        table = np.array(rows, dtype=np.float64)  # (epoch, restart)
        if not table.size:
            continue
        epochs, color = np.arange(1, len(table) + 1), f"C{number}"
        others = np.delete(np.arange(table.shape[1]), history.best)
        for restart in others:
            ax.plot(epochs, table[:, restart], style, color=color, lw=0.6, alpha=0.4)
        ax.plot(epochs, table[:, history.best], style, color=color, lw=1.8, label=what)
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss per label")
    ax.legend()
