"""Agreement between workers, corrected for chance in the usual ways."""

from collections.abc import Callable
from functools import partial
from typing import Unpack

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from crowdwise import progress
from crowdwise.evaluate.cohen import estimate_cohen
from crowdwise.evaluate.interpretation import explain_undefined, interpret
from crowdwise.evaluate.intervals import (
    Estimate,
    IntervalSettings,
    bootstrap,
    check_interval,
)
from crowdwise.evaluate.label_counts import (
    LabelCounts,
    WeightsLike,
    expected_similarity,
    label_counts,
    level_kernel,
    note_order,
    once_per_worker,
    sum_similarity,
    weight_kernel,
)
from crowdwise.typing import AnnotationsLike, Array, Floats, RandomState

KAPPA_WEIGHTS = {
    "nominal": "identity",
    "ordinal": "linear",
    "interval": "quadratic",
    "ratio": "ratio",
}


def agreement(
    annotations: AnnotationsLike,
    *,
    level: str = "nominal",
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Measure how much workers agree, in all the usual ways, and interpret it.

    Agreement is between different workers: one who labels a task twice counts once, with
    the last label. Weights are not used, but annotations of weight 0 are left out.
    Intervals come from resampling tasks (Cohen's kappa: from each task's influence).

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Anything that :func:`crowdwise.io.as_annotations` accepts.
    level : {"nominal", "ordinal", "interval", "ratio"}, default="nominal"
        What the classes are: plain names, ranks, numbers, or numbers with a true zero.
        Classes that are not numbers are ranked in the order of ``annotations.classes``.
        Kappas weight near misses linearly for ranks, quadratically for numbers, by their ratio
        for numbers with a true zero; their names say so.
    n_resamples : int, default=1000
        Number of bootstrap resamples; 0 for no intervals.
    confidence : float, default=0.95
        Coverage of the intervals.
    random_state : int or RandomState, default=0
        Random seed.

    Returns
    -------
    DataFrame
        One row per measure; the columns are value, low, high, n_tasks and reading. A measure
        that is not defined for these data is NaN, and its reading says why.

    Examples
    --------
    >>> labels = [[0, 0, 0], [1, 1, 0], [0, 0, -1], [1, 1, 1], [0, 1, 0]]  # tasks x workers
    >>> agreement(labels)["value"].round(3).to_dict()  # doctest: +NORMALIZE_WHITESPACE
    {'observed agreement': 0.733, "Fleiss' kappa": 0.444, "Cohen's kappa": nan,
     "Krippendorff's alpha": 0.458, "Gwet's AC1": 0.487}
    """
    data = once_per_worker(annotations)
    table = label_counts(data)
    weights = KAPPA_WEIGHTS.get(level, "identity")
    kernel = weight_kernel(weights, table.classes)
    named = "" if kernel is None else f" ({weights} weights)"
    distances = level_kernel(level, table)
    settings = IntervalSettings(
        n_resamples=n_resamples, confidence=confidence, random_state=random_state
    )
    observed = partial(_estimate, table, observed_rows(table), observed_value, settings)
    measures: dict[str, Callable[[], Estimate]] = {
        "observed agreement": observed,
        f"Fleiss' kappa{named}": partial(_fleiss, table, kernel, settings),
        f"Cohen's kappa{named}": partial(estimate_cohen, data, kernel, **settings),
        "Krippendorff's alpha": partial(_alpha, table, distances, settings),
        f"Gwet's AC{1 if kernel is None else 2}{named}": partial(_gwet, table, kernel, settings),
    }
    counted = progress.track(measures.items(), "agreement", unit="measure")
    found = {name: measure() for name, measure in counted}
    rows = {
        name: [e.value, e.low, e.high, e.n_tasks, interpret(name, e, table)]
        for name, e in found.items()
    }
    columns = ["value", "low", "high", "n_tasks", "reading"]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return frame.rename_axis(index="measure")


def observed_agreement(
    annotations: AnnotationsLike, **settings: Unpack[IntervalSettings]
) -> Estimate:
    """Compute how often two workers give the same task the same label.

    The mean over tasks with two labels or more. ``settings`` are ``n_resamples``,
    ``confidence`` and ``random_state``, as for :func:`agreement`.
    """
    table = label_counts(once_per_worker(annotations))
    return _estimate(table, observed_rows(table), observed_value, settings)


def fleiss_kappa(
    annotations: AnnotationsLike,
    *,
    weights: WeightsLike = "identity",
    **settings: Unpack[IntervalSettings],
) -> Estimate:
    """Compute agreement beyond that of workers who all draw labels at the crowd's class shares.

    Tasks may have any numbers of labels: agreement is the mean over tasks with two or more,
    and a class's share is the mean over all labeled tasks of its share there (Gwet's rule).

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Anything that :func:`crowdwise.io.as_annotations` accepts.
    weights : {"identity", "linear", "quadratic", "ratio"} or matrix, default="identity"
        How much a near miss counts as agreement.
    **settings
        ``n_resamples``, ``confidence`` and ``random_state``, as for :func:`agreement`.

    References
    ----------
    Fleiss (1971). Measuring nominal scale agreement among many raters. Psychological
    Bulletin 76(5). doi:10.1037/h0031619
    """
    table = label_counts(once_per_worker(annotations))
    return _fleiss(table, weight_kernel(weights, table.classes), settings)


def gwet_ac(
    annotations: AnnotationsLike,
    *,
    weights: WeightsLike = "identity",
    **settings: Unpack[IntervalSettings],
) -> Estimate:
    """Compute Gwet's AC1, or AC2 with other weights, which rare classes do not distort.

    Chance agreement is low when nearly all labels are of one class, while it is high in kappa
    and alpha. Classes that are declared but not used count as possible labels.
    Parameters are those of :func:`fleiss_kappa`.

    References
    ----------
    Gwet (2008). Computing inter-rater reliability and its variance in the presence of high
    agreement. Br. J. Math. Stat. Psychol. 61(1). doi:10.1348/000711006X126600
    """
    table = label_counts(once_per_worker(annotations))
    return _gwet(table, weight_kernel(weights, table.classes), settings)


def krippendorff_alpha(
    annotations: AnnotationsLike, *, level: str = "nominal", **settings: Unpack[IntervalSettings]
) -> Estimate:
    """Compute one minus the ratio of disagreement within tasks to that between any two labels.

    Only tasks with two labels or more count. In the interval of an ordinal alpha, ranks are
    those of the whole data.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Anything that :func:`crowdwise.io.as_annotations` accepts.
    level : {"nominal", "ordinal", "interval", "ratio"}, default="nominal"
        The level of measurement, which decides the distance between two classes.
    **settings
        ``n_resamples``, ``confidence`` and ``random_state``, as for :func:`agreement`.

    References
    ----------
    Krippendorff (2011). Computing Krippendorff's alpha-reliability.
    https://repository.upenn.edu/handle/20.500.14332/2089

    Examples
    --------
    >>> labels = [[1, 1, -1, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2]]
    >>> print(f"{float(krippendorff_alpha(labels)):.3f}")
    0.838
    """
    table = label_counts(once_per_worker(annotations))
    return _alpha(table, level_kernel(level, table), settings)


def observed_rows(table: LabelCounts, kernel: Floats | None = None) -> Floats:
    """Return for each task whether two workers labeled it, and how similar two labels are."""
    pairs = table.size * (table.size - 1)
    same = np.divide(
        sum_similarity(table, kernel) - table.size, pairs, out=np.zeros_like(pairs), where=pairs > 0
    )
    return np.column_stack([table.shared, same])


def observed_value(sums: Floats) -> Floats:
    """Return the mean similarity over tasks with two workers or more."""
    return _ratio(sums[:, 1], sums[:, 0])


def share_rows(table: LabelCounts, kernel: Floats | None) -> csr_array:
    """Extend the rows of :func:`observed_rows` by the share of each class."""
    shares = table.counts.multiply(1 / table.size[:, None])
    return hstack([csr_array(observed_rows(table, kernel)), shares], format="csr")


def fleiss_value(sums: Floats, kernel: Floats | None) -> Floats:
    """Compute kappa, with chance as two draws from the crowd's class shares."""
    shares = _ratio(sums[:, 2:], sums[:, 2:].sum(axis=1, keepdims=True))
    return beyond_chance(observed_value(sums), expected_similarity(shares, kernel))


