"""Engines that sweep on a device such as a GPU, where the annotations stay for the whole fit.

Tables go to the device and sums come back, as with any other engine; only the last posterior has
a row per task. The sweeps are those of :mod:`~crowdwise.inference.engines.fused` on a GPU with
Triton, else plain torch.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from crowdwise import memory
from crowdwise.annotations import TIE, Annotations, StoredAnnotations
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.inference.engines.engine import CoinSums, PairSums, Spread
from crowdwise.inference.engines.files import FileEngine, KnownTasks
from crowdwise.inference.engines.kernels import NO_TASKS, Block
from crowdwise.inference.engines.memory import MemoryEngine
from crowdwise.inference.engines.sorted_cells import (
    BUILDING,
    TASKS_AT_ONCE,
    Part,
    SortedCells,
    send,
)
from crowdwise.inference.engines.sweeps import BlockSweeps
from crowdwise.typing import Floats, Ints

log = logging.getLogger("crowdwise")
MOST = (1 << 31) - 1  # annotations, and numbers in a table


@dataclass(frozen=True)
class Device:
    """A device to sweep on, and the type of P(truth) stored between the two steps."""

    name: torch.device
    kind: torch.dtype
    cells: type[SortedCells] = SortedCells

    @classmethod
    def find(cls, name: str) -> Device:
        """Find the device that a parameter names."""
        try:
            found = torch.device(name)
        except RuntimeError:
            found = torch.device("meta")
        if found.type not in {"cpu", "cuda"}:
            raise ParameterError(
                explain(
                    f"device={name!r} is unknown.",
                    expected="cpu, cuda, or one of several GPUs, such as cuda:1",
                    fix="leave device out to use this machine's cores",
                )
            )
        if found.type == "cpu":
            return cls(found, torch.float64)
        n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (found.index or 0) >= n_devices:
            raise ParameterError(
                explain(
                    f"device={name!r}, but there is no such GPU.",
                    found=f"{n_devices} that torch {torch.__version__} can use",
                    fix="leave device out to use this machine's cores; of a saved model, "
                    "set_params(device=None)",
                )
            )
        return cls(found, torch.float32, find_cells())

    def refuse_too_large(self, sizes: tuple[int, int, int], n_truths: int) -> None:
        """Log how much memory tasks, annotations and pairs will take, or refuse them."""
        n_tasks, n_cells, n_pairs = sizes
        what = f"{n_cells:,} annotations of {n_tasks:,} tasks"
        if max(n_cells, n_pairs * n_truths, n_tasks) > MOST:
            raise AnnotationError(
                explain(
                    f"{what} with {n_pairs:,} pairs of worker and label are too many for a device.",
                    expected=f"at most {MOST:,} annotations, and numbers in a table",
                    fix="leave device out, or fit a part of the tasks",
                )
            )
        share = torch.finfo(self.kind).bits // 8 * n_tasks + 24 * min(n_tasks, TASKS_AT_ONCE)
        needed = BUILDING * n_cells + 8 * n_tasks + n_truths * (share + 48 * n_pairs)
        fix = "leave device out, or fit a part of the tasks"
        if self.name.type == "cpu":
            memory.refuse_too_large("device='cpu'", needed, what, fix, AnnotationError)
            return
        there = torch.cuda.mem_get_info(self.name)[0]
        there += torch.cuda.memory_reserved(self.name) - torch.cuda.memory_allocated(self.name)
        size, free = memory.show_bytes(needed), memory.show_bytes(there)
        log.info("%s: about %s of %s for %s", self.name, size, free, what)
        if needed > there:
            raise AnnotationError(
                explain(
                    f"{self.name} would need about {size} of memory: {what}.",
                    found=f"{free} available",
                    fix=f"free memory on the GPU, or {fix}",
                )
            )

    def bring(
        self, parts: Iterator[Part], sizes: tuple[int, int, int], n_truths: int
    ) -> SortedCells:
        """Copy the annotations to the device, if they fit."""
        self.refuse_too_large(sizes, n_truths)
        return self.cells.build(parts, sizes, self.name, self.kind)


def find_cells() -> type[SortedCells]:
    """Return the class for sweeps on a GPU: fused kernels if they can be compiled."""
    try:
        from crowdwise.inference.engines.fused import FusedCells
    except ImportError:
        return SortedCells
    return FusedCells


@dataclass(frozen=True, eq=False)
class DeviceSweeps(BlockSweeps):
    """Sweeps of an engine whose annotations are on a device."""

    place: SortedCells = field(kw_only=True)

    @abstractmethod
    def _gold_of_all(self) -> Ints | None:
        """Return the gold class of each task, -1 for none."""

    def reweighted(
        self, weights: Floats, hidden: Ints = NO_TASKS, n_threads: int | None = None
    ) -> Self:
        other = super().reweighted(weights, hidden, n_threads)
        if len(hidden):
            place = replace(self.place, gold=None).with_gold(other._gold_of_all())
            vars(other)["place"] = place
        return other

    def sweep_pairs(self, log_prior: Floats, table: Floats, *, hard: bool = False) -> PairSums:
        evidence, truths, share = self._sweep(log_prior, self._weigh(table), hard=hard)
        counts = self._weigh(_numbers(self.place.count(share)))
        return PairSums(float(evidence), _numbers(truths), counts)

    def sweep_coins(
        self, log_prior: Floats, right: Floats, wrong: Floats, *, hard: bool = False
    ) -> CoinSums:
        lift, others = self._coin_tables(right, wrong)
        evidence, truths, share = self._sweep(log_prior, self._lifts(lift), hard=hard)
        evidence += float(_numbers(self.place.given) @ others)
        return self._coins(float(evidence), truths, share, by_label=right.ndim == 2)

    def tally_pairs(self, spread: Spread | None = None) -> PairSums:
        truths, share = self._start(spread)
        return PairSums(0.0, _numbers(truths), self._weigh(_numbers(self.place.count(share))))

    def tally_coins(self) -> CoinSums:
        return self._coins(0.0, *self._start(None))

    def _sweep(
        self, log_prior: Floats, table: Floats, *, hard: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        with explaining_memory(self.place.device):
            sent = self._sent(log_prior), self._sent(table)
            return self.place.sweep(*sent, hard=hard, n_classes=self.n_classes, tie=TIE)

    def _start(self, spread: Spread | None) -> tuple[Tensor, Tensor]:
        """Return initial truths, and P(truth) of each task: its share of labels."""
        place, sums, parts = self.place, [], []
        ones = self._sent(self._lifts(np.ones(len(self.pairs))))  # all workers begin alike
        for some in place.chunks():
            shares = self._shares(ones, some)
            if place.gold is not None:
                gold = place.gold[some, None].long()
                known = torch.zeros_like(shares).scatter_(1, gold.clamp_min(0), 1.0)
                shares = torch.where(gold >= 0, known, shares)
            if spread is not None:
                shares = self._sent(spread(_numbers(shares), some.start))
            sums.append(shares.sum(dim=0))
            parts.append(shares.to(place.kind))
        return torch.stack(sums).sum(dim=0), torch.cat(parts)

    def _votes_of(self, weights: Floats | None) -> Tensor:
        """Return a table that adds up votes, with these weights of workers."""
        own = np.ones(len(self.pairs)) if weights is None else weights[self.pairs.worker]
        return self._sent(self._lifts(self._weigh(own)))

    def _shares(self, ones: Tensor, some: slice) -> Tensor:
        votes = self.place.joint(ones, some)
        total = votes.sum(dim=1, keepdim=True)
        return torch.where(total > 0, votes / total, 1.0 / max(self.n_classes, 1))

    def _coins(
        self, evidence: float, truths: Tensor, share: Tensor, *, by_label: bool = False
    ) -> CoinSums:
        right = self.place.count(share).gather(1, self._label)[:, 0]
        own = self._weigh(_numbers(right))
        return self._per_worker(evidence, _numbers(truths), own, by_label=by_label)

    @cached_property
    def _label(self) -> Tensor:
        return send(self.pairs.label, np.int64, self.place.device)[:, None]

    def _lifts(self, lift: Floats) -> Floats:
        """Return a table in which each pair's label raises only its own class."""
        table = np.zeros((len(self.pairs), self.n_classes))
        table[np.arange(len(table)), self.pairs.label] = lift
        return table

    def _sent(self, array: Floats) -> Tensor:
        return send(array, np.float64, self.place.device)

    def _add_given(self) -> Floats:
        return _numbers(self.place.given)


