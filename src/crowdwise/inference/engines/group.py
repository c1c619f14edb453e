"""Several processes that share the blocks of one set of annotations.

Every rank (a process, an executor, a machine) runs the same ``fit`` with an engine that has some
of the blocks; the only thing they do together is to add sums. What an engine of ranks must
provide is described in :class:`~crowdwise.inference.engines.sweeps.BlockSweeps`; a fit on each
rank is ``method.fit_engine(engine, classes)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol, TypeVar

import numpy as np

from crowdwise.inference.engines.blocks import Parts, Run
from crowdwise.typing import Array

Item = TypeVar("Item")
Result = TypeVar("Result")


class Group(Protocol):
    """The ranks that run one fit together."""

    @property
    def rank(self) -> int:
        """Number of this rank, starting at 0."""
        ...

    @property
    def size(self) -> int:
        """Number of ranks."""
        ...

    def add(self, run: Run) -> Parts:
        """Return the sum of the runs of all ranks, the same bits on each of them.

        The runs follow one another in the order of the ranks; a rank's run may be empty. Every
        rank calls this equally often, in the same order. If another rank is gone, this raises an
        error rather than waiting for it.
        """
        ...


@dataclass(frozen=True)
class Alone:
    """A single process with all blocks."""

    rank: int = 0
    size: int = 1

    def add(self, run: Run) -> Parts:
        return run.total()


ALONE = Alone()


class TreeGroup(ABC):
    """A group that only needs messages between ranks.

    Neighbors add their runs, then pairs of neighbors, and so on up to rank 0; the total goes
    back the same way. A rank sends and receives each sum at most ``1 + log2(size)`` times.
    """

    rank: int
    size: int

    @abstractmethod
    def send(self, to: int, arrays: Sequence[Array]) -> None:
        """Send arrays of any shapes and types to another rank, without waiting for it."""

    @abstractmethod
    def receive(self, source: int) -> list[Array]:
        """Wait for the next arrays from another rank; they may be modified."""

    def add(self, run: Run) -> Parts:
        step = 1
        while step < self.size and self.rank % (2 * step) == 0:
            if self.rank + step < self.size:
                run.extend(Run.unpack(self.receive(self.rank + step)))
            step *= 2
        if self.rank:
            self.send(self.rank - step, run.pack())
            total = tuple(self.receive(self.rank - step))
        else:
            total = run.total()
        while step > 1:
            step //= 2
            if self.rank + step < self.size:
                self.send(self.rank + step, total)
        return total


class LocalGroup(TreeGroup):
    """Ranks that are threads of one process, each with its own engine."""

    def __init__(self, rank: int, inboxes: dict[tuple[int, int], SimpleQueue[list[Array]]]) -> None:
        self.rank, self.size = rank, max(to for _, to in inboxes) + 1
        self._inboxes = inboxes

    def send(self, to: int, arrays: Sequence[Array]) -> None:
        self._inboxes[self.rank, to].put([array.copy() for array in arrays])

    def receive(self, source: int) -> list[Array]:
        arrays = self._inboxes[source, self.rank].get()
        if not arrays:
            raise ConnectionError(f"rank {source} has failed")
        return arrays

    def leave(self) -> None:
        """Tell the others that nothing more will come from this rank."""
        for to in range(self.size):
            self._inboxes[self.rank, to].put([])


def run_ranks(size: int, work: Callable[[LocalGroup], Result]) -> list[Result]:
    """Run ``work`` for each of some ranks, at the same time in one process."""
    inboxes: dict[tuple[int, int], SimpleQueue[list[Array]]]
    inboxes = {(a, b): SimpleQueue() for a in range(size) for b in range(size)}

    def one(rank: int) -> Result:
        group = LocalGroup(rank, inboxes)
        try:
            return work(group)
        finally:
            group.leave()

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))


def share_out(blocks: Sequence[Item], group: Group) -> tuple[int, Sequence[Item]]:
    """Return the number of this rank's first block, and its blocks.

    They lie between the same tasks in every cut into at least :func:`least_blocks`.
    """
    each = len(blocks) // least_blocks(group)
    first, stop = (
        least_blocks(group) * rank // group.size * each for rank in (group.rank, group.rank + 1)
    )
    return first, blocks[first:stop]


def least_blocks(group: Group) -> int:
    """Return the minimum number of blocks to share: a power of two, as in every cut."""
    whole = 1 << (group.size - 1).bit_length()
    return whole if whole == group.size else 4 * whole  # so that no rank has twice as many


def gather(group: Group, number: int) -> list[int]:
    """Return the numbers of all ranks."""
    own = np.zeros(group.size)
    own[group.rank] = number
    return [int(value) for value in group.add(Run([(0, group.rank, (own,))]))[0]]
