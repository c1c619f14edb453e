"""Plots of the difficulty of tasks."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.special import entr
from scipy.stats import spearmanr

from crowdwise.annotations.names import locate
from crowdwise.errors import AnnotationError, ParameterError, explain, plural
from crowdwise.evaluate.agreement import observed_rows
from crowdwise.evaluate.label_counts import label_counts, once_per_worker
from crowdwise.io import as_annotations
from crowdwise.plot._axes import AxesLike, grid_of_axes
from crowdwise.typing import AnnotationsLike, Array, Floats


def plot_difficulty(
    source: Any, annotations: AnnotationsLike | None = None, *, axes: AxesLike = None
) -> Array:
    """Draw the difficulty of all tasks, easy to hard, and against the workers' agreement.

    If the two are consistent, the dots fall from left to right. A task that a model finds hard
    although its workers agree deserves a look: they may all be wrong.

    Parameters
    ----------
    source : fitted model, or annotations
        A model with ``difficulty_`` (GLAD, LIA, SpeeLFCD, CrowdAR); or annotations in any form,
        for which difficulty is the entropy of each task's labels, 0 if all agree.
    annotations : Annotations, frame, array, dict or path, optional
        Annotations to compare the difficulty with. Without them, only the first plot is drawn.
    axes : array of Axes, optional
        Where to draw: one axes, or two with annotations.

    Returns
    -------
    array of Axes
        One or two: the sorted difficulties, and difficulty against observed agreement, the share
        of equal pairs among a task's labels (undefined for tasks with one label).

    Examples
    --------
    >>> pair = plot_difficulty([[0, 0, 0], [0, 1, 0], [1, 1, 1], [0, 1, 0]])
    >>> pair[0].get_title(), pair[1].get_title()
    ('4 tasks, median 0.46', 'rank correlation -1.00')
    """
    if isinstance(source, type) or (hasattr(source, "fit") and not hasattr(source, "difficulty_")):
        name = source.__name__ if isinstance(source, type) else type(source).__name__
        raise ParameterError(
            explain(
                f"This {name} has no estimated difficulty of tasks.",
                expected="a fitted GLAD, LIA, SpeeLFCD or CrowdAR, or annotations",
                fix="fit it first, or pass the annotations",
            )
        )
    if hasattr(source, "difficulty_"):
        tasks, hard = source.tasks_, np.asarray(source.difficulty_, dtype=np.float64)
        what = f"difficulty by {type(source).__name__}"
    else:
        annotations, what = source, "entropy of labels (bits)"
        tasks, hard = entropies(source)
    pair = grid_of_axes(axes, 1, 1 if annotations is None else 2, (4.2, 3.2))[0]
    draw_sorted(pair[0], hard, what)
    if annotations is not None:
        shared, agreement = task_agreement(annotations)
        draw_against(pair[1], agreement, np.append(hard, np.nan)[locate(tasks, shared)], what)
    return pair


def entropies(annotations: AnnotationsLike) -> tuple[Array, Floats]:
    """Return the names of labeled tasks, and the entropy of each task's labels in bits."""
    data = as_annotations(annotations).nonempty()
    return data.tasks, entr(data.shares()).sum(axis=1) / np.log(2.0)


def task_agreement(annotations: AnnotationsLike) -> tuple[Array, Floats]:
    """Return the tasks with two or more labels, and their shares of equal pairs of labels."""
    data = once_per_worker(annotations)
    data = data[np.flatnonzero(data.redundancy > 1)]
    return data.tasks, observed_rows(label_counts(data))[:, 1]


def draw_sorted(ax: Axes, hard: Floats, what: str) -> None:
    """Draw difficulties from the easiest task to the hardest."""
    if not len(hard):
        raise AnnotationError(
            "There are no tasks with labels to draw.\n  fix:      give annotations that have labels"
        )
    share = (np.arange(len(hard)) + 0.5) / len(hard)
    ax.plot(share, np.sort(hard))
    ax.fill_between(share, np.sort(hard), alpha=0.15)
    ax.set(xlabel="share of tasks, easiest first", ylabel=what, xlim=(0, 1))
    ax.set_ylim(bottom=min(0.0, float(hard.min())))
    ax.set_title(f"{plural(len(hard), 'task')}, median {np.median(hard):.2f}")


def draw_against(ax: Axes, agreement: Floats, hard: Floats, what: str) -> None:
    """Draw a dot for each task with both values, and their rank correlation."""
    both = np.isfinite(agreement) & np.isfinite(hard)
    ax.scatter(agreement[both], hard[both], s=14, alpha=0.4, lw=0)
    ax.set(xlabel="observed agreement", ylabel=what, xlim=(-0.03, 1.03))
    varied = both.any() and np.ptp(agreement[both]) > 0 and np.ptp(hard[both]) > 0
    like = f"{spearmanr(agreement[both], hard[both]).statistic:.2f}" if varied else "not defined"
    ax.set_title(f"rank correlation {like}")
