"""Plot of learning curves: how results improve with more labels per task."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from sklearn.base import clone
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import Aggregator
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.evaluate.learning_curve import (
    LABELS_PER_TASK,
    fit_and_time,
    fit_with_fewer_labels,
)
from crowdwise.evaluate.truth_alignment import Truths
from crowdwise.io import as_annotations
from crowdwise.io.truths import align_truths
from crowdwise.plot._axes import one_axes
from crowdwise.typing import AnnotationsLike, Floats, RandomState


def plot_redundancy(
    methods: Aggregator | Mapping[str, Aggregator],
    annotations: AnnotationsLike,
    truth: Truths | None = None,
    *,
    n_labels: Sequence[int] | None = None,
    n_draws: int = 10,
    confidence: float = 0.9,
    random_state: RandomState = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the learning curves of methods: how good they are with fewer labels per task.

    Labels are left out at random, down to a given number per task. With known truths the curve
    is the accuracy; otherwise it is the share of tasks that keep the label inferred from all
    annotations, which ends at 1, or lower if labels are tied. A flat end means that more labels
    would help little.

    Parameters
    ----------
    methods : aggregator, or mapping from names to aggregators
        Fitted or not; each is fitted again, all to the same draws.
    annotations : Annotations, frame, array, dict or path
        Labels by workers.
    truth : mapping, Series or frame, optional
        True labels of all or some tasks.
    n_labels : list of int, optional
        Numbers of labels per task to try; by default in growing steps up to all labels.
    n_draws : int, default=10
        Draws of labels for each number; more draws take longer and give smoother curves.
    confidence : float, default=0.9
        Share of the draws in the band around a curve. It reflects the random choice of labels,
        not of tasks.
    random_state : int or RandomState, default=0
        Random seed for choosing the labels to leave out.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from crowdwise.aggregate import DawidSkene, MajorityVote
    >>> from crowdwise.simulate import confused_crowd, one_coin_confusion
    >>> confusion = one_coin_confusion([0.9, 0.9, 0.6, 0.6, 0.6], n_classes=2)
    >>> drawn = confused_crowd(confusion, 200, 5, random_state=0)
    >>> truth = dict(enumerate(drawn.truth))
    >>> methods = {"majority": MajorityVote(), "Dawid-Skene": DawidSkene()}
    >>> ax = plot_redundancy(methods, drawn.annotations, truth, n_draws=3)
    >>> [line.get_label() for line in ax.lines]
    ['majority', 'Dawid-Skene']
    """
    if n_draws < 1 or not 0 < confidence < 1:
        raise ParameterError(
            f"n_draws={n_draws} or confidence={confidence} is out of range.\n"
            "  expected: one draw or more, and a confidence between 0 and 1"
            "\n  fix:      leave them out for the usual ones"
        )
    chosen = name_methods(methods)
    data = as_annotations(annotations).nonempty()
    steps = label_steps(data, n_labels)
    known = None if truth is None else align_truths(truth, data.tasks)[1]
    if known is not None and not len(known):
        raise AnnotationError("There is no truth to compare with.\n  fix:      leave out truth")
    seeds = check_random_state(random_state).randint(2**31 - 1, size=len(steps))
    ax = one_axes(ax, (5.5, 3.8))
    for name, method in chosen.items():
        curve = curve_of(method, data, known, steps, seeds.tolist(), n_draws)
        middle = [float(draws.mean()) for draws in curve]
        edges = np.array(
            [np.quantile(d, [(1 - confidence) / 2, (1 + confidence) / 2]) for d in curve]
        )
        (line,) = ax.plot(steps, middle, "o-", ms=3.5, lw=1.4, label=name)
        ax.fill_between(steps, *edges.T, color=line.get_color(), alpha=0.15, lw=0)
    ax.set_xlabel("labels per task, at most")
    ax.set_ylabel("share with the same label as from all labels" if known is None else "accuracy")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title(f"mean and {confidence:.0%} of {n_draws:,} draws of labels")
    ax.legend(loc="lower right")
    return ax


def name_methods(methods: Aggregator | Mapping[str, Aggregator]) -> dict[str, Aggregator]:
    """Return methods by name; a single one is named after its class."""
    table = dict(methods) if isinstance(methods, Mapping) else {type(methods).__name__: methods}
    for name, method in table.items():
        if not isinstance(method, Aggregator):
            raise ParameterError(
                explain(
                    f"{name} is not an aggregator, but a {type(method).__name__}.",
                    expected="methods of crowdwise.aggregate, or a mapping from names to them",
                    fix="name methods such as DawidSkene()",
                )
            )
    return table


def label_steps(data: Annotations, n_labels: Sequence[int] | None) -> list[int]:
    """Return the numbers of labels per task to try, in order."""
    most = int(data.redundancy.max(initial=0))
    if not most:
        raise AnnotationError(
            "There are no annotations to draw.\n  fix:      give annotations that have labels"
        )
    if n_labels is None:
        return [*(n for n in LABELS_PER_TASK if n < most), most]
    steps = sorted({int(n) for n in n_labels})
    if not steps or steps[0] < 1:
        raise ParameterError(
            f"n_labels={n_labels} is out of range.\n  expected: numbers from 1 up"
            "\n  fix:      leave it out to go from 1 to the largest number"
        )
    return steps


def curve_of(
    method: Aggregator,
    data: Annotations,
    truth: pd.Series | None,
    steps: list[int],
    seeds: list[int],
    n: int,
) -> list[Floats]:
    """Return the score of each draw of labels, for every number of labels."""
    whole = fit_and_time(clone(method), data).posterior
    most = int(data.redundancy.max())
    curve = []
    for n_labels, seed in zip(steps, seeds, strict=True):
        n_draws = n if n_labels < most else 1  # all labels can be drawn in one way only
        kept, right = fit_with_fewer_labels(data, method, whole, n_labels, truth, n_draws, seed)
        curve.append(kept if truth is None else right)
    return curve
