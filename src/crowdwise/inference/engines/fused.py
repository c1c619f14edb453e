"""The sweeps of :class:`SortedCells` as fused kernels, compiled by Triton for a GPU.

A task is a lane: it sums the rows of its labels and normalizes them without leaving the
registers. A tile of a pair's labels is a program. No two programs add to the same number, so
results are always the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import triton
import triton.language as tl
from torch import Tensor

from crowdwise.inference.engines.sorted_cells import Bounds, SortedCells

MOST_TRUTHS = 256  # that fit in registers; above, plain torch is used
LONG = 64  # labels of a task that a lane sums by itself; more go through tiles
CELLS = 2048  # lanes x truths of a program, including labels read ahead
AHEAD = 2  # labels of a task read at once if there are few truths


@triton.jit
def sweep_tasks(
    starts, code, value, table, log_prior, gold, far, joints, share, evidence, truths, n_tasks, tie,
    TRUTHS: tl.constexpr, WIDTH: tl.constexpr, EACH: tl.constexpr, HARD: tl.constexpr,
    VALUED: tl.constexpr, KNOWN: tl.constexpr, FAR: tl.constexpr, LANES: tl.constexpr,
    AHEAD: tl.constexpr,
):  # fmt: skip
    """Compute P(truth) of each task, and evidence and truths of each program's tasks."""
    task = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = task < n_tasks
    first = tl.load(starts + task, mask=there, other=0)
    size = tl.load(starts + task + 1, mask=there, other=0) - first
    k = tl.arange(0, WIDTH)
    real = (k < TRUTHS)[None, :]
    prior = tl.load(log_prior + k, mask=k < TRUTHS, other=float("-inf"))
    joint = tl.zeros((LANES, WIDTH), tl.float64) + prior[None, :]
    if FAR:
        place = tl.load(far + task, mask=there, other=-1)
        whole = (place >= 0)[:, None] & real
        joint += tl.load(
            joints + place[:, None].to(tl.int64) * TRUTHS + k[None, :], mask=whole, other=0.0
        )
        size = tl.where(place >= 0, 0, size)
    most = tl.max(size, axis=0)
    step = tl.arange(0, AHEAD)
    for done in range(0, most, AHEAD):
        at = done + step[None, :]
        on = at < size[:, None]
        cell = first[:, None] + at
        pair = tl.load(code + cell, mask=on, other=0)
        rows = tl.load(
            table + pair[:, :, None] * TRUTHS + k[None, None, :],
            mask=on[:, :, None] & real[None, :, :],
            other=0.0,
        )
        if VALUED:
            rows *= tl.load(value + cell, mask=on, other=0.0)[:, :, None]
        joint += tl.sum(rows, axis=1)
    if KNOWN:
        right = tl.load(gold + task, mask=there, other=-1)[:, None]
        joint = tl.where((right >= 0) & ((k // EACH)[None, :] != right), float("-inf"), joint)
    top = tl.max(joint, axis=1)
    joint -= top[:, None]
    if HARD:
        one = tl.where(joint >= -tie, 1.0, 0.0).to(tl.float64)
        total = tl.sum(one, axis=1)
        found = top
    else:
        one = tl.exp(joint)
        total = tl.sum(one, axis=1)
        found = top + tl.log(total)
    one = tl.where(there[:, None] & real, one / total[:, None], 0.0)
    tl.store(share + task[:, None] * TRUTHS + k[None, :], one, mask=there[:, None] & real)
    tl.store(evidence + tl.program_id(0), tl.sum(tl.where(there, found, 0.0), axis=0))
    sums = tl.sum(one, axis=0)
    tl.store(truths + tl.program_id(0) * TRUTHS + k, sums, mask=k < TRUTHS)


@triton.jit
def add_rows(
    starts, place, value, rows, out,
    WIDE: tl.constexpr, WIDTH: tl.constexpr, PLACED: tl.constexpr, VALUED: tl.constexpr,
    LANES: tl.constexpr,
):  # fmt: skip
    """Sum the rows at the places of each segment, with one program each."""
    segment = tl.program_id(0)
    low, high = tl.load(starts + segment), tl.load(starts + segment + 1)
    k = tl.arange(0, WIDTH)
    lane = tl.arange(0, LANES)
    total = tl.zeros((LANES, WIDTH), tl.float64)
    for first in range(low, high, LANES):
        at = first + lane
        on = at < high
        row = at
        if PLACED:
            row = tl.load(place + at, mask=on, other=0)
        own = tl.load(
            rows + row[:, None].to(tl.int64) * WIDE + k[None, :],
            mask=on[:, None] & (k < WIDE)[None, :],
            other=0.0,
        ).to(tl.float64)
        if VALUED:
            own *= tl.load(value + at, mask=on, other=0.0)[:, None]
        total += own
    tl.store(out + segment.to(tl.int64) * WIDE + k, tl.sum(total, axis=0), mask=k < WIDE)


@dataclass(frozen=True)
class Far:
    """Tasks with so many labels that one lane would be slow."""

    place: Tensor  # (task,): the number of each among them, or -1
    code: Tensor  # (annotation,): the pairs of their labels
    value: Tensor | None
    bounds: Bounds  # the labels of each


class FusedCells(SortedCells):
    """:class:`SortedCells` in fused kernels; see this module."""

    def sweep(
        self, log_prior: Tensor, table: Tensor, *, hard: bool, n_classes: int, tie: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        n_truths = len(log_prior)
        if n_truths > MOST_TRUTHS:
            return super().sweep(log_prior, table, hard=hard, n_classes=n_classes, tie=tie)
        width = triton.next_power_of_2(n_truths)
        ahead = AHEAD if width <= 16 else 1
        lanes = max(CELLS // (width * ahead), 16)
        n_programs = triton.cdiv(self.n_tasks, lanes)
        share = table.new_empty((self.n_tasks, n_truths), dtype=self.kind)
        evidence, truths = table.new_empty(n_programs), table.new_empty((n_programs, n_truths))
        far = self._far
        place = None if far is None else far.place
        joints = None if far is None else self._add(table, far.code, far.value, far.bounds)
        sweep_tasks[(n_programs,)](
            self.starts, self.code, self.value, table, log_prior, self.gold, place, joints,
            share, evidence, truths, self.n_tasks, tie,
            TRUTHS=n_truths, WIDTH=width, EACH=n_truths // n_classes, HARD=hard,
            VALUED=self.value is not None, KNOWN=self.gold is not None, FAR=place is not None,
            LANES=lanes, AHEAD=ahead,
        )  # fmt: skip
        return evidence.sum(), truths.sum(dim=0), share

    @cached_property
    def _far(self) -> Far | None:
        """Tasks with very many labels, if there are any."""
        sizes = self.starts.diff()
        many = torch.nonzero(sizes > LONG)[:, 0]
        if not len(many):
            return None
        place = torch.full_like(sizes, -1)
        place[many] = torch.arange(len(many), dtype=place.dtype, device=self.device)
        ends = torch.cat([sizes.new_zeros(1), sizes[many].cumsum(0)])
        number = torch.arange(len(many), device=self.device)
        task = torch.repeat_interleave(number, sizes[many].long())
        cell = torch.arange(len(task), device=self.device) - ends[task] + self.starts[many[task]]
        value = None if self.value is None else self.value[cell]
        return Far(place, self.code[cell], value, Bounds.of(ends))

    def _add(self, rows: Tensor, place: Tensor, value: Tensor | None, bounds: Bounds) -> Tensor:
        if rows.shape[1] > MOST_TRUTHS:
            return super()._add(rows, place, value, bounds)
        tiles = self._add_rows(rows, place, value, bounds.tiles)
        return self._add_rows(tiles, None, None, bounds.owners)

    def _add_rows(
        self, rows: Tensor, place: Tensor | None, value: Tensor | None, starts: Tensor
    ) -> Tensor:
        n, wide = len(starts) - 1, rows.shape[1]
        out = torch.zeros((n, wide), dtype=torch.float64, device=self.device)
        width = triton.next_power_of_2(wide)
        if n:
            add_rows[(n,)](
                starts, place, value, rows, out,
                WIDE=wide, WIDTH=width, PLACED=place is not None, VALUED=value is not None,
                LANES=max(CELLS // width, 16),
            )  # fmt: skip
        return out
