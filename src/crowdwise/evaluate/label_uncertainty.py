"""Uncertainty of everything that is inferred from labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.base import Aggregator
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.evaluate.draws import CrowdDraws, draw_crowds, sample_tasks
from crowdwise.evaluate.intervals import NAN, Estimate, check_interval
from crowdwise.evaluate.label_counts import once_per_worker
from crowdwise.evaluate.model_posterior import model_posterior
from crowdwise.inference import clamp, normalize, pooled_confusion
from crowdwise.io import as_gold
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints, RandomState

MOST_CELLS = 200_000_000  # entries of confusion matrices, over all draws
MOST_MATRICES = 2_000_000  # entries in one draw, for the accuracy of labels alone
ENOUGH = 20_000  # annotations that are enough to know the accuracy of labels well


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """What labels tell, with intervals; see :func:`uncertainty`.

    Attributes
    ----------
    accuracy : Estimate
        Expected share of the inferred labels that are right.
    shares : DataFrame
        By class: value, low, high of its share of the tasks.
    workers : DataFrame
        By worker: value, low, high of the probability of being right.
    confusion : DataFrame or None
        By worker, truth and label: value, low, high of P(label | truth), if asked for.
    """

    accuracy: Estimate
    shares: pd.DataFrame
    workers: pd.DataFrame
    confusion: pd.DataFrame | None


def uncertainty(
    annotations: AnnotationsLike,
    model: Aggregator | pd.DataFrame | None = None,
    gold: GoldLike = None,
    *,
    confusion: bool = False,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> Uncertainty:
    """Bound the accuracy of labels and workers, class shares and confusion matrices.

    The intervals come from a chain of draws in which uncertainty about workers carries over to
    the truths, as if workers erred independently; if the labels show families of workers who err
    together, two draws of three have such families, too. Labels alone cannot show where all
    workers err together, so one draw in five is of a crowd that is misled on some of the tasks:
    up to a fifth of them, or up to 45 % if the labels show that workers err together. This is a
    prior belief, which known truths (``gold``) correct. It makes intervals reach further down
    than up, most of all that of the accuracy of labels. The intervals are about what more labels
    of more such tasks would show, not about the tasks at hand (``crowdwise bench coverage``
    measures how often they hold). Families are visible only if pairs of workers share dozens of
    tasks: something that half of the workers agreed upon can still lie outside where each task
    has few labels. :func:`check_independence` warns of the dependence that it can see.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        A worker who labels a task twice counts once, with the last label.
    model : fitted aggregator or frame of probabilities, optional
        The source of the labels; by default, :data:`crowdwise.aggregate.DEFAULT` is fitted.
    gold : mapping, Series, frame or array, optional
        Known truths of some tasks.
    confusion : bool, default=False
        Whether to bound every entry of the confusion matrices as well.
    confidence : float, default=0.95
        Coverage of the intervals.
    random_state : int or RandomState, default=0
        Random seed of the draws.

    Examples
    --------
    >>> from crowdwise.simulate import simulate_crowd
    >>> votes = simulate_crowd(300, 12, 2, 5, random_state=0).annotations
    >>> found = uncertainty(votes)
    >>> found.accuracy.low < found.accuracy.value < found.accuracy.high
    True
    >>> found.shares.columns.tolist()
    ['value', 'low', 'high']
    """
    check_interval(0, confidence)
    data = once_per_worker(annotations)
    if not data.n_annotations:
        raise AnnotationError(
            explain(
                "There are no annotations.",
                expected="one or more",
                fix="check that it is the right file, and that its labels are not all empty",
            )
        )
    known = None if gold is None else as_gold(gold, data)
    posterior = clamp(model_posterior(data, model, gold), known)
    if confusion:
        refuse_large(data)
    drawn = draw_crowds(data, posterior, known, confusion=confusion, random_state=random_state)
    tables = matrices(data, posterior, drawn, confidence) if confusion else None
    return Uncertainty(
        expect_accuracy(data, posterior, drawn, confidence),
        bound_shares(data, posterior, *drawn.interval("shares", confidence)),
        frame(
            share_right(data, posterior),
            *drawn.interval("accuracy", confidence),
            pd.Index(data.workers, name="worker", tupleize_cols=False),
        ),
        tables,
    )


class LabelDoubt(NamedTuple):
    """What labels alone say about tasks, with intervals; NaN if there are none."""

    accuracy: Estimate
    shares: pd.DataFrame


def assess_labels(
    annotations: Annotations,
    posterior: Floats,
    gold: Ints | None = None,
    *,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> LabelDoubt:
    """Assess accuracy and class shares by labels alone, on a sample if there are many tasks.

    There is no interval if there are too many workers and classes for their matrices.
    """
    data = once_per_worker(annotations)
    rows = sample_tasks(data, ENOUGH, random_state)
    some = only_busy(data if len(rows) == data.n_tasks else data[rows])
    if not some.n_annotations or some.n_workers * some.n_classes**2 > MOST_MATRICES:
        nothing = np.full(data.n_classes, NAN)
        alone = Estimate(mean_confidence(data, posterior), n_tasks=count_labeled(data))
        return LabelDoubt(alone, bound_shares(data, posterior, nothing, nothing))
    known = None if gold is None else gold[rows]
    drawn = draw_crowds(some, clamp(posterior[rows], known), known, random_state=random_state)
    posterior = clamp(posterior, gold)
    return LabelDoubt(
        expect_accuracy(data, posterior, drawn, confidence),
        bound_shares(data, posterior, *drawn.interval("shares", confidence)),
    )


def only_busy(data: Annotations) -> Annotations:
    """Return the annotations without the workers who have no labels."""
    used, worker = np.unique(data.worker, return_inverse=True)
    return replace(data, workers=data.workers[used], worker=worker.astype(data.worker.dtype))


def count_labeled(data: Annotations) -> int:
    return int((data.redundancy > 0).sum())


def mean_confidence(data: Annotations, posterior: Floats) -> float:
    """Return the mean confidence of the tasks with labels, which is their expected accuracy."""
    labeled = posterior[data.redundancy > 0]
    return float(labeled.max(axis=1).mean()) if len(labeled) else NAN


def expect_accuracy(
    data: Annotations, posterior: Floats, drawn: CrowdDraws, confidence: float
) -> Estimate:
    value = mean_confidence(data, posterior)
    low, high = (float(end) for end in drawn.interval("right", confidence))
    return Estimate(value, min(low, value), max(high, value), count_labeled(data))


def share_right(data: Annotations, posterior: Floats) -> Floats:
    """Return the expected share of right labels of each worker, NaN without labels."""
    n = np.bincount(data.worker, minlength=data.n_workers)
    right = np.bincount(data.worker, posterior[data.task, data.label], minlength=data.n_workers)
    return np.divide(right, n, out=np.full(len(n), np.nan), where=n > 0)


def bound_shares(data: Annotations, posterior: Floats, low: Array, high: Array) -> pd.DataFrame:
    """Return the share of each class among the tasks that have labels."""
    value = normalize(posterior[data.redundancy > 0].sum(axis=0))
    columns = pd.Index(data.classes, name="class", tupleize_cols=False)
    return frame(value, low, high, columns)


def frame(value: Floats, low: Array, high: Array, index: pd.Index) -> pd.DataFrame:
    """Make a frame of values with bounds that include them."""
    columns = {"value": value, "low": np.minimum(low, value), "high": np.maximum(high, value)}
    return pd.DataFrame(columns, index=index)


def matrices(
    data: Annotations, posterior: Floats, drawn: CrowdDraws, confidence: float
) -> pd.DataFrame:
    """Return P(label | truth) of every worker, one row per entry."""
    index = pd.MultiIndex.from_product(
        [data.workers, data.classes, data.classes], names=["worker", "truth", "label"]
    )
    low, high = drawn.interval("confusion", confidence)
    value = pooled_confusion(data, posterior)
    return frame(value.reshape(-1), low.reshape(-1), high.reshape(-1), index)


def refuse_large(data: Annotations) -> None:
    cells = data.n_workers * data.n_classes**2
    if cells * 60 > MOST_CELLS:
        raise ParameterError(
            explain(
                f"The confusion matrices have {cells:,} entries, too many to be drawn repeatedly.",
                expected=f"{MOST_CELLS // 60:,} or fewer",
                fix="select some of the workers, or leave confusion out",
            )
        )
