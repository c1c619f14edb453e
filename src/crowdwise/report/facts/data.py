"""Contents of the data, and anything odd about them."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from crowdwise.annotations import Annotations
from crowdwise.typing import Array, Ints

BUSY_SHARE = 0.1  # the busiest tenth of the workers
MOST_BARS = 12  # in a histogram of counts


@dataclass(frozen=True)
class Bar:
    """The number of tasks or workers with ``low`` to ``high`` labels."""

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class Spread:
    """The spread of a count over tasks or workers."""

    least: int
    median: float
    mean: float
    most: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class DataFacts:
    """Sizes, and everything to check before trusting any number."""

    n_annotations: int
    n_tasks: int
    n_workers: int
    n_classes: int
    per_task: Spread
    per_worker: Spread
    n_unlabeled: int  # tasks without a label
    n_single: int  # tasks with one label
    n_shared: int  # tasks labeled by two or more workers
    n_unanimous: int  # shared tasks without disagreement
    n_repeats: int  # annotations by a worker who had labeled the task before
    n_contradictions: int  # repeats that differ from the worker's first label
    n_idle: int  # workers without a label
    n_once: int  # workers with one label
    busy_share: float  # share of annotations by the busiest tenth of the workers
    n_parts: int  # connected parts of tasks and workers
    n_workers_apart: int  # workers outside the largest part
    n_tasks_apart: int
    unused: tuple[str, ...]  # classes that nobody used
    alike: tuple[tuple[str, ...], ...]  # classes whose names differ only by case or spaces
    weighted: bool
    soft: bool
    timed: bool
    notes: tuple[str, ...]  # from reading the data


def data_facts(annotations: Annotations, rare: str = "") -> DataFacts:
    """Count what is in the data; ``rare`` is a note if classes were merged."""
    data = annotations
    labels = np.bincount(data.worker, minlength=data.n_workers)
    n_workers_of, first_label = workers_of_tasks(data)
    alone = find_unanimous(data)
    shared = n_workers_of > 1
    parts, workers_apart, tasks_apart = parts_of(data)
    used = np.bincount(data.label, minlength=data.n_classes) > 0
    n_busy = max(round(BUSY_SHARE * data.n_workers), 1)
    return DataFacts(
        n_annotations=data.n_annotations,
        n_tasks=data.n_tasks,
        n_workers=data.n_workers,
        n_classes=data.n_classes,
        per_task=spread(data.redundancy),
        per_worker=spread(labels),
        n_unlabeled=int((data.redundancy == 0).sum()),
        n_single=int((data.redundancy == 1).sum()),
        n_shared=int(shared.sum()),
        n_unanimous=int((shared & alone).sum()),
        n_repeats=data.n_repeats,
        n_contradictions=int((first_label != data.label).sum()),
        n_idle=int((labels == 0).sum()),
        n_once=int((labels == 1).sum()),
        busy_share=float(np.sort(labels)[::-1][:n_busy].sum() / max(labels.sum(), 1)),
        n_parts=parts,
        n_workers_apart=workers_apart,
        n_tasks_apart=tasks_apart,
        unused=tuple(map(str, data.classes[~used])),
        alike=find_similar_names(data.classes),
        weighted=data.weight is not None,
        soft=data.soft is not None,
        timed=data.time is not None,
        notes=(*data.notes, *([rare] if rare else [])),
    )


def spread(counts: Ints) -> Spread:
    """Return minimum, median, mean and maximum of a count, and its histogram."""
    if not len(counts):
        return Spread(0, float("nan"), float("nan"), 0, ())
    return Spread(
        int(counts.min()),
        float(np.median(counts)),
        float(counts.mean()),
        int(counts.max()),
        bars_of(counts),
    )


def bars_of(counts: Ints) -> tuple[Bar, ...]:
    """Make one bar per count if there are few counts, else one per growing range."""
    values, times = np.unique(counts, return_counts=True)
    if len(values) <= MOST_BARS and values[-1] - values[0] < 2 * MOST_BARS:
        return tuple(Bar(int(v), int(v), int(t)) for v, t in zip(values, times, strict=True))
    grid = np.geomspace(max(int(values[0]), 1), int(values[-1]) + 1, MOST_BARS + 1)
    edges = np.unique(np.round(grid).astype(np.int64))
    edges[0], edges[-1] = values[0], values[-1] + 1
    held = np.add.reduceat(times, np.minimum(np.searchsorted(values, edges[:-1]), len(times) - 1))
    empty = np.searchsorted(values, edges[:-1]) == np.searchsorted(values, edges[1:])
    held = np.where(empty, 0, held)
    return tuple(
        Bar(int(low), int(high) - 1, int(n))
        for low, high, n in zip(edges[:-1], edges[1:], held, strict=True)
    )


def workers_of_tasks(data: Annotations) -> tuple[Ints, Ints]:
    """Count the workers of each task, and mark each annotation that is its worker's first."""
    pair = data.task.astype(np.int64) * max(data.n_workers, 1) + data.worker
    _, first, place = np.unique(pair, return_index=True, return_inverse=True)
    return np.bincount(data.task[first], minlength=data.n_tasks), data.label[first][place]


def find_unanimous(data: Annotations) -> Array:
    """Return which tasks have labels of a single class."""
    return (data.votes() > 0).sum(axis=1) == 1


def parts_of(data: Annotations) -> tuple[int, int, int]:
    """Count connected components, and workers and tasks outside the largest."""
    if not data.n_annotations:
        return 0, 0, 0
    n_tasks, size = data.n_tasks, data.n_tasks + data.n_workers
    ones = np.ones(data.n_annotations, dtype=np.int8)
    graph = csr_array((ones, (data.task, n_tasks + data.worker)), shape=(size, size))
    n_parts, part = connected_components(graph, directed=False)
    busy = np.bincount(part[data.task], minlength=n_parts)  # isolated names have none
    apart = (part != busy.argmax()) & (busy[part] > 0)
    return int((busy > 0).sum()), int(apart[n_tasks:].sum()), int(apart[:n_tasks].sum())


def find_similar_names(names: Array) -> tuple[tuple[str, ...], ...]:
    """Group names that differ only by case or spaces."""
    groups: dict[str, list[str]] = {}
    for name in map(str, names.tolist()):
        groups.setdefault("".join(name.casefold().split()), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)
