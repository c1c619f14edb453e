"""Hashes that identify workers and tasks by their labels, whatever the names and order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from crowdwise.annotations import Annotations
from crowdwise.inference.engines.engine import Engine
from crowdwise.inference.engines.kernels import Block
from crowdwise.inference.engines.memory import MemoryEngine
from crowdwise.inference.rows import as_columns
from crowdwise.typing import Floats, Ints

Hashes = NDArray[np.uint64]

ROUNDS = 2  # after which different workers nearly always have different fingerprints
LOW = 1 << 20  # hashes are summed in parts below this, exactly for up to 2**27 of them
SHIFTS = (0, 20, 40)  # of these parts
FINE = 64.0  # weights are counted in steps of one over this
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def scramble(value: Hashes) -> Hashes:
    """Spread each number over all 64 bits (the finalizer of splitmix64)."""
    value = value + GOLDEN
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def fingerprint_workers(annotations: Annotations) -> Hashes:
    """Compute one number per worker from their labels, and those of others on the same tasks.

    Names and the order of rows, tasks, workers and classes have no effect, nor do annotations of
    weight 0; a weight of two is a repeated row. Workers with equal fingerprints are nearly
    always exchangeable. (Labels and workers color each other in turn, as in the graph test of
    Weisfeiler and Leman.)
    """
    return color_workers(MemoryEngine(annotations))


def color_workers(engine: Engine) -> Hashes:
    """See :func:`fingerprint_workers`."""
    worker, n_workers = engine.pairs.worker, engine.n_workers
    color: Hashes = np.zeros(n_workers, dtype=np.uint64)
    for _ in range(ROUNDS):

        def work(block: Block, sums: Floats, color: Hashes = color) -> None:
            rows, n_classes = CountedLabels.of(block, worker), block.n_classes
            possible = rows.task * n_classes + rows.label
            choices, choice = number_choices(possible, block.n_tasks * n_classes)
            by_choice = scramble(add_up(choice, color[rows.worker], rows.weight, len(choices)))
            by_task = add_up(choices // n_classes, by_choice, None, block.n_tasks)
            seen = scramble(by_choice[choice] ^ scramble(by_task[rows.task]))
            sums += add_parts(rows.worker, seen, rows.weight, n_workers)

        _, (sums,) = engine.sum_blocks(work, [(len(SHIFTS), n_workers)])
        color = join(sums)
    return color


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """A number per worker and class, from the labels alone; from these, one per task."""

    workers: Hashes
    classes: Hashes
    worker: Ints  # of each pair of the engine

    def tasks(self, block: Block) -> Hashes:
        """Compute numbers of a block's tasks: who labeled them, as what, and who was right."""
        rows = CountedLabels.of(block, self.worker)
        given = scramble(self.classes)[rows.label]
        if block.gold is not None:
            given += (rows.label == block.gold[rows.task]).astype(np.uint64)
        who = self.workers[rows.worker]
        return add_up(rows.task, who ^ scramble(given), rows.weight, block.n_tasks)


def fingerprint(engine: Engine) -> Fingerprints:
    """Compute all numbers; see :func:`fingerprint_workers`. A class's depends on who gave it."""
    worker, n_classes, workers = engine.pairs.worker, engine.n_classes, color_workers(engine)

    def work(block: Block, sums: Floats) -> None:
        rows = CountedLabels.of(block, worker)
        sums += add_parts(rows.label, workers[rows.worker], rows.weight, n_classes)

    _, (sums,) = engine.sum_blocks(work, [(len(SHIFTS), n_classes)])
    return Fingerprints(workers, join(sums), worker)


@dataclass(frozen=True)
class CountedLabels:
    """The annotations that count, as columns; a soft one is a row for every class."""

    task: Ints
    worker: Ints
    label: Ints
    weight: Floats | None

    @classmethod
    def of(cls, block: Block, worker: Ints) -> Self:
        """Find them in a block; ``worker`` is that of each pair."""
        task, code, weight = as_columns(block.cells)
        if weight is not None:
            weight = np.round(weight * FINE) / FINE
            counted = weight > 0
            task, code, weight = task[counted], code[counted], weight[counted]
        return cls(task, worker[code], block.label[code], weight)


def number_choices(choice: Ints, n_possible: int) -> tuple[Ints, Ints]:
    """Return the different choices in order, and the position of each one among them."""
    if n_possible > 4 * len(choice):
        return np.unique(choice, return_inverse=True)
    there = np.bincount(choice, minlength=n_possible) > 0  # the same, without sorting
    return np.flatnonzero(there), (np.cumsum(there) - 1)[choice]


def rank_equals(values: Hashes) -> Ints:
    """Return how many equal numbers come before each one."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    first = np.searchsorted(ranked, ranked)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - first
    return rank


def add_up(group: Ints, value: Hashes, weight: Floats | None, n_groups: int) -> Hashes:
    """Sum scrambled values and scramble the sums, in a way independent of row order."""
    return join(add_parts(group, value, weight, n_groups))


def add_parts(group: Ints, value: Hashes, weight: Floats | None, n_groups: int) -> Floats:
    """Sum the parts of scrambled values, (part, group); sums over rows can be added."""
    value, sums = scramble(value), np.zeros((len(SHIFTS), n_groups))
    for place, shift in enumerate(SHIFTS):
        part = ((value >> np.uint64(shift)) % np.uint64(LOW)).astype(np.float64)
        part = part if weight is None else part * weight
        sums[place] = np.bincount(group, part, minlength=n_groups)
    return sums


def join(sums: Floats) -> Hashes:
    """Join the sums of all parts into one number for each group."""
    total = np.zeros(sums.shape[1], dtype=np.uint64)
    for own in sums:
        total = scramble(total ^ (own * FINE).astype(np.uint64))
    return total
