"""Plot of workers as points on a plane."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations.names import locate
from crowdwise.base.aggregator import Aggregator
from crowdwise.base.learner import Learner
from crowdwise.errors import ParameterError, explain, plural
from crowdwise.plot._axes import one_axes
from crowdwise.typing import Floats

MOST_NAMES = 30  # workers up to which names are legible


def plot_worker_map(
    model: Aggregator | Learner,
    error_rate: pd.Series | Floats | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw workers, close together if they make similar mistakes, colored by error rate.

    The plane is spanned by the first two principal components of the workers: by the model's
    ``embedding_`` if it has one, else by ``confusion_``.

    Parameters
    ----------
    model : fitted aggregator or learner
        With ``embedding_`` or ``confusion_``.
    error_rate : Series or array, optional
        By worker, or in the order of ``workers_``; by default estimated by the model.
    ax : Axes, optional
        Where to draw.

    References
    ----------
    Platanios, Al-Shedivat, Xing and Mitchell (2020). Learning from imperfect annotations,
    figure 2. arXiv:2004.03473. doi:10.48550/arXiv.2004.03473
    """
    check_is_fitted(model)
    place, share = main_plane(worker_vectors(model))
    errors = error_rates(model, error_rate)
    ax = one_axes(ax)
    look: dict[str, Any] = {"cmap": "viridis_r", "vmin": 0.0, "edgecolors": "black", "lw": 0.4}
    points = ax.scatter(place[:, 0], place[:, 1], c=errors, **look)
    ax.figure.colorbar(points, ax=ax, label="error rate")
    ax.set_xlabel(f"first direction ({share[0]:.0%} of the variance)")
    ax.set_ylabel(f"second direction ({share[1]:.0%})")
    ax.margins(0.12)  # room for names
    if len(place) <= MOST_NAMES:
        for name, spot in zip(model.workers_, place, strict=True):
            ax.annotate(str(name), spot, xytext=(4, 3), textcoords="offset points", fontsize=7)
    return ax


def worker_vectors(model: Aggregator | Learner) -> Floats:
    """Return a row of numbers per worker."""
    for name in ("embedding_", "confusion_"):
        if hasattr(model, name):
            rows = np.asarray(getattr(model, name), dtype=np.float64)
            return rows.reshape(len(rows), -1)
    raise ParameterError(
        f"A {type(model).__name__} has neither embeddings nor confusion matrices of workers."
        "\n  fix:      draw a method with confusion_, such as DawidSkene"
    )


def main_plane(rows: Floats) -> tuple[Floats, Floats]:
    """Return coordinates on two principal components, and their shares of the variance."""
    left, size, right = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    # Signs are arbitrary; the largest entry is made positive, so that plots are reproducible.
    largest = np.take_along_axis(right, np.abs(right).argmax(axis=1)[:, None], axis=1)[:, 0]
    place = np.zeros((len(rows), 2))
    share = np.zeros(2)
    n = min(2, len(size))
    place[:, :n] = (left * size * np.where(largest < 0, -1.0, 1.0))[:, :n]
    share[:n] = (size**2 / max((size**2).sum(), 1e-300))[:n]
    return place, share


def error_rates(model: Aggregator | Learner, given: pd.Series | Floats | None) -> Floats:
    """Return the error rate of each worker, in the order of ``workers_``."""
    if given is None:
        for name in ("worker_accuracy_", "skills_"):
            if hasattr(model, name):
                return 1.0 - np.asarray(getattr(model, name), dtype=np.float64)
        raise ParameterError(
            explain(
                f"A {type(model).__name__} does not estimate error rates of workers.",
                fix="pass error_rate, a series by worker",
            )
        )
    if hasattr(given, "index") and hasattr(given, "to_numpy"):
        found = locate(given.index.to_numpy(), model.workers_)
        return np.append(given.to_numpy(dtype=np.float64), np.nan)[found]
    rates = np.asarray(given, dtype=np.float64)
    if rates.shape != (len(model.workers_),):
        raise ParameterError(
            f"error_rate has shape {rates.shape} for {plural(len(model.workers_), 'worker')}.\n"
            "  expected: a series by worker, or one number per worker in their order"
            "\n  fix:      give a Series indexed by worker"
        )
    return rates
