"""Speed and drift, where it is known when annotations were given."""

from dataclasses import dataclass

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.evaluate.intervals import credible
from crowdwise.evaluate.workers import expected_accuracy
from crowdwise.typing import Floats, Ints

ENOUGH = 20  # labels for a worker to have a first and a second half
CONFIDENCE = 0.95
HASTE = 0.25  # of the crowd's median pace: faster than this is called hasty
N_PERIODS = 10
EPOCH_SECONDS, EPOCH_MILLIS = 1e8, 1e11  # a median above these is a date as a number


@dataclass(frozen=True)
class Period:
    """A tenth of the annotations, by time."""

    start: str
    accuracy: float
    low: float
    high: float
    n_labels: int


@dataclass(frozen=True)
class TimeFacts:
    """Pace and drift of the workers of a :class:`WorkerFacts`, in its order."""

    unit: str  # "s", or "" where the times are plain numbers
    first: str
    last: str
    pace: Floats  # (row,): median time from one label to the next, NaN where unknown
    median_pace: float
    n_hasty: int  # workers far faster than most
    early: Floats  # (row,): accuracy in the first half of the worker's labels
    late: Floats  # (row,): in the second half
    drift: Ints  # (row,): -1 surely worse, 1 surely better, 0 not sure
    periods: tuple[Period, ...]


def time_facts(data: Annotations, posterior: Floats, number: Ints) -> TimeFacts | None:
    """How fast each worker is, and whether accuracy changes on the way."""
    if data.time is None or not data.n_annotations:
        return None
    seconds, unit = as_seconds(data.time)
    known = np.isfinite(seconds)
    if np.ptp(seconds[known]) == 0 if known.any() else True:
        return None
    pace = pace_of(data.worker, seconds, data.n_workers)
    early, late, drift = drift_of(data, posterior, seconds)
    middle = float(np.nanmedian(pace)) if np.isfinite(pace).any() else float("nan")
    times = np.sort(seconds[known])
    return TimeFacts(
        unit=unit,
        first=stamp(times[0], unit),
        last=stamp(times[-1], unit),
        pace=pace[number],
        median_pace=middle,
        n_hasty=int((pace < HASTE * middle).sum()),
        early=early[number],
        late=late[number],
        drift=drift[number],
        periods=periods_of(data, posterior, seconds, unit),
    )


def as_seconds(time: Ints | Floats) -> tuple[Floats, str]:
    """Times as seconds where they are dates; other numbers as they are, without a unit."""
    if time.dtype.kind in "mM":
        whole = time.astype("datetime64[ns]").astype(np.int64)
        return np.where(np.isnat(time), np.nan, whole / 1e9), "s"
    seconds = np.asarray(time, dtype=np.float64)
    middle = np.nanmedian(np.abs(seconds)) if np.isfinite(seconds).any() else 0.0
    if middle >= EPOCH_MILLIS:
        return seconds / 1e3, "s"
    return seconds, "s" if middle >= EPOCH_SECONDS else ""


def stamp(second: float, unit: str) -> str:
    """A time as people write it."""
    if not unit:
        return f"{second:g}"
    return str(np.datetime64(round(second), "s")).replace("T", " ")


def pace_of(worker: Ints, seconds: Floats, n_workers: int) -> Floats:
    """Median time between one label of a worker and the next, NaN with fewer than three."""
    order = np.lexsort((seconds, worker))
    order = order[np.isfinite(seconds[order])]
    owner, gap = worker[order][1:], np.diff(seconds[order])
    same = owner == worker[order][:-1]
    return medians(owner[same], gap[same], n_workers, least=2)


def medians(group: Ints, values: Floats, n_groups: int, least: int = 1) -> Floats:
    """Median of each group's values, NaN where there are fewer than ``least``."""
    order = np.lexsort((values, group))
    sorted_values = values[order]
    size = np.bincount(group, minlength=n_groups)
    start = np.cumsum(size) - size
    out = np.full(n_groups, np.nan)
    told = size >= least
    low, high = start[told] + (size[told] - 1) // 2, start[told] + size[told] // 2
    out[told] = (sorted_values[low] + sorted_values[high]) / 2
    return out


def drift_of(data: Annotations, posterior: Floats, seconds: Floats) -> tuple[Floats, Floats, Ints]:
    """Accuracy in the two halves of each worker's labels, and whether they surely differ."""
    order = np.lexsort((seconds, data.worker))
    size = np.bincount(data.worker, minlength=data.n_workers)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - (np.cumsum(size) - size)[data.worker[order]]
    first = rank < size[data.worker] / 2
    early, early_low, early_high = expected_accuracy(data.filter(first), posterior, CONFIDENCE)
    late, late_low, late_high = expected_accuracy(data.filter(~first), posterior, CONFIDENCE)
    few = size < ENOUGH
    drift = (late_low > early_high).astype(np.int64) - (late_high < early_low)
    return np.where(few, np.nan, early), np.where(few, np.nan, late), np.where(few, 0, drift)


def periods_of(
    data: Annotations, posterior: Floats, seconds: Floats, unit: str
) -> tuple[Period, ...]:
    """Accuracy of all workers together over ten periods of as many annotations."""
    right = posterior[data.task, data.label]
    order = np.argsort(seconds, kind="stable")
    order = order[np.isfinite(seconds[order])]
    found = []
    for rows in np.array_split(order, min(N_PERIODS, len(order))):
        total, n = float(right[rows].sum()), len(rows)
        low, high = credible(total, n, CONFIDENCE)
        start = stamp(seconds[rows[0]], unit)
        found.append(Period(start, total / n, float(low), float(high), n))
    return tuple(found)
