"""Annotations as tensors, and the batches that training takes from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crowdwise.data import Annotations
from crowdwise.learn._features import Features
from crowdwise.typing import Array, Ints


@dataclass(frozen=True)
class Batch:
    """Some annotations, and the features of the tasks they are about."""

    x: Tensor  # (task, …): features of the batch's tasks
    task: Tensor  # (task,): their numbers
    at: Tensor  # (row,): which of the batch's tasks each annotation is about
    worker: Tensor  # (row,)
    label: Tensor  # (row,): its number; or (row, label): a soft label
    weight: Tensor  # (row,)


@dataclass(frozen=True)
class CrowdData:
    """All annotations on one device, ready to be cut into batches."""

    features: Features
    indptr: Tensor
    task: Tensor
    worker: Tensor
    label: Tensor
    weight: Tensor
    gold: Tensor  # (task, class): 0 where a truth is allowed, -inf where gold rules it out
    n_classes: int
    n_workers: int

    @property
    def n_tasks(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_annotations(self) -> int:
        return len(self.task)

    @property
    def device(self) -> torch.device:
        return self.task.device

    def whole(self) -> Batch:
        """Everything at once: each task's features once, whatever its redundancy."""
        tasks = torch.arange(self.n_tasks, device=self.device)
        columns = (self.task, self.worker, self.label, self.weight)
        return Batch(self.features.rows(tasks), tasks, *columns)

    def some(self, rows: Tensor) -> Batch:
        """The annotations at ``rows``."""
        task = self.task[rows]
        at = torch.arange(len(rows), device=self.device)
        columns = (self.worker[rows], self.label[rows], self.weight[rows])
        return Batch(self.features.rows(task), task, at, *columns)

    def of_tasks(self, tasks: Tensor) -> Batch:
        """All annotations of some tasks."""
        start, size = self.indptr[tasks], self.indptr[tasks + 1] - self.indptr[tasks]
        at = torch.repeat_interleave(torch.arange(len(tasks), device=self.device), size)
        before = torch.cumsum(size, 0) - size
        rows = start[at] + torch.arange(len(at), device=self.device) - before[at]
        columns = (self.worker[rows], self.label[rows], self.weight[rows])
        return Batch(self.features.rows(tasks), tasks, at, *columns)

    def batches(self, size: int | None, by: str, generator: torch.Generator) -> Iterator[Batch]:
        """One epoch in random order: ``size`` annotations (or tasks) at a time, or all."""
        n = self.n_tasks if by == "task" else self.n_annotations
        if size is None or size >= n:
            yield self.whole()
            return
        order = torch.randperm(n, generator=generator).to(self.device)
        for rows in torch.split(order, size):
            yield self.of_tasks(rows) if by == "task" else self.some(rows)

    def held_out(self, fraction: float, rng: np.random.RandomState) -> tuple[CrowdData, CrowdData]:
        """Annotations to learn from and annotations to check with."""
        n_out = max(1, round(fraction * self.n_annotations))
        out = np.zeros(self.n_annotations, dtype=bool)
        out[rng.permutation(self.n_annotations)[:n_out]] = True
        return self._filter(~out), self._filter(out)

    def _filter(self, mask: Array) -> CrowdData:
        keep = torch.as_tensor(np.flatnonzero(mask), device=self.device)
        size = torch.bincount(self.task[keep], minlength=self.n_tasks)
        indptr = torch.cat([torch.zeros(1, dtype=torch.long, device=self.device), size.cumsum(0)])
        return CrowdData(
            self.features,
            indptr,
            self.task[keep],
            self.worker[keep],
            self.label[keep],
            self.weight[keep],
            self.gold,
            self.n_classes,
            self.n_workers,
        )


def as_shares(label: Tensor, n_classes: int) -> Tensor:
    """Labels as distributions over the classes, (row, label)."""
    if label.ndim > 1:
        return label
    return torch.eye(n_classes, device=label.device)[label]


def as_data(
    features: Features, annotations: Annotations, gold: Ints | None, device: torch.device
) -> CrowdData:
    """Annotations and features as tensors on a device."""

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
        annotations.n_workers,
    )
