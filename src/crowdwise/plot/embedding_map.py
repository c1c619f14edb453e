"""Plot of tasks as points on a plane, before and after learning a representation."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations.names import locate
from crowdwise.base.embedder import Embedder
from crowdwise.errors import ParameterError, explain, plural
from crowdwise.plot._axes import AxesLike, grid_of_axes
from crowdwise.plot.worker_map import main_plane
from crowdwise.typing import Array, FeaturesLike, Floats, Names

SIZES = (8.0, 60.0)  # of points with confidence 0 and 1


def plot_embedding_map(
    model: Embedder, X: FeaturesLike, truth: Names | None = None, *, axes: AxesLike = None
) -> Array:
    """Draw tasks by their features and by their representation, colored by class.

    Each plane shows the two main directions (principal components) in which tasks differ;
    features are scaled as the model scales them. Larger points are more confident.

    Parameters
    ----------
    model : fitted embedder
        Any method of :mod:`crowdwise.embed`.
    X : array, sparse matrix, frame, tensor or torch Dataset
        Features of the training tasks in order; or of any other tasks, together with ``truth``.
    truth : array, optional
        True class of each training task, or of each row of other tasks, as the color; by default
        the model's ``posterior_``: of the last class if there are two, the most probable class
        if there are more.
    axes : array of two Axes, optional
        Where to draw.

    Returns
    -------
    array of Axes
        Two: before and after.

    References
    ----------
    Hao, Ding and Liu (2022). NeuCrowd: Neural sampling network for representation learning with
    crowdsourced labels. Knowledge and Information Systems 64. doi:10.1007/s10115-021-01644-7
    """
    from crowdwise.base.fitting import in_task_order

    check_is_fitted(model)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    own = n_rows == len(model.tasks_)
    if own:
        X = in_task_order(X, model.tasks_)
    elif truth is None:
        raise ParameterError(
            explain(
                f"X has {plural(n_rows, 'row')}, the model {plural(len(model.tasks_), 'task')}.",
                expected="the training tasks, or truth to color other tasks by",
                fix="give the features used in fit, or the truth= of these rows",
            )
        )
    after = np.asarray(model.transform(X), dtype=np.float64)
    color, legend = _colors(model, truth)
    size = SIZES[0] + (SIZES[1] - SIZES[0]) * model.confidence_ if own else 20.0
    pair = grid_of_axes(axes, 1, 2, (4.0, 3.6))[0]
    for ax, rows, what in zip(pair, (_before(model, X), after), ("before", "after"), strict=True):
        points = _draw(ax, rows, color, size, what)
    if legend is None:
        pair[1].figure.colorbar(points, ax=pair[1], label=f"P({model.classes_[-1]} | labels)")
    else:
        handles, _ = points.legend_elements()
        pair[1].legend(handles, legend, fontsize=8)
    return pair


def _draw(ax: Axes, rows: Floats, color: Floats, size: Floats | float, what: str) -> PathCollection:
    place, share = main_plane(rows)
    points = ax.scatter(place[:, 0], place[:, 1], c=color, s=size, cmap="coolwarm", alpha=0.8, lw=0)
    ax.set(xlabel=f"first direction ({share[0]:.0%})", ylabel=f"second direction ({share[1]:.0%})")
    ax.set_title(what)
    return points


def _before(model: Embedder, X: FeaturesLike) -> Floats:
    """Return the features as the network sees them, as flat rows."""
    import torch

    from crowdwise.nets.features import as_features

    features = as_features(X)
    with torch.no_grad():
        rows = model.net_.scaler(features.rows(torch.arange(features.n_tasks)).float())
    return rows.flatten(start_dim=1).double().numpy()


def _colors(model: Embedder, truth: Names | None) -> tuple[Floats, list[str] | None]:
    """Return a number for each row, and the class names if the numbers are classes."""
    if truth is None and len(model.classes_) == 2:
        return model.posterior_[:, 1], None
    if truth is None:
        codes = model.posterior_.argmax(axis=1)
    else:
        codes = locate(model.classes_, np.asarray(truth, dtype=object))
    return codes.astype(np.float64), [str(model.classes_[k]) for k in np.unique(codes)]
