"""Annotations as tensors, and batches of them for training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError
from crowdwise.nets.features import Features, rows_at_once
from crowdwise.nets.loop import ALONE, Alone
from crowdwise.nets.objective import Checkpoints
from crowdwise.nets.training import Training
from crowdwise.typing import Array, Ints

PART = 1 << 26  # numbers in the features of tasks that are processed together
LEAST_TASKS, LEAST, MOST_PARTS = 4096, 1 << 20, 8  # tasks or numbers in one of several parts
WORTH = 1 << 18  # numbers in the features of a batch from which it is worth sharing
COLUMNS = ("x", "task", "at", "worker", "label", "weight")


@dataclass(frozen=True)
class Every:
    """The batch that a part belongs to, when other parts are in other processes or come later.

    The part's loss is then divided by the annotations of the whole, so that the parts add up.
    """

    tasks: Tensor  # (task,): all of its tasks
    task: Tensor  # (row,): for all of its annotations
    weight: Tensor  # (row,)
    first: int  # number of the part's first annotation
    leads: bool  # whether it is the first part, with the terms that do not depend on labels
    ends: bool = True  # whether it is the last part in this process


@dataclass(frozen=True)
class Batch:
    """Some annotations, with the features of their tasks."""

    x: Tensor  # (task, …): features of the batch's tasks
    task: Tensor  # (task,): their numbers
    at: Tensor  # (row,): which of the batch's tasks each annotation belongs to
    worker: Tensor  # (row,)
    label: Tensor  # (row,): its number; or (row, label): a soft label
    weight: Tensor  # (row,)
    every: Every | None = None

    @property
    def leads(self) -> bool:
        """Whether terms that do not depend on labels are counted here."""
        return self.every is None or self.every.leads

    @property
    def ends(self) -> bool:
        """Whether this completes the gradient of a step."""
        return self.every is None or self.every.ends

    @property
    def shared(self) -> bool:
        """Whether other processes may have other parts of it."""
        return self.every is not None


@dataclass(frozen=True)
class CrowdData:
    """All annotations on one device, ready to be split into batches."""

    features: Features
    indptr: Tensor
    task: Tensor
    worker: Tensor
    label: Tensor
    weight: Tensor
    gold: Tensor  # (task, class): 0 where a truth is allowed, -inf where gold rules it out
    n_classes: int
    active: Tensor  # (worker,): whether a worker has labels, even if held out; on the CPU
    worker_features: Tensor | None = None  # (worker, feature)
    ranks: Alone = ALONE  # processes that share the work on every batch
    divides: bool = True  # whether the data may be processed in parts
    later: bool = False  # whether the objective reads features that may not be held at once
    checkpoint: Checkpoints | None = None  # where results so far are stored

    @property
    def n_tasks(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_workers(self) -> int:
        return len(self.active)

    @property
    def n_annotations(self) -> int:
        return len(self.task)

    @property
    def n_examples(self) -> int:
        """Number of units that may be held out: single annotations, except a task's last."""
        return self.n_annotations

    @property
    def n_in(self) -> int | None:
        """Number of features if they are rows of numbers."""
        shape = self.features.shape
        return shape[0] if len(shape) == 1 else None

    def step_work(self, training: Training) -> int:
        """Estimate how many numbers a training step touches."""
        rows = min(training.batch_size or self.n_annotations, self.n_annotations)
        width = int(np.prod(self.features.shape)) + self.n_classes**2
        return rows * width * training.n_restarts

    @property
    def labeled_tasks(self) -> Tensor:
        """Return which tasks have a label that counts."""
        weight = torch.zeros(self.n_tasks, device=self.device)
        return weight.index_add(0, self.task, self.weight) > 0

    @property
    def device(self) -> torch.device:
        return self.task.device

    def x(self, tasks: Tensor) -> Tensor:
        """Return the features of some tasks; no rows if the objective is to read them."""
        some = self.later and len(tasks) * int(np.prod(self.features.shape)) > PART
        rows = self.features.rows(tasks[:0] if some else tasks)
        return rows.to(self.weight) if rows.is_floating_point() else rows

    def double(self) -> CrowdData:
        """Return the same data in double precision."""
        soft = self.label.is_floating_point()
        label = self.label.double() if soft else self.label
        return replace(self, weight=self.weight.double(), gold=self.gold.double(), label=label)

    def whole(self) -> Batch:
        """Return everything at once: each task's features once, whatever its redundancy."""
        tasks = torch.arange(self.n_tasks, device=self.device)
        columns = (self.task, self.worker, self.label, self.weight)
        return Batch(self.x(tasks), tasks, *columns)

    def labeled(self) -> Batch:
        """Return every annotation, with features only for the tasks that have one."""
        tasks, at = self._labeled
        return Batch(self.x(tasks), tasks, at, self.worker, self.label, self.weight)

    def parts(self, *, labeled: bool = False) -> Iterator[Batch]:
        """Yield this process's share of all tasks, or of those with a label, in parts.

        Everything at once if it is small and there are no other processes.
        """
        tasks = self._labeled[0] if labeled else torch.arange(self.n_tasks, device=self.device)
        size = max(1, PART // max(int(np.prod(self.features.shape)), 1))
        if not self.divides or (self.ranks.size == 1 and len(tasks) <= size):
            yield self.labeled() if labeled else self.whole()
            return
        own = self.ranks.part(len(tasks))
        starts = range(own.start, max(own.stop, own.start + 1), size)
        yield from self._cut(tasks, [*starts, own.stop], leads=self.ranks.rank == 0)

    @property
    def fits(self) -> bool:
        """Whether the features of all tasks may be held at once."""
        return self.n_tasks * int(np.prod(self.features.shape)) <= PART

    def fixed_parts(self) -> Iterator[Batch]:
        """Yield this process's share of parts that depend on the data alone.

        So their sums, added up in pairs, are the same in one process and in two, four or eight.
        """
        tasks = torch.arange(self.n_tasks, device=self.device)
        n = count_parts(len(tasks), int(np.prod(self.features.shape)))
        if not self.divides or (self.ranks.size == 1 and n == 1):
            yield self.whole()
            return
        own = self.ranks.part(n)
        cuts = [len(tasks) * number // n for number in range(own.start, own.stop + 1)]
        cuts = cuts if len(cuts) > 1 else 2 * cuts  # nothing, if there are more processes
        yield from self._cut(tasks, cuts, leads=own.start == 0 and own.stop > 0)

    def _cut(self, tasks: Tensor, cuts: list[int], *, leads: bool) -> Iterator[Batch]:
        """Yield the tasks between cuts; the first part may lead."""
        for first, stop in pairwise(cuts):
            before = int(self.indptr[tasks[first]]) if first < len(tasks) else self.n_annotations
            every = Every(tasks, self.task, self.weight, before, leads, stop == cuts[-1])
            yield replace(self.of_tasks(tasks[first:stop]), every=every)
            leads = False

    def undivided(self, *, later: bool = False) -> CrowdData:
        """Return the same data undivided, for losses that do not add up over parts."""
        return replace(self, ranks=ALONE, divides=False, later=later)

    @cached_property
    def _labeled(self) -> tuple[Tensor, Tensor]:
        """Return tasks with a label, and which of them each annotation belongs to."""
        tasks, at = torch.unique(self.task, return_inverse=True)
        return tasks, at

    def some(self, rows: Tensor) -> Batch:
        """Return the annotations at ``rows``."""
        task = self.task[rows]
        at = torch.arange(len(rows), device=self.device)
        columns = (self.worker[rows], self.label[rows], self.weight[rows])
        return Batch(self.x(task), task, at, *columns)

    def of_tasks(self, tasks: Tensor) -> Batch:
        """Return all annotations of some tasks."""
        rows, at = self._rows_of(tasks)
        columns = (self.worker[rows], self.label[rows], self.weight[rows])
        return Batch(self.x(tasks), tasks, at, *columns)

    def _rows_of(self, tasks: Tensor) -> tuple[Tensor, Tensor]:
        """Return the annotations of some tasks, and which of these each belongs to."""
        start, size = self.indptr[tasks], self.indptr[tasks + 1] - self.indptr[tasks]
        at = torch.repeat_interleave(torch.arange(len(tasks), device=self.device), size)
        before = torch.cumsum(size, 0) - size
        return start[at] + torch.arange(len(at), device=self.device) - before[at], at

    def chunks(self, size: int | None = None, *, own: bool = False) -> Iterator[Batch]:
        """Yield everything in order, on the CPU, ``size`` tasks at a time or as memory allows.

        With ``own``, only the tasks of this process.
        """
        size = rows_at_once(int(np.prod(self.features.shape))) if size is None else size
        everything = torch.arange(self.n_tasks, device=self.device)
        mine = everything[self.ranks.part(self.n_tasks)] if own else everything
        for tasks in torch.split(mine, size):
            here = self.of_tasks(tasks)
            yield Batch(*(getattr(here, name).cpu() for name in COLUMNS))

    def epochs(self, training: Training, by: str) -> Callable[[torch.Generator], Iterator[Batch]]:
        """Return a function that yields one epoch of batches, according to the settings."""
        weight = training.class_weight
        odds = None if weight is None else class_odds(self, weight)
        by = "task" if training.batch_of == "tasks" else by
        return partial(self._epoch, training, by, odds)

    def _epoch(
        self, training: Training, by: str, odds: Tensor | None, generator: torch.Generator
    ) -> Iterator[Batch]:
        chance: Tensor | None = None  # the same for all parts of a batch
        for batch in self.batches(training.batch_size, by, generator, odds):
            if training.worker_dropout and chance is None:
                n = len(batch.worker if batch.every is None else batch.every.weight)
                chance = torch.rand(n, generator=generator)
            yield self._dropped(batch, training.worker_dropout, chance)
            chance = None if batch.ends else chance

    def batches(
        self, size: int | None, by: str, generator: torch.Generator, odds: Tensor | None = None
    ) -> Iterator[Batch]:
        """Yield one epoch in random order, ``size`` annotations (or tasks) at a time, or all.

        With ``odds`` of tasks, equally many are drawn by them with replacement.
        """
        n = self.n_tasks if by == "task" else self.n_annotations
        fits = self.fits or by == "task"  # some annotations are of fewer tasks
        if odds is None and (size is None or (size >= n and fits)):
            everything = torch.arange(self.n_tasks, device=self.device)
            yield from self._shares(everything, "task") if self.fits else self.parts()
            return
        if odds is None:
            order = torch.randperm(n, generator=generator)
        else:
            each = odds if by == "task" else odds[self.task]
            order = torch.multinomial(each.cpu(), n, replacement=True, generator=generator)
        for rows in torch.split(order.to(self.device), size or n):
            yield from self._shares(rows, by)

    def _shares(self, rows: Tensor, by: str) -> Iterator[Batch]:
        """Yield this process's share of a batch of annotations or tasks.

        Of a large batch, one process has both halves, so that their sum is that of two. A small
        one is not worth sharing: every process has all of it.
        """
        take = self.of_tasks if by == "task" else self.some
        if not self.divides or len(rows) * int(np.prod(self.features.shape)) < WORTH:
            yield take(rows)
            return
        at = self._rows_of(rows)[0] if by == "task" else rows
        tasks = rows if by == "task" else self.task[rows]
        halves = [Alone(0, 2), Alone(1, 2)]
        for one in halves if self.ranks.size == 1 else [self.ranks]:
            own = one.part(len(rows))
            first = len(self._rows_of(rows[: own.start])[0]) if by == "task" else own.start
            ends = one is self.ranks or one is halves[-1]
            columns = (tasks, self.task[at], self.weight[at])
            every = Every(*columns, first, one.rank == 0, ends)
            yield replace(take(rows[own]), every=every)

    def _dropped(self, batch: Batch, share: float, chances: Tensor | None) -> Batch:
        """Return the batch with some labels assigned to the unknown worker."""
        if chances is None:
            return batch
        first = 0 if batch.every is None else batch.every.first
        chance = chances[first : first + len(batch.worker)].to(batch.worker.device)
        worker = torch.where(chance < share, self.n_workers, batch.worker)
        return replace(batch, worker=worker)

    def held_out(
        self, fraction: float, rng: np.random.RandomState, by: str = "labels"
    ) -> tuple[CrowdData, CrowdData]:
        """Split off annotations, or whole tasks of them, to check with."""
        unit = np.arange(self.n_annotations)
        if by == "tasks":
            unit = np.unique(self.task.cpu().numpy(), return_inverse=True)[1]
        chosen = rng.permutation(unit.max() + 1)[: max(1, round(fraction * (unit.max() + 1)))]
        out = np.isin(unit, chosen)
        return self._filter(~out), self._filter(out)

    def _filter(self, mask: Array) -> CrowdData:
        keep = torch.as_tensor(np.flatnonzero(mask), device=self.device)
        size = torch.bincount(self.task[keep], minlength=self.n_tasks)
        indptr = torch.cat([torch.zeros(1, dtype=torch.long, device=self.device), size.cumsum(0)])
        return replace(
            self,
            indptr=indptr,
            task=self.task[keep],
            worker=self.worker[keep],
            label=self.label[keep],
            weight=self.weight[keep],
        )


def count_parts(n_tasks: int, width: int) -> int:
    """Return a power of two: parts that fit into memory, and have many tasks each if few do."""
    needed = max(-(-n_tasks * width // PART), 1)
    worth = max(min(max(n_tasks // LEAST_TASKS, n_tasks * width // LEAST), MOST_PARTS), 1)
    return int(max(1 << (needed - 1).bit_length(), 1 << (worth.bit_length() - 1)))


def class_odds(data: CrowdData, class_weight: str | ArrayLike) -> Tensor:
    """Return how often each task is drawn, by the classes of its labels."""
    label = as_shares(data.label, data.n_classes) * data.weight[:, None]
    votes = torch.zeros_like(data.gold).index_add(0, data.task, label)
    share = votes / votes.sum(dim=1, keepdim=True).clamp_min(1e-12)  # (task, class)
    share = torch.where(torch.isinf(data.gold).any(dim=1)[:, None], data.gold.exp(), share)
    if isinstance(class_weight, str):
        weight = 1.0 / share.sum(dim=0).clamp_min(1.0)
    else:
        numbers = () if isinstance(class_weight, Mapping) else class_weight  # an order without keys
        weight = torch.as_tensor(np.asarray(numbers, dtype=np.float32)).to(share)
    if weight.shape != (data.n_classes,) or not (weight > 0).all():
        raise ParameterError(
            f"class_weight={class_weight!r:.80} for {data.n_classes} classes.\n"
            "  expected: 'balanced', or one positive number per class"
            "\n  fix:      give class_weight='balanced'"
        )
    return share @ weight


def label_shares(data: CrowdData) -> Tensor:
    """Return each task's share of labels, uniform without any; gold where known."""
    label = as_shares(data.label, data.n_classes) * data.weight[:, None]
    votes = torch.zeros_like(data.gold).index_add(0, data.task, label)
    empty = votes.sum(dim=1, keepdim=True) <= 0
    votes = torch.where(empty, torch.ones_like(votes), votes)
    known = torch.isinf(data.gold).any(dim=1, keepdim=True)
    votes = torch.where(known, data.gold.exp(), votes)
    return votes / votes.sum(dim=1, keepdim=True)


def as_shares(label: Tensor, n_classes: int) -> Tensor:
    """Convert labels to distributions over the classes, (row, label)."""
    if label.ndim > 1:
        return label
    return torch.eye(n_classes, device=label.device)[label]


def as_data(
    features: Features,
    annotations: Annotations,
    gold: Ints | None,
    device: torch.device,
    worker_features: Tensor | None = None,
) -> CrowdData:
    """Convert annotations and features to tensors on a device."""

    def tensor(column: Array, dtype: torch.dtype) -> Tensor:
        return torch.tensor(np.asarray(column), dtype=dtype, device=device)

    n_classes = annotations.n_classes
    label = (
        tensor(annotations.label, torch.long)
        if annotations.soft is None
        else tensor(annotations.soft, torch.float32)
    )
    weight = np.ones(len(label)) if annotations.weight is None else annotations.weight
    allowed = torch.zeros(annotations.n_tasks, n_classes, device=device)
    if gold is not None:
        known = tensor(np.flatnonzero(gold >= 0), torch.long)
        allowed[known] = -torch.inf
        allowed[known, tensor(gold[gold >= 0], torch.long)] = 0.0
    return CrowdData(
        features.to(device),
        tensor(annotations.indptr, torch.long),
        tensor(annotations.task, torch.long),
        tensor(annotations.worker, torch.long),
        label,
        tensor(weight, torch.float32),
        allowed,
        n_classes,
        torch.from_numpy(np.bincount(annotations.worker, minlength=annotations.n_workers) > 0),
        worker_features,
    )
