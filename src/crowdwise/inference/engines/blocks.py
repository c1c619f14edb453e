"""Blocks of tasks: how they are cut, processed in threads, and added up.

The cut depends only on the data and sums are added in a fixed order, so that results are the same
to the last bit on any number of threads, from memory, from files and from several processes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self, TypeVar

import numpy as np

from crowdwise.typing import Array, Floats, Ints

CELLS_PER_BLOCK = 1 << 17
CELLS_PER_SUM = 4  # minimum number of cells per number that a block sums
MOST_BLOCKS = 256  # unless they would be larger than …
MOST_CELLS = 1 << 24

Item = TypeVar("Item")
Result = TypeVar("Result")
Parts = tuple[Floats, ...]  # arrays that add up over blocks, each with its own shape


def cut_tasks(
    n_tasks: int, n_cells: int, find: Callable[[Array], Ints], table_size: int, at_least: int = 1
) -> list[tuple[int, int]]:
    """Cut the tasks into blocks with about as many cells; their number is a power of two.

    ``find`` returns the first task that begins at or after a cell. A block is worth
    its own sums of ``table_size`` numbers only if it has several times as many cells.
    """
    worth = n_cells // max(CELLS_PER_BLOCK, CELLS_PER_SUM * table_size)
    n_blocks = min(1 << (max(worth, 1).bit_length() - 1), MOST_BLOCKS)
    while n_blocks < max(at_least, n_cells / MOST_CELLS):
        n_blocks *= 2
    if n_blocks == 1:
        return [(0, n_tasks)]
    targets = np.linspace(0, n_cells, n_blocks + 1)[1:-1]
    edges = [0, *find(targets), n_tasks]
    return [(int(start), int(stop)) for start, stop in pairwise(edges)]


def in_order(
    work: Callable[[Item], Result], items: Sequence[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """Yield the ``work`` of each item in order, done in threads; few results wait at a time."""
    if len(items) == 1 or n_threads == 1:
        yield from map(work, items)
        return
    n_threads = count_threads(n_threads)  # this takes as long as a small sweep
    if n_threads == 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(min(n_threads, len(items)))
    try:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass
class Run:
    """The sum of consecutive blocks, ready to be joined to those before and after.

    Blocks are added in pairs, then pairs of pairs and so on, by their numbers among all blocks.
    So a run is a few sums, each of ``2 ** level`` blocks, the first of which has the number
    ``place * 2 ** level``; adding runs in the order of the blocks always gives the same bits.
    """

    nodes: list[tuple[int, int, Parts]] = field(default_factory=list)  # level, place, sum

    @classmethod
    def of(cls, parts: Iterable[Parts], first: int = 0) -> Self:
        """Sum blocks from number ``first`` on; the parts are overwritten."""
        run = cls()
        for number, part in enumerate(parts, first):
            run.append(0, number, part)
        return run

    def append(self, level: int, place: int, total: Parts) -> None:
        """Append the next sum."""
        while place % 2 and self.nodes and self.nodes[-1][0] == level:
            total, level, place = _add(self.nodes.pop()[2], total), level + 1, place // 2
        self.nodes.append((level, place, total))

    def extend(self, later: Run) -> None:
        """Append the next run, which is overwritten."""
        for node in later.nodes:
            self.append(*node)

    def total(self) -> Parts:
        """Return the sum of all, once all blocks are in; the run is overwritten."""
        total = self.nodes.pop()[2]
        while self.nodes:
            total = _add(self.nodes.pop()[2], total)
        return total

    def pack(self) -> list[Array]:
        """Convert the run to arrays, for sending."""
        places = np.array([node[:2] for node in self.nodes], dtype=np.int64).reshape(-1, 2)
        return [places, *(array for node in self.nodes for array in node[2])]

    @classmethod
    def unpack(cls, arrays: Sequence[Array]) -> Self:
        """Restore a packed run."""
        places, sums = arrays[0].tolist(), arrays[1:]
        each = len(sums) // max(len(places), 1)
        cut = [tuple(sums[each * i : each * (i + 1)]) for i in range(len(places))]
        return cls([(*place, parts) for place, parts in zip(places, cut, strict=True)])


def add_up(parts: Iterable[Parts]) -> Parts:
    """Sum in pairs, then pairs of pairs and so on; the parts are overwritten."""
    return Run.of(parts).total()


def _add(left: Parts, right: Parts) -> Parts:
    for mine, other in zip(left, right, strict=True):
        np.add(mine, other, out=mine)
    return left


def count_threads(n_jobs: int | None = None) -> int:
    """Return the number of threads: all available cores, or as in scikit-learn.

    -1 means all, -2 all but one, and so on. If ``OMP_NUM_THREADS`` is set, it is the maximum.
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # of the outer level
    if limit.isdecimal() and int(limit) > 0:
        cores = min(cores, int(limit))
    return cores if n_jobs is None else max(cores + 1 + n_jobs, 1)