@dataclass(frozen=True, eq=False)
class DeviceEngine(DeviceSweeps, MemoryEngine):
    """Annotations in memory, swept on a device."""

    @classmethod
    def bring(
        cls, name: str, votes: Annotations, gold: Ints | None, n_threads: int | None
    ) -> DeviceEngine:
        """Copy the annotations, and their gold, to a device."""
        return cls(votes, gold, n_threads, place=bring(name, votes).with_gold(gold))

    def _gold_of_all(self) -> Ints | None:
        return self.gold

    def pair_posterior(self, log_prior: Floats, table: Floats) -> Floats:
        return self._infer(log_prior, self._weigh(table))

    def coin_posterior(self, log_prior: Floats, right: Floats, wrong: Floats) -> Floats:
        return self._infer(log_prior, self._lifts(self._coin_tables(right, wrong)[0]))

    def shares(self, weights: Floats | None = None, *, soft: bool = True) -> Floats:
        if not soft and self.annotations.soft is not None:
            return MemoryEngine.shares(self, weights, soft=False)
        ones = self._votes_of(weights)
        return self._fill(lambda block, out: _put(self._shares(ones, _tasks(block)), out))

    def signed_shares(self, weights: Floats) -> Floats:
        every, own = self._votes_of(None), self._votes_of(weights)
        below = self._votes_of(np.minimum(weights, 0.0)) if (weights < 0).any() else None

        def work(block: Block, out: Floats) -> None:
            some = _tasks(block)
            votes = self.place.joint(own, some)
            if below is not None:
                against = self.place.joint(below, some).sum(dim=1, keepdim=True)
                votes = (votes - against).clamp_min(0.0)
            light = votes.sum(dim=1, keepdim=True) <= 0
            votes = torch.where(light, self.place.joint(every, some), votes)
            _put(votes / votes.sum(dim=1, keepdim=True), out)

        return self._fill(work)

    def _infer(self, log_prior: Floats, table: Floats) -> Floats:
        prior, rows = self._sent(log_prior), self._sent(table)

        def work(block: Block, out: Floats) -> None:
            some = _tasks(block)
            joint = self.place.joint(rows, some).add_(prior)
            self.place.rule_out(joint, some, self.n_classes)
            share = torch.softmax(joint, dim=1).reshape(len(out), self.n_classes, -1)
            _put(share.sum(dim=2), out)

        return self._fill(work)