def gwet_value(sums: Floats, kernel: Floats | None) -> Floats:
    """Compute AC1 or AC2, with chance as a random label on the tasks that are hard to decide."""
    shares = _ratio(sums[:, 2:], sums[:, 2:].sum(axis=1, keepdims=True))
    n_classes = shares.shape[1]
    if n_classes < 2:
        return np.full(len(sums), np.nan)
    similarity = n_classes if kernel is None else kernel.sum()
    doubt = (shares * (1 - shares)).sum(axis=1)
    return beyond_chance(observed_value(sums), similarity / (n_classes * (n_classes - 1)) * doubt)


def alpha_rows(table: LabelCounts, kernel: Floats | None) -> csr_array:
    """Return for each shared task its labels, its disagreement, and its labels of each class."""
    apart = (table.size**2 - sum_similarity(table, kernel)) / np.maximum(table.size - 1, 1)
    columns = [csr_array(np.column_stack([table.size, apart])), table.counts]
    return hstack(columns, format="csr")[np.flatnonzero(table.shared)]


def alpha_value(sums: Floats, kernel: Floats | None) -> Floats:
    """Compute Krippendorff's alpha: 1 - observed / expected disagreement."""
    size, apart = sums[:, 0], sums[:, 1]
    possible = size**2 - expected_similarity(sums[:, 2:], kernel)
    possible[possible <= 1e-9 * size**2] = 0
    return 1 - _ratio((size - 1) * apart, possible)


