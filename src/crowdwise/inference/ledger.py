"""What a live crowd exchanges: a ledger with a file, a snapshot with a fit."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.annotations.grouping import order_by
from crowdwise.errors import FormatError
from crowdwise.inference.engines.memory import MemoryEngine
from crowdwise.typing import Array, Floats, Ints

ROUNDING = 1e-6  # allowed error of a probability


@dataclass(frozen=True, eq=False)
class Ledger:
    """Everything a live crowd has to store in a file: labels in order, and its state."""

    task: Ints  # of each label, in the order of arrival; like the next three
    worker: Ints
    label: Ints
    weight: Floats
    gold: Ints  # of each task, -1 for none
    posterior: Floats  # (task, class); like the next one
    counted: Floats
    memory: float  # 0 for unlimited
    begun: int  # number of labels at the last start

    def __post_init__(self) -> None:
        n_tasks, n_cells = len(self.gold), len(self.task)
        sizes = {len(column) for column in (self.worker, self.label, self.weight)}
        shape = self.posterior.shape
        if sizes != {n_cells} or len(shape) != 2 or shape[0] != n_tasks:
            raise FormatError("The columns of the ledger differ in length.")
        numbers = isinstance(self.begun, Integral) and isinstance(self.memory, Real)
        if self.counted.shape != shape or not n_cells or not numbers or self.memory < 0:
            raise FormatError("The ledger's numbers do not match one another.")
        for codes, n in ((self.task, n_tasks), (self.label, shape[1]), (self.worker, n_cells)):
            if codes.min() < 0 or codes.max() >= n:
                raise FormatError("The ledger names an unknown task, worker or label.")

    def refuse_misfits(self, n_tasks: int, n_workers: int, n_classes: int) -> None:
        """Refuse what does not match the names of a model, or cannot result from labels."""
        codes = {own.dtype.kind for own in (self.task, self.worker, self.label, self.gold)}
        if codes - set("iu") or self.worker.max() >= n_workers or self.gold.max() >= n_classes:
            raise FormatError("The ledger names an unknown worker or class.")
        if self.posterior.shape != (n_tasks, n_classes):
            raise FormatError("The ledger does not match the names of the model.")
        rows = np.stack([self.posterior, self.counted])
        if rows.min() < 0 or rows.max() > 1 + ROUNDING or self.weight.min() < 0:
            raise FormatError("The ledger has numbers that cannot be probabilities or weights.")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All labels at one moment, which a fit can use while more arrive."""

    tasks: Array
    workers: Array
    classes: Array
    task: Ints  # of each label, in the order of arrival; like the next three
    worker: Ints
    label: Ints
    weight: Floats
    gold: Ints | None

    def engine(self) -> MemoryEngine:
        indptr = np.zeros(len(self.tasks) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.task, minlength=len(self.tasks)), out=indptr[1:])
        order = order_by(self.task.astype(np.int32), indptr)
        votes = Annotations(
            tasks=self.tasks,
            workers=self.workers,
            classes=self.classes,
            indptr=indptr,
            worker=self.worker[order].astype(np.int32),
            label=self.label[order].astype(np.int32),
            weight=self.weight[order],
        )
        return MemoryEngine(votes, self.gold)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The results of fitting a snapshot: posteriors, and sums over labels."""

    n_labels: int
    posterior: Floats  # (task, class); like the next one
    counted: Floats
    counts: Floats  # (worker, truth, label)
