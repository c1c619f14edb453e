"""Accuracy, mistakes, pace and drift of each worker."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import Aggregator
from crowdwise.evaluate import worker_quality
from crowdwise.evaluate.intervals import credible
from crowdwise.evaluate.workers import expected_accuracy
from crowdwise.inference import count_labels
from crowdwise.typing import Floats, Ints

MOST_WORKERS = 2_000  # rows in the table
MOST_CELLS = 120_000  # in confusion matrices
FLAGS = (
    "answers as if at random",
    "always the same label",
    "often contradicts the rest",
    "too few labels to say",
)
ENOUGH = 20  # labels for a worker to have a first and a second half
CONFIDENCE = 0.95
HASTE = 0.25  # of the crowd's median pace: anything faster is called hasty
N_PERIODS = 10
EPOCH_SECONDS, EPOCH_MILLIS = 1e8, 1e11  # numeric times with a median above these are dates


@dataclass(frozen=True)
class WorkerFacts:
    """One row per worker, busiest first, for as many workers as a page can hold."""

    n_workers: int
    flags: dict[str, int]  # of all workers
    mean_accuracy: float  # over annotations, so busy workers count more
    note: str
    number: Ints  # (row,): number in the annotations
    name: list[str]
    n_labels: Ints
    accuracy: Floats
    low: Floats
    high: Floats
    agreement: Floats  # with another worker of the same task
    skill: Floats  # 0 ignores the task, 1 knows every truth
    flag: list[str]
    n_gold: Ints | None  # labels on tasks with a known truth
    gold_accuracy: Floats | None
    confusion: Floats  # (row, truth, label): expected counts, for as many rows as fit

    @property
    def n_flagged(self) -> int:
        """Number of flagged workers, except those with too few labels."""
        return sum(n for flag, n in self.flags.items() if "few" not in flag)


def worker_facts(
    data: Annotations,
    posterior: Floats,
    truth: pd.Series | None,
    model: Aggregator | None = None,
) -> WorkerFacts:
    """Assess all workers; ``data`` has one label per worker and task."""
    frame = pd.DataFrame(posterior, index=data.tasks, columns=data.classes)
    quality = worker_quality(data, frame if model is None else model)
    quality = quality.assign(number=np.arange(len(quality)))[quality["n_labels"] > 0]
    shown = quality.sort_values("n_labels", ascending=False, kind="stable").head(MOST_WORKERS)
    number = shown["number"].to_numpy()
    gold = None if truth is None else worker_quality(data, frame, truth).iloc[number]
    return WorkerFacts(
        n_workers=len(quality),
        flags={flag: int((quality["flag"] == flag).sum()) for flag in FLAGS},
        mean_accuracy=float(np.average(quality["accuracy"], weights=quality["n_labels"])),
        note=_left_out(len(shown), len(quality)),
        number=number,
        name=[str(name) for name in shown.index.tolist()],
        n_labels=shown["n_labels"].to_numpy(),
        accuracy=shown["accuracy"].to_numpy(),
        low=shown["accuracy_low"].to_numpy(),
        high=shown["accuracy_high"].to_numpy(),
        agreement=shown["agreement"].to_numpy(),
        skill=shown["skill"].to_numpy(),
        flag=shown["flag"].tolist(),
        n_gold=None if gold is None else gold["n_gold"].to_numpy(),
        gold_accuracy=None if gold is None else gold["gold_accuracy"].to_numpy(),
        confusion=count_confusions(data, posterior, number),
    )


def count_confusions(data: Annotations, posterior: Floats, number: Ints) -> Floats:
    """Return expected counts (row, truth, label) for as many of these workers as fit."""
    n_classes = data.n_classes
    room = max(MOST_CELLS // max(n_classes, 1) ** 2, 0)
    number = number[:room]
    if not len(number):
        return np.zeros((0, n_classes, n_classes))
    row = np.full(data.n_workers, -1)
    row[number] = np.arange(len(number))
    return count_labels(replace(data, weight=None, soft=None), posterior, row)


def _left_out(n_rows: int, n_workers: int) -> str:
    if n_rows == n_workers:
        return ""
    return (
        f"The {n_rows:,} busiest of {n_workers:,} workers are listed; "
        "crowdwise workers writes all of them."
    )


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

    unit: str  # "s", or "" if times are plain numbers
    first: str
    last: str
    pace: Floats  # (row,): median time between two labels, NaN if unknown
    median_pace: float
    n_hasty: int  # workers who are much faster than most
    early: Floats  # (row,): accuracy in the first half of the worker's labels
    late: Floats  # (row,): in the second half
    drift: Ints  # (row,): -1 significantly worse, 1 better, 0 neither
    periods: tuple[Period, ...]


def time_facts(data: Annotations, posterior: Floats, number: Ints) -> TimeFacts | None:
    """Measure how fast each worker is, and whether accuracy changes over time."""
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
        first=format_time(times[0], unit),
        last=format_time(times[-1], unit),
        pace=pace[number],
        median_pace=middle,
        n_hasty=int((pace < HASTE * middle).sum()),
        early=early[number],
        late=late[number],
        drift=drift[number],
        periods=periods_of(data, posterior, seconds, unit),
    )


def as_seconds(time: Ints | Floats) -> tuple[Floats, str]:
    """Convert dates to seconds; other numbers are returned as they are, without a unit."""
    if time.dtype.kind in "mM":
        whole = time.astype("datetime64[ns]").astype(np.int64)
        return np.where(np.isnat(time), np.nan, whole / 1e9), "s"
    seconds = np.asarray(time, dtype=np.float64)
    middle = np.nanmedian(np.abs(seconds)) if np.isfinite(seconds).any() else 0.0
    if middle >= EPOCH_MILLIS:
        return seconds / 1e3, "s"
    return seconds, "s" if middle >= EPOCH_SECONDS else ""


def format_time(second: float, unit: str) -> str:
    """Format a time for people to read."""
    if not unit:
        return f"{second:g}"
    return str(np.datetime64(round(second), "s")).replace("T", " ")


def pace_of(worker: Ints, seconds: Floats, n_workers: int) -> Floats:
    """Return the median time between a worker's labels, NaN for fewer than three."""
    order = np.lexsort((seconds, worker))
    order = order[np.isfinite(seconds[order])]
    owner, gap = worker[order][1:], np.diff(seconds[order])
    same = owner == worker[order][:-1]
    return group_medians(owner[same], gap[same], n_workers, least=2)