@dataclass(frozen=True, eq=False)
class DeviceFileEngine(DeviceSweeps, FileEngine):
    """Annotations on disk, copied to a device block by block."""

    @classmethod
    def bring(
        cls, name: str, stored: StoredAnnotations, known: KnownTasks | None, n_threads: int | None
    ) -> DeviceFileEngine:
        """Copy the annotations, and their gold, to a device."""
        device = Device.find(name)
        sizes = stored.n_tasks, stored.n_annotations, len(stored.pairs)

        def read() -> Iterator[Part]:
            for first in range(0, stored.n_tasks, TASKS_AT_ONCE):
                cells = stored.cells(first, min(first + TASKS_AT_ONCE, stored.n_tasks))
                yield cells.indptr, cells.code, cells.value

        place = device.bring(read(), sizes, stored.n_classes)
        found = cls(stored, n_threads, known=known, place=place)
        return replace(found, place=place.with_gold(found._gold_of_all()))

    def _gold_of_all(self) -> Ints | None:
        return self._gold((0, self.n_tasks))


def bring(name: str, votes: Annotations) -> SortedCells:
    """Copy the annotations to a device."""
    device, cells = Device.find(name), votes.pair_cells
    sizes = votes.n_tasks, len(cells.code), len(votes.pairs)
    return device.bring(iter([(cells.indptr, cells.code, cells.value)]), sizes, votes.n_classes)


def _tasks(block: Block) -> slice:
    return slice(block.first, block.first + block.n_tasks)


@contextmanager
def explaining_memory(device: torch.device) -> Iterator[None]:
    """Explain what to do if a sweep needs more memory than the device has left."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise AnnotationError(
            explain(
                f"There is not enough memory on {device} for a sweep.",
                first=str(error).partition(". ")[0],
                fix="free memory on the GPU, leave device out, or fit a part of the tasks",
            )
        ) from error


def _numbers(found: Tensor) -> Floats:
    return np.asarray(found.double().cpu().numpy())


def _put(found: Tensor, out: Floats) -> None:
    out[:] = found.cpu().numpy()
