"""The engine for annotations on disk, with one block of tasks in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, cast

import numpy as np

from crowdwise.annotations import Annotations, Pairs, StoredAnnotations
from crowdwise.errors import AnnotationError, explain
from crowdwise.inference.engines.blocks import cut_tasks, in_order
from crowdwise.inference.engines.group import ALONE, Group, least_blocks, share_out
from crowdwise.inference.engines.kernels import NO_TASKS, Block
from crowdwise.inference.engines.sweeps import BlockSweeps, Edges, Fill
from crowdwise.inference.simplex import clamp, normalize
from crowdwise.typing import Array, Floats, Ints


@dataclass(frozen=True, eq=False)
class KnownTasks:
    """The tasks with a known truth, in rising order, and its class."""

    task: Ints
    label: Ints

    def without(self, tasks: Ints) -> KnownTasks:
        """Return the same without some of the tasks."""
        kept = ~np.isin(self.task, tasks)
        return KnownTasks(self.task[kept], self.label[kept])

    def within(self, edges: Edges) -> Ints:
        """Return the gold class of each task of a block, -1 for none."""
        gold = np.full(edges[1] - edges[0], -1, dtype=np.int32)
        some = slice(*np.searchsorted(self.task, edges))
        gold[self.task[some] - edges[0]] = self.label[some]
        return gold


@dataclass(frozen=True, eq=False)
class StreamedPosterior:
    """P(truth | labels) of annotations on disk, computed block by block on request."""

    stored: StoredAnnotations
    edges: list[Edges]
    work: Callable[[Edges, Floats], None]
    n_threads: int | None
    rows: Fill  # what ``work`` does to a block that is loaded

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.stored.n_classes

    def __len__(self) -> int:
        return sum(stop - start for start, stop in self.edges)

    def blocks(self) -> Iterator[Floats]:
        """Yield the rows of some tasks at a time, (task, class), in task order."""

        def one(edges: Edges) -> Floats:
            rows = np.empty((edges[1] - edges[0], self.stored.n_classes))
            self.work(edges, rows)
            return rows

        return in_order(one, self.edges, self.n_threads)

    def toarray(self) -> Floats:
        """Return all rows at once, if they fit into memory."""
        return np.concatenate(list(self.blocks()))


class StreamedSweeps(BlockSweeps):
    """The sweeps of an engine that has only some blocks of tasks at hand."""

    @property
    def weighted(self) -> bool:
        """Whether annotations may have different weights."""
        return True

    def labels_per_worker(self) -> Ints:
        def work(block: Block, total: Floats) -> None:
            indptr, code = block.cells.indptr, block.cells.code
            total += np.bincount(code[indptr[0] : indptr[-1]], minlength=len(total))

        given = self._sum(work, [(len(self.pairs),)])[1][0] if self.weighted else self.given
        return self.pairs.add_up(given).astype(np.int64)

    def shares(self, weights: Floats | None = None, *, soft: bool = True) -> Floats:
        every = np.ones(self.n_workers) if weights is None else weights
        alike = weights is None and self.worker_weights is None
        own = None if alike else self._weigh(every[self.pairs.worker])

        def work(block: Block, out: Floats) -> None:
            out[:] = block.shares(own)

        return self._fill(work)

    def signed_shares(self, weights: Floats) -> Floats:
        own = self._weigh(weights[self.pairs.worker])

        def work(block: Block, out: Floats) -> None:
            votes = block.votes(own)
            if (weights < 0).any():
                against = block.votes(np.minimum(own, 0.0)).sum(axis=1, keepdims=True)
                votes = np.maximum(votes - against, 0.0)
            light = votes.sum(axis=1) <= 0
            if light.any():
                votes[light] = block.votes(None)[light]
            out[:] = normalize(votes)

        return self._fill(work)

    def collect(self) -> tuple[Annotations, Ints | None]:
        raise AnnotationError(
            explain(
                "This method needs all annotations at once, and these come in blocks.",
                fix="choose a method that works in blocks, such as DawidSkene, IBCC or OneCoin",
            )
        )


@dataclass(frozen=True, eq=False)
class FileEngine(StreamedSweeps):
    """Annotations on disk; see :class:`~crowdwise.annotations.StoredAnnotations`.

    Ranks that all see the folder may share the blocks: each reads its own. If a table is so
    large that there would be fewer blocks than ranks, more blocks are cut.
    """

    stored: StoredAnnotations
    n_threads: int | None = None
    group: Group = ALONE
    known: KnownTasks | None = None

    @property
    def weighted(self) -> bool:
        return self.stored.weighted

    @property
    def workers(self) -> Array:
        return self.stored.workers

    @property
    def n_tasks(self) -> int:
        return self.stored.n_tasks

    @property
    def n_workers(self) -> int:
        return self.stored.n_workers

    @property
    def n_classes(self) -> int:
        return self.stored.n_classes

    @property
    def pairs(self) -> Pairs:
        return self.stored.pairs

    def _cut(self, table_size: int) -> list[Edges]:
        return list(self._share(table_size)[1])

    def _first(self, table_size: int) -> int:
        return self._share(table_size)[0]

    def _share(self, table_size: int) -> tuple[int, Sequence[Edges]]:
        stored, least = self.stored, least_blocks(self.group)
        sizes = stored.n_tasks, stored.n_annotations
        return share_out(cut_tasks(*sizes, stored.find, table_size, least), self.group)

    def _load(self, edges: Edges) -> Block:
        cells = self.stored.cells(*edges)
        return Block(cells, self.pairs.label, self._gold(edges), self.n_classes, edges[0])

    def reweighted(
        self, weights: Floats, hidden: Ints = NO_TASKS, n_threads: int | None = None
    ) -> Self:
        other = super().reweighted(weights, hidden, n_threads)
        if self.known is not None:
            vars(other)["known"] = self.known.without(hidden)
        return other

    def _gold(self, edges: Edges) -> Ints | None:
        return None if self.known is None else self.known.within(edges)

    def _fill(self, work: Fill) -> Floats:
        def settle(edges: Edges, out: Floats) -> None:
            work(self._load(edges), out)
            out[:] = clamp(out, self._gold(edges))

        found = StreamedPosterior(self.stored, self._cut(0), settle, self.n_threads, work)
        return cast("Floats", found)  # rows are computed later
