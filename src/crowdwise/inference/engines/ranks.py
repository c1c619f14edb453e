"""The engine of one of several processes that hold blocks of tasks in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

import numpy as np

from crowdwise.annotations import Cells, Pairs
from crowdwise.inference.engines.files import StreamedSweeps
from crowdwise.inference.engines.group import ALONE, Group, gather
from crowdwise.inference.engines.kernels import NO_CELLS, Block
from crowdwise.inference.engines.record import Recorder
from crowdwise.inference.engines.sweeps import Edges, Fill, Work
from crowdwise.typing import Array, Floats


@dataclass(frozen=True, eq=False)
class CrowdNames:
    """The workers, the classes and the pairs that occur, which every rank knows."""

    workers: Array
    classes: Array
    pairs: Pairs


@dataclass(frozen=True)
class Elsewhere:
    """A placeholder for a posterior whose rows are made where the annotations are."""

    rows: Fill


class CrowdSweeps(StreamedSweeps):
    """Sweeps of an engine with a given crowd; posteriors are made where the rows are."""

    crowd: CrowdNames

    @property
    def workers(self) -> Array:
        return self.crowd.workers

    @property
    def n_workers(self) -> int:
        return len(self.crowd.workers)

    @property
    def n_classes(self) -> int:
        return len(self.crowd.classes)

    @property
    def pairs(self) -> Pairs:
        return self.crowd.pairs

    def block(self, cells: Cells, first: int) -> Block:
        """Make a block of some tasks, starting with the number ``first``."""
        return Block(cells, self.pairs.label, None, self.n_classes, first)

    def _fill(self, work: Fill) -> Floats:
        return cast("Floats", Elsewhere(work))


@dataclass(frozen=True, eq=False)
class RankEngine(CrowdSweeps):
    """The blocks of one rank, starting at number ``first_block`` among all."""

    crowd: CrowdNames
    cells: Sequence[Cells]
    first_block: int = 0
    n_threads: int | None = 1
    group: Group = ALONE
    recorder: Recorder | None = None
    n_tasks: int = field(init=False)
    firsts: list[int] = field(init=False)  # number of the first task of each block, and the end

    def __post_init__(self) -> None:
        counts = gather(self.group, sum(cells.n_tasks for cells in self.cells))
        before = sum(counts[: self.group.rank])
        firsts = np.cumsum([before, *(cells.n_tasks for cells in self.cells)]).tolist()
        vars(self).update(n_tasks=sum(counts), firsts=firsts)

    def _cut(self, table_size: int) -> list[Edges]:
        return list(pairwise(self.firsts))  # fixed by the data

    def _first(self, table_size: int) -> int:
        return self.first_block

    def _load(self, edges: Edges) -> Block:
        if edges[0] == edges[1]:
            return self.block(NO_CELLS, edges[0])
        return self.block(self.cells[bisect_right(self.firsts, edges[0]) - 1], edges[0])

    def _sum(
        self, work: Work, shapes: Sequence[tuple[int, ...]], *, keeps: bool = False
    ) -> tuple[float, list[Floats]]:
        if self.recorder is None or keeps:  # what was kept beside is gone: it is done again
            return super()._sum(work, shapes)
        row = self.recorder.recall()
        if row is None:
            evidence, sums = super()._sum(work, shapes)
            row = np.concatenate([[evidence], *(array.ravel() for array in sums)])
        self.recorder.keep(row)
        return float(row[0]), cut_row(row[1:], shapes)


def cut_row(row: Floats, shapes: Sequence[tuple[int, ...]]) -> list[Floats]:
    """Split one row into arrays of these shapes, as views."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [part.reshape(s) for part, s in zip(np.split(row, ends[:-1]), shapes, strict=True)]
