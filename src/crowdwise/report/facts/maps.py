"""Tasks and workers as points on a plane."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations, tied
from crowdwise.annotations.names import locate
from crowdwise.base.fitting import column_names
from crowdwise.errors import ParameterError, explain, plural
from crowdwise.inference import pooled_confusion
from crowdwise.io.truths import counts_from, refuse_row_numbers
from crowdwise.typing import FeaturesLike, Floats, Ints, RandomState

MOST_POINTS = 1_500
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
FLATTEST = 0.6  # a side shorter than this share of the other is not stretched to full height
STEP = 0.006  # distance between points at the same position, in widths of the map


@dataclass(frozen=True)
class MapFacts:
    """Points, with a name and values for each."""

    source: str  # what positions are based on, in words
    shares: tuple[float, float]  # of the variance, along x and y
    name: list[str]
    x: Floats  # (point,): from 0 to 1
    y: Floats
    group: Ints  # (point,): class number of a task's label, -1 for workers
    value: Floats  # (point,): confidence of a task, accuracy of a worker
    n_labels: Ints  # (point,)
    note: str


def task_map(
    data: Annotations,
    posterior: Floats,
    X: FeaturesLike = None,
    embedding: FeaturesLike = None,
    random_state: RandomState = 0,
) -> MapFacts | None:
    """Place tasks by an embedding, else by features, else by their labels."""
    if embedding is not None:
        rows, own = align_rows(embedding, data, "embedding")
        source = "the embedding"
    elif X is not None:
        rows, own = align_rows(X, data, "X")
        rows, source = standardize(rows), "the features"
    else:
        own = np.flatnonzero(data.redundancy)
        rows = np.hstack([data.shares(), posterior])[own]
        source = "the labels: the share of each class, before and after inference"
    if len(rows) < 3:
        return None
    chosen = np.sort(check_random_state(random_state).permutation(len(rows))[:MOST_POINTS])
    x, y, shares = project(rows, chosen)
    at = own[chosen]
    return MapFacts(
        source=source,
        shares=shares,
        name=[str(name) for name in data.tasks[at].tolist()],
        x=x,
        y=y,
        group=tied(posterior[at]).argmax(axis=1),
        value=posterior[at].max(axis=1),
        n_labels=data.redundancy[at],
        note=_sampled(len(chosen), len(rows), "tasks"),
    )


def worker_map(
    data: Annotations, posterior: Floats, number: Ints, accuracy: Floats
) -> MapFacts | None:
    """Place workers by their mistakes: confusion matrices, pooled with the crowd's."""
    number, accuracy = number[:MOST_POINTS], accuracy[:MOST_POINTS]
    if len(number) < 3 or data.n_classes < 2:
        return None
    rows = pooled_confusion(data, posterior)[number].reshape(len(number), -1)
    x, y, shares = project(rows, np.arange(len(rows)))
    labels = np.bincount(data.worker, minlength=data.n_workers)
    return MapFacts(
        source="the confusion matrices",
        shares=shares,
        name=[str(name) for name in data.workers[number].tolist()],
        x=x,
        y=y,
        group=np.full(len(number), -1),
        value=accuracy,
        n_labels=labels[number],
        note=_sampled(len(number), int((labels > 0).sum()), "workers", "the busiest"),
    )


def align_rows(table: FeaturesLike, data: Annotations, what: str) -> tuple[Floats, Ints]:
    """Return rows of numbers with their tasks, which a frame's index names."""
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2:
        raise ParameterError(
            explain(
                f"{what} has {values.ndim} dimensions.",
                expected="one row of numbers per task",
                fix="give a table with a row for each task",
            )
        )
    column_names(table)  # refuses columns that cannot be features
    index = table.index if isinstance(table, pd.DataFrame) else None
    counted = index is None or (isinstance(index, pd.RangeIndex) and counts_from(index, 0))
    if index is not None and not (counted and len(values) == data.n_tasks):
        refuse_row_numbers(index, data.tasks, what)
        place = locate(index.to_numpy(), data.tasks)
    elif len(values) == data.n_tasks:
        place = np.arange(len(values))
    else:
        raise ParameterError(
            explain(
                f"{what} has {plural(len(values), 'row')} for {plural(data.n_tasks, 'task')}.",
                expected="one row per task, in the order of annotations.tasks",
                fix="or give a frame with the tasks as its index",
            )
        )
    usable = (place >= 0) & np.append(np.isfinite(values).all(axis=1), False)[place]
    if not usable.any():
        raise ParameterError(
            explain(
                f"{what} describes none of the tasks.",
                expected=f"finite numbers for tasks such as {str(data.tasks[0])!r}",
                fix="index the table by task",
            )
        )
    return values[place[usable]], np.flatnonzero(usable)


def standardize(rows: Floats) -> Floats:
    """Scale each column to mean 0 and standard deviation 1; constant ones become 0."""
    spread = rows.std(axis=0)
    return np.divide(rows - rows.mean(axis=0), spread, out=np.zeros_like(rows), where=spread > 0)


def project(rows: Floats, chosen: Ints) -> tuple[Floats, Floats, tuple[float, float]]:
    """Project to two main directions, from 0 to 1; points at the same position fan out."""
    size = min(2, rows.shape[1])
    with np.errstate(invalid="ignore"):  # identical rows have no direction
        pca = PCA(size, svd_solver="full").fit(rows[chosen])
    place, shares = np.zeros((len(chosen), 2)), np.zeros(2)
    place[:, :size] = pca.transform(rows[chosen])
    shares[:size] = np.nan_to_num(pca.explained_variance_ratio_)
    wide = np.maximum(np.ptp(place, axis=0), 1e-9)
    place /= np.maximum(wide, FLATTEST * wide.max())
    place += fan_out(place)
    middle = (place.min(axis=0) + place.max(axis=0)) / 2
    place = 0.5 + (place - middle) / np.maximum(np.ptp(place, axis=0), 1.0)
    return place[:, 0], place[:, 1], (float(shares[0]), float(shares[1]))


def fan_out(place: Floats) -> Floats:
    """Compute offsets that spread points at the same position, so that all are visible."""
    _, group, size = np.unique(np.round(place, 4), axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - (np.cumsum(size) - size)[group[order]]
    radius = STEP * np.sqrt(rank)
    return np.column_stack(
        [radius * np.cos(rank * GOLDEN_ANGLE), radius * np.sin(rank * GOLDEN_ANGLE)]
    )


def _sampled(n: int, total: int, what: str, how: str = "drawn at random") -> str:
    return "" if n >= total else f"{n:,} of {total:,} {what}, {how}."