def group_medians(group: Ints, values: Floats, n_groups: int, least: int = 1) -> Floats:
    """Return the median of each group's values, NaN for fewer than ``least``."""
    order = np.lexsort((values, group))
    sorted_values = values[order]
    size = np.bincount(group, minlength=n_groups)
    start = np.cumsum(size) - size
    out = np.full(n_groups, np.nan)
    enough = size >= least
    low = start[enough] + (size[enough] - 1) // 2
    high = start[enough] + size[enough] // 2
    out[enough] = (sorted_values[low] + sorted_values[high]) / 2
    return out


def drift_of(data: Annotations, posterior: Floats, seconds: Floats) -> tuple[Floats, Floats, Ints]:
    """Compare the halves of each worker's labels, and test if accuracy differs."""
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
    """Compute the accuracy of all workers together in ten periods of equal size."""
    right = posterior[data.task, data.label]
    order = np.argsort(seconds, kind="stable")
    order = order[np.isfinite(seconds[order])]
    found = []
    for rows in np.array_split(order, min(N_PERIODS, len(order))):
        total, n = float(right[rows].sum()), len(rows)
        low, high = credible(total, n, CONFIDENCE)
        start = format_time(seconds[rows[0]], unit)
        found.append(Period(start, total / n, float(low), float(high), n))
    return tuple(found)
