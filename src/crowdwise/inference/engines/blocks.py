"""Blocks of tasks: how they are cut, worked on in threads, and added up.

The cut depends on the data alone and sums are added in one order, so that results are the same
to the last bit on any number of threads, from memory and from files.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

from crowdwise.typing import Array, Floats, Ints

CELLS_PER_BLOCK = 1 << 17
MOST_BLOCKS = 256  # unless they would be larger than …
MOST_CELLS = 1 << 24

Item = TypeVar("Item")
Result = TypeVar("Result")
Parts = tuple[Floats, ...]  # arrays that add up over blocks, each of a shape of its own


def cut_tasks(
    n_tasks: int, n_cells: int, find: Callable[[Array], Ints], table_size: int
) -> list[tuple[int, int]]:
    """Cut the tasks into blocks of about as many cells.

    ``find`` says which task is the first that begins at a cell or after it. A block is worth
    its own sums of ``table_size`` numbers only if it has several times as many cells.
    """
    worth = n_cells // max(CELLS_PER_BLOCK, 4 * table_size)
    n_blocks = min(1 << (max(worth, 1).bit_length() - 1), MOST_BLOCKS)  # a power of two
    n_blocks = max(n_blocks, -(-n_cells // MOST_CELLS))
    if n_blocks == 1:
        return [(0, n_tasks)]
    targets = np.linspace(0, n_cells, n_blocks + 1)[1:-1]
    edges = [0, *find(targets), n_tasks]
    return [(int(start), int(stop)) for start, stop in pairwise(edges)]


def in_order(
    work: Callable[[Item], Result], items: Sequence[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """``work`` of each item, in their order, in threads; only a few results wait at a time."""
    if len(items) == 1 or n_threads == 1:
        yield from map(work, items)
        return
    n_threads = count_threads(n_threads)  # asking takes as long as a small sweep
    if n_threads == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(min(n_threads, len(items))) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def add_up(parts: Iterable[Parts]) -> Parts:
    """The sum of all, added in pairs, then pairs of pairs and so on; the parts are used up."""
    done: list[tuple[int, Parts]] = []  # what 2 ** level of them add up to
    for part in parts:
        level, total = 0, part
        while done and done[-1][0] == level:
            total, level = _add(done.pop()[1], total), level + 1
        done.append((level, total))
    total = done.pop()[1]
    while done:
        total = _add(done.pop()[1], total)
    return total


def _add(left: Parts, right: Parts) -> Parts:
    for mine, other in zip(left, right, strict=True):
        np.add(mine, other, out=mine)
    return left


def count_threads(n_jobs: int | None = None) -> int:
    """How many threads to use: all cores that this process may use, or as scikit-learn counts.

    -1 stands for all, -2 for all but one, and so on.
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return cores if n_jobs is None else max(cores + 1 + n_jobs, 1)
