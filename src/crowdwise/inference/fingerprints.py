"""Numbers that tell workers and tasks apart by the labels, whatever the names and the order."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from crowdwise.annotations import Annotations
from crowdwise.typing import Floats, Ints

Hashes = NDArray[np.uint64]

ROUNDS = 2  # after which workers who differ at all have different fingerprints, nearly always
LOW = 1 << 20  # a hash is summed in parts below this: exactly, up to 2**27 of them
FINE = 64.0  # weights count in steps of one over this
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def scramble(value: Hashes) -> Hashes:
    """Spread each number over all 64 bits (the finalizer of splitmix64)."""
    value = value + GOLDEN
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def fingerprint_workers(annotations: Annotations) -> Hashes:
    """One number per worker from the workers' labels, and those of others on the same tasks.

    Names and the order of rows, tasks, workers and classes do not enter, nor do annotations of
    weight 0; a weight of two is a repeated row. Workers with one fingerprint are
    exchangeable, nearly always. (Labels and workers color each other in turn, as in the test of
    Weisfeiler and Leman for graphs.)
    """
    rows, n_classes = Rows.of(annotations), annotations.n_classes
    n_tasks = annotations.n_tasks
    choices, choice = number_choices(rows.task * n_classes + rows.label, n_tasks * n_classes)
    color = np.zeros(annotations.n_workers, dtype=np.uint64)
    for _ in range(ROUNDS):
        by_choice = scramble(add_up(choice, color[rows.worker], rows.weight, len(choices)))
        by_task = add_up(choices // n_classes, by_choice, None, n_tasks)
        seen = scramble(by_choice[choice] ^ scramble(by_task[rows.task]))
        color = add_up(rows.worker, seen, rows.weight, annotations.n_workers)
    return color


class Fingerprints(NamedTuple):
    """A number per task, worker and class, from the labels alone."""

    tasks: Hashes
    workers: Hashes
    classes: Hashes


def fingerprint(
    annotations: Annotations, truth: Ints | None = None, workers: Hashes | None = None
) -> Fingerprints:
    """Numbers of everything; see :func:`fingerprint_workers`, whose result may be given.

    That of a task comes from who labeled it, as what, and, with ``truth``, who was right (the
    class of each task, negative where it is unknown); that of a class from who gave it.
    """
    rows = Rows.of(annotations)
    workers = fingerprint_workers(annotations) if workers is None else workers
    who = workers[rows.worker]
    classes = add_up(rows.label, who, rows.weight, annotations.n_classes)
    given = scramble(classes)[rows.label]
    if truth is not None:
        given += (rows.label == truth[rows.task]).astype(np.uint64)
    tasks = add_up(rows.task, who ^ scramble(given), rows.weight, annotations.n_tasks)
    return Fingerprints(tasks, workers, classes)


@dataclass(frozen=True)
class Rows:
    """The annotations that count, as columns; a soft one is a row for every class."""

    task: Ints
    worker: Ints
    label: Ints
    weight: Floats | None

    @classmethod
    def of(cls, annotations: Annotations) -> Self:
        cells = annotations.cells
        task: Ints = np.repeat(np.arange(cells.n_tasks), np.diff(cells.indptr))
        code, weight = cells.code, cells.value
        if weight is not None:
            weight = np.round(weight * FINE) / FINE
            counted = weight > 0
            task, code, weight = task[counted], code[counted], weight[counted]
        return cls(task, *np.divmod(code, annotations.n_classes), weight)


def number_choices(choice: Ints, n_possible: int) -> tuple[Ints, Ints]:
    """The different choices in order, and the place of each one among them."""
    if n_possible > 4 * len(choice):
        return np.unique(choice, return_inverse=True)
    there = np.bincount(choice, minlength=n_possible) > 0  # the same, without sorting
    return np.flatnonzero(there), (np.cumsum(there) - 1)[choice]


def rank_equals(values: Hashes) -> Ints:
    """How many equal numbers come before each one."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    first = np.searchsorted(ranked, ranked)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - first
    return rank


def add_up(group: Ints, value: Hashes, weight: Floats | None, n_groups: int) -> Hashes:
    """Scrambled sums of scrambled values, the same in any order of the rows."""
    value = scramble(value)
    total = np.zeros(n_groups, dtype=np.uint64)
    for shift in (0, 20, 40):
        part = ((value >> np.uint64(shift)) % np.uint64(LOW)).astype(np.float64)
        part = part if weight is None else part * weight
        sums = np.bincount(group, part, minlength=n_groups)
        total = scramble(total ^ (sums * FINE).astype(np.uint64))
    return total