def beyond_chance(observed: Floats, chance: Floats) -> Floats:
    """Scale agreement from chance (0) to perfect (1), NaN where chance itself is perfect."""
    room = 1 - chance
    room[room <= 1e-9] = 0
    return _ratio(observed - chance, room)


def _ratio(top: Array, bottom: Array) -> Floats:
    out = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    return np.divide(top, bottom, out=out, where=bottom != 0)


def _estimate(
    table: LabelCounts,
    rows: Floats | csr_array,
    statistic: Callable[[Floats], Floats],
    settings: IntervalSettings,
    note: str = "",
) -> Estimate:
    check_interval(settings.get("n_resamples", 0), settings.get("confidence", 0.95))
    n_shared = int(table.shared.sum())
    value = float(statistic(np.asarray(rows.sum(axis=0), dtype=np.float64)[None])[0])
    if not n_shared or np.isnan(value):
        return Estimate(np.nan, n_tasks=n_shared, note=explain_undefined(table))
    return Estimate(value, *bootstrap(rows, statistic, **settings), n_shared, note)


def _fleiss(table: LabelCounts, kernel: Floats | None, settings: IntervalSettings) -> Estimate:
    statistic = partial(fleiss_value, kernel=kernel)
    note = note_order(kernel, table.classes)
    return _estimate(table, share_rows(table, kernel), statistic, settings, note)


def _gwet(table: LabelCounts, kernel: Floats | None, settings: IntervalSettings) -> Estimate:
    statistic = partial(gwet_value, kernel=kernel)
    note = note_order(kernel, table.classes)
    return _estimate(table, share_rows(table, kernel), statistic, settings, note)


def _alpha(table: LabelCounts, kernel: Floats | None, settings: IntervalSettings) -> Estimate:
    statistic = partial(alpha_value, kernel=kernel)
    note = note_order(kernel, table.classes)
    return _estimate(table, alpha_rows(table, kernel), statistic, settings, note)
