"""Annotations on a device, sorted both ways, and sweeps over them in plain torch.

Sorted by task, each annotation has its row of a table; sorted by pair, it has its task. So both
steps of EM only gather and add, always in the same order: results are always the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

PER_TILE = 2048  # annotations of a pair that are summed before those of other tiles
TASKS_AT_ONCE = 1 << 21
BUILDING = 44  # bytes per annotation while sorting; 8 later

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Part: TypeAlias = tuple[Array, Array, Array | None]  # tasks' starts, codes and values


@dataclass(frozen=True)
class Bounds:
    """Where segments begin and end; long ones are cut into tiles."""

    tiles: Tensor  # (tile + 1,): the first position of each
    owners: Tensor  # (segment + 1,): the first tile of each segment

    @classmethod
    def of(cls, starts: Tensor) -> Self:
        """Make from the first position of each segment, and the end of the last."""
        starts = starts.long()
        n_tiles = (starts.diff() + PER_TILE - 1) // PER_TILE
        owners = torch.cat([starts.new_zeros(1), n_tiles.cumsum(0)])
        segment = torch.repeat_interleave(torch.arange(len(n_tiles), device=starts.device), n_tiles)
        within = torch.arange(len(segment), device=starts.device) - owners[segment]
        tiles = torch.cat([starts[segment] + PER_TILE * within, starts[-1:]])
        return cls(tiles.int(), owners.int())


@dataclass(frozen=True, eq=False)
class SortedCells:
    """The annotations by task and by (worker, label) pair; both orders are computed once.

    Numbers are added as float64; ``kind`` is the type in which P(truth) of each task is stored.
    """

    n_pairs: int
    starts: Tensor  # (task + 1,): the first annotation of each task
    code: Tensor  # (annotation,): its pair; task by task
    value: Tensor | None  # (annotation,): its weight
    task: Tensor  # (annotation,): its task; pair by pair
    value_of: Tensor | None  # (annotation,): its weight; pair by pair
    by_pair: Bounds
    gold: Tensor | None  # (task,): its known class, -1 for none
    kind: torch.dtype

    @classmethod
    def build(
        cls,
        parts: Iterable[Part],
        sizes: tuple[int, int, int],
        device: torch.device,
        kind: torch.dtype,
    ) -> Self:
        """Build from starts, codes and values of consecutive tasks, some at a time.

        ``sizes`` are the numbers of tasks, of annotations and of pairs.
        """
        n_tasks, n_cells, n_pairs = sizes
        starts = torch.zeros(n_tasks + 1, dtype=torch.int32, device=device)
        code = torch.empty(n_cells, dtype=torch.int32, device=device)
        value, task, cell = None, 0, 0
        for begins, codes, values in parts:
            low, high = int(begins[0]), int(begins[-1])
            stop, end = task + len(begins) - 1, cell + high - low
            starts[task + 1 : stop + 1] = send(begins[1:] - (low - cell), np.int32, device)
            code[cell:end] = send(codes[low:high], np.int32, device)
            if values is not None:
                if value is None:
                    value = torch.ones(n_cells, dtype=torch.float64, device=device)
                value[cell:end] = send(values[low:high], np.float64, device)
            task, cell = stop, end
        ordered, order = torch.sort(code, stable=True)
        pairs = torch.arange(n_pairs + 1, dtype=torch.int32, device=device)
        bounds = Bounds.of(torch.searchsorted(ordered, pairs))
        del ordered
        number = torch.arange(n_tasks, dtype=torch.int32, device=device)
        of_task = torch.repeat_interleave(number, starts.diff())[order]
        value_of = None if value is None else value[order]
        return cls(n_pairs, starts, code, value, of_task, value_of, bounds, None, kind)

    def with_gold(self, gold: Array | None) -> Self:
        """Return the same with known classes of some tasks; -1 for none."""
        if gold is None or not (gold >= 0).any():
            return self
        return replace(self, gold=send(gold, np.int32, self.device))

    @property
    def n_tasks(self) -> int:
        return len(self.starts) - 1

    @property
    def device(self) -> torch.device:
        return self.code.device

    @cached_property
    def given(self) -> Tensor:
        """Total weight of the labels of each pair."""
        if self.value_of is None:
            ends = self.by_pair.tiles[self.by_pair.owners.long()]
            return ends.diff().double()
        place = torch.arange(len(self.task), dtype=torch.int32, device=self.device)
        return self._add(self.value_of[:, None], place, None, self.by_pair)[:, 0]

    def sweep(
        self, log_prior: Tensor, table: Tensor, *, hard: bool, n_classes: int, tie: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run one E-step: evidence, expected number of tasks of each truth, and P(truth)."""
        share = table.new_empty((self.n_tasks, len(log_prior)), dtype=self.kind)
        evidence, truths = table.new_zeros(()), torch.zeros_like(log_prior)
        for some in self.chunks():
            joint = self.joint(table, some).add_(log_prior)
            self.rule_out(joint, some, n_classes)
            top = joint.amax(dim=1, keepdim=True)
            joint.sub_(top)
            one = (joint >= -tie).double() if hard else joint.exp_()
            total = one.sum(dim=1, keepdim=True)
            evidence = evidence + top.sum() + (0.0 if hard else total.log().sum())
            share[some] = one.div_(total)
            truths = truths + one.sum(dim=0)
        return evidence, truths, share

    def joint(self, table: Tensor, some: slice) -> Tensor:
        """Sum the rows of each task's labels, (task, truth)."""
        starts = self.starts[some.start : some.stop + 1]
        low, high = int(starts[0]), int(starts[-1])
        value = None if self.value is None else self.value[low:high]
        return add_bags(table, self.code[low:high], starts - low, value)

    def rule_out(self, joint: Tensor, some: slice, n_classes: int) -> None:
        """Rule out all but the known truth of tasks."""
        if self.gold is None:
            return
        gold = self.gold[some, None]
        of = torch.arange(joint.shape[1], device=self.device) // (joint.shape[1] // n_classes)
        joint.masked_fill_((gold >= 0) & (of != gold), -torch.inf)

    def count(self, share: Tensor) -> Tensor:
        """Sum P(truth) over the tasks of each pair's labels, (pair, truth)."""
        return self._add(share, self.task, self.value_of, self.by_pair)

    def chunks(self) -> Iterator[slice]:
        """Yield consecutive tasks, some at a time."""
        for first in range(0, self.n_tasks, TASKS_AT_ONCE):
            yield slice(first, min(first + TASKS_AT_ONCE, self.n_tasks))

    def _add(self, rows: Tensor, place: Tensor, value: Tensor | None, bounds: Bounds) -> Tensor:
        """Sum the rows at the positions of each segment, tile by tile first."""
        own = None if value is None else value.to(rows.dtype)
        tiles = add_bags(rows, place, bounds.tiles, own).double()
        each = torch.arange(len(tiles), dtype=torch.int32, device=self.device)
        return add_bags(tiles, each, bounds.owners, None)


def add_bags(rows: Tensor, place: Tensor, starts: Tensor, value: Tensor | None) -> Tensor:
    """Sum the rows at the positions from each start on, (segment, column)."""
    if not len(place):
        return rows.new_zeros((len(starts) - 1, rows.shape[1]))
    return embedding_bag(
        place, rows, starts, mode="sum", per_sample_weights=value, include_last_offset=True
    )


def send(array: Array, kind: type, device: torch.device) -> Tensor:
    """Copy an array to a tensor on the device, which may share its memory."""
    own: Array = np.ascontiguousarray(array, dtype=kind)
    return torch.from_numpy(own if own.flags.writeable else own.copy()).to(device)
