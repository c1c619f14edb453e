"""Plots of confusion matrices, as learned and as counted."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.errors import ParameterError, listing
from crowdwise.evaluate.truth_alignment import Truths
from crowdwise.inference import count_labels
from crowdwise.io import as_annotations, as_gold
from crowdwise.io.accept import align_to_model
from crowdwise.plot._axes import AxesLike, grid_of_axes
from crowdwise.typing import AnnotationsLike, Array, Floats, Ints, Names

MOST_NUMBERS = 8  # classes up to which numbers in cells are legible
CELL = (1.7, 2.1)


def plot_confusions(
    model: Any,
    annotations: AnnotationsLike | None = None,
    truth: Truths | None = None,
    *,
    workers: Names | None = None,
    n_workers: int = 6,
    axes: AxesLike = None,
) -> Array:
    """Draw workers' confusion matrices as learned by a model, above those that are counted.

    Parameters
    ----------
    model : fitted aggregator or learner
        With ``confusion_``, whose axes are worker, truth, label.
    annotations : Annotations, frame, array, dict or path, optional
        Labels to count, by ``truth`` if given, else by the model's own ``posterior_``. Truths
        that a worker never labeled are blank. Without annotations nothing is counted.
    truth : mapping, Series, frame or array, optional
        True labels of all or some tasks.
    workers : list of names, optional
        Workers to draw; by default the busiest in the annotations, or the first.
    n_workers : int, default=6
        Number of workers to draw if ``workers`` is not given.
    axes : array of Axes, optional
        Where to draw: one column per worker, in one row, or two with annotations.

    Returns
    -------
    array of Axes
        Of shape (1 or 2, workers).
    """
    check_is_fitted(model)
    if not hasattr(model, "confusion_"):
        raise ParameterError(
            f"A {type(model).__name__} has no confusion matrices."
            "\n  fix:      draw a method with confusion_, such as DawidSkene"
        )
    rows: list[tuple[str, Floats]] = [("learned", model.confusion_)]
    busy: Ints = np.zeros(len(model.workers_), dtype=np.int64)
    if annotations is not None:
        known, _ = align_to_model(
            as_annotations(annotations), model.workers_, model.classes_, "ignore"
        )
        busy = np.bincount(known.worker, minlength=len(busy))
        rows.append(("counted", confusion_rates(known, _truths(model, known, truth))))
    chosen = _chosen(model.workers_, workers, busy, n_workers)
    grid = grid_of_axes(axes, len(rows), len(chosen), CELL)
    for (what, tables), line in zip(rows, grid, strict=True):
        for worker, ax in zip(chosen, line, strict=True):
            picture = draw_matrix(ax, tables[worker], model.classes_)
            times = f" ({busy[worker]:,})" if what == "counted" else ""
            ax.set_title(f"{model.workers_[worker]}{times}")
        line[0].set_ylabel(f"{what}\ntruth")
    for ax in grid[-1]:
        ax.set_xlabel("label")
    for ax in grid[:-1].flat:
        ax.tick_params(labelbottom=False)
    for ax in grid[:, 1:].flat:
        ax.tick_params(labelleft=False)
    if axes is None:
        grid[0, 0].figure.colorbar(picture, ax=grid, label="P(label | truth)", shrink=0.8)
    return grid


def confusion_rates(annotations: Annotations, truths: Floats) -> Floats:
    """Return the share of each label by worker and truth; NaN for truths never labeled."""
    counts = count_labels(annotations, truths)  # (worker, truth, label)
    total = counts.sum(axis=2, keepdims=True)
    return np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)


def draw_matrix(ax: Axes, table: Floats, classes: Array) -> AxesImage:
    """Draw one matrix, with its numbers if they are legible."""
    picture = ax.imshow(table, vmin=0.0, vmax=1.0, cmap="Blues")
    names, small = [str(name) for name in classes], len(classes) <= 2 * MOST_NUMBERS
    ax.set_xticks(range(len(names)), names if small else [""] * len(names), rotation=90)
    ax.set_yticks(range(len(names)), names if small else [""] * len(names))
    if len(classes) <= MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(table):
            if np.isfinite(value):
                shade = "white" if value > 0.6 else "black"
                text = f"{100 * value:.0f}"
                ax.text(column, row, text, ha="center", va="center", color=shade, fontsize=8)
    return picture


def _truths(model: Any, known: Annotations, truth: Truths | None) -> Floats:
    """Return the annotated tasks' truths as distributions; zeros if unknown."""
    if truth is not None:
        codes = as_gold(truth, known)
        return (codes[:, None] == np.arange(known.n_classes)).astype(np.float64)
    place = locate(model.tasks_, known.tasks)
    nothing = np.zeros((1, known.n_classes))
    return np.concatenate([model.posterior_, nothing])[place]


def _chosen(names: Array, workers: Names | None, busy: Ints, n_workers: int) -> Ints:
    if workers is None:
        return np.argsort(-busy, kind="stable")[: max(n_workers, 1)]
    place = locate(names, np.atleast_1d(np.asarray(workers, dtype=object)))
    if (place < 0).any():
        raise ParameterError(
            f"The model does not know worker {workers[int((place < 0).argmax())]!r}.\n"
            f"  expected: workers such as {listing(names)}"
            "\n  fix:      choose workers from model.workers_"
        )
    return place
