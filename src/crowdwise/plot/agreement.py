"""Plot of the agreement between all pairs of workers."""

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from crowdwise.annotations import Annotations
from crowdwise.errors import AnnotationError, ParameterError, explain, plural
from crowdwise.evaluate import cohen_kappa_matrix
from crowdwise.evaluate.label_counts import WeightsLike, once_per_worker
from crowdwise.plot._axes import one_axes
from crowdwise.typing import AnnotationsLike, Floats, Ints

MOST_NUMBERS = 12  # workers up to which numbers in cells are legible
MOST_NAMES = 60  # workers up to which names are legible


def plot_agreement(
    annotations: AnnotationsLike,
    *,
    n_workers: int = 40,
    min_overlap: int = 10,
    weights: WeightsLike = "identity",
    ax: Axes | None = None,
) -> Axes:
    """Draw how much each pair of workers agrees beyond chance, as a map of Cohen's kappa.

    Workers who agree are placed next to each other, so groups show as blocks and a spammer as
    a pale line. 1 is full agreement, 0 is chance level, and below 0 they disagree. Pairs that
    share too few tasks, or whose kappa is undefined, are blank.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Labels by workers.
    n_workers : int, default=40
        Maximum number of workers to draw: those with the most labels.
    min_overlap : int, default=10
        Minimum number of shared tasks. With fewer, kappa is mostly noise.
    weights : {"identity", "linear", "quadratic", "ratio"} or matrix, default="identity"
        How much a near miss counts as agreement, see :func:`crowdwise.evaluate.cohen_kappa`.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from crowdwise.simulate import confused_crowd, one_coin_confusion
    >>> confusion = one_coin_confusion([0.9, 0.8, 0.7, 0.5], n_classes=2)
    >>> votes = confused_crowd(confusion, 100, 4, random_state=0).annotations
    >>> plot_agreement(votes).get_title()
    'agreement of 4 workers'
    """
    if n_workers < 2:
        raise ParameterError(
            f"n_workers={n_workers} is out of range.\n  expected: 2 or more"
            "\n  fix:      leave n_workers out, or give n_workers=20"
        )
    some, n_busy = keep_busiest(once_per_worker(annotations), n_workers)
    table = cohen_kappa_matrix(some, weights=weights, min_overlap=min_overlap)
    kappa = table.to_numpy(copy=True)
    np.fill_diagonal(kappa, np.nan)  # a worker compared with themself
    if np.isnan(kappa).all():
        raise AnnotationError(
            explain(
                f"No pair of the {plural(len(kappa), 'worker')} can be compared.",
                expected=f"workers who share {min_overlap} or more tasks, with different labels",
                fix="lower min_overlap",
            )
        )
    order = order_by_agreement(kappa)
    ax = one_axes(ax, (6.0, 5.0))
    draw_pairs(ax, kappa[np.ix_(order, order)], [str(name) for name in table.index[order]])
    of = f" of {n_busy:,}" if n_busy > len(kappa) else ""
    ax.set_title(f"agreement of {len(kappa):,}{of} workers")
    return ax


def keep_busiest(data: Annotations, n_workers: int) -> tuple[Annotations, int]:
    """Return the annotations of the workers with most labels, and the number with any."""
    labels = np.bincount(data.worker, minlength=data.n_workers)
    n_busy = int((labels > 0).sum())
    chosen = np.sort(np.argsort(-labels, kind="stable")[: min(n_workers, n_busy)])
    some = data.filter(np.isin(data.worker, chosen))
    worker = np.searchsorted(chosen, some.worker).astype(some.worker.dtype)
    return replace(some, workers=data.workers[chosen], worker=worker), n_busy


def order_by_agreement(kappa: Floats) -> Ints:
    """Order workers so that those who agree are neighbors: the leaves of a cluster tree.

    A pair without kappa counts as average.
    """
    if len(kappa) < 3:
        return np.arange(len(kappa))
    distance = 1.0 - np.where(np.isfinite(kappa), kappa, np.nanmean(kappa))
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return leaves_list(tree).astype(np.int64)


def draw_pairs(ax: Axes, kappa: Floats, names: list[str]) -> None:
    """Draw the map itself, with names and numbers if they are legible."""
    picture = ax.imshow(kappa, vmin=-1.0, vmax=1.0, cmap="RdBu")
    ax.set_facecolor("0.88")  # blank cells are gray: white is chance
    ax.figure.colorbar(picture, ax=ax, label="Cohen's kappa")
    shown = names if len(names) <= MOST_NAMES else [""] * len(names)
    ax.set_xticks(range(len(names)), shown, rotation=90, fontsize=7)
    ax.set_yticks(range(len(names)), shown, fontsize=7)
    if len(names) <= MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(kappa):
            if np.isfinite(value):
                shade = "white" if abs(value) > 0.6 else "black"
                text = f"{value:.2f}"
                ax.text(column, row, text, ha="center", va="center", color=shade, fontsize=7)
