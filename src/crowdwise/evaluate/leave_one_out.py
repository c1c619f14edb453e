"""The truth of each task as implied by the other workers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from crowdwise import progress
from crowdwise.annotations import Annotations
from crowdwise.inference import gold_mask, normalize, pooled_confusion
from crowdwise.typing import Floats, Ints

ROWS_AT_ONCE = 1 << 19


@dataclass(frozen=True)
class LeftOutBlock:
    """A block of annotations with the truths that the tasks' other workers imply."""

    rows: slice  # of the annotations
    worker: Ints  # (row,)
    label: Ints  # (row,)
    truth: Floats  # (row, class): P(truth | the others' labels)
    plurality: Ints  # (row,): gold, or the class that most of the others gave


@dataclass(frozen=True)
class LeaveOneOut:
    """Visits each annotation with the evidence of all but that one.

    A worker's own label influences the truth that is inferred from it, so a spammer looks
    informed when tasks have few labels. Here the evidence of the worker's own label is removed.
    """

    annotations: Annotations
    table: Floats  # (worker * class + label, truth): log P(label | truth)
    log_prior: Floats  # (truth,)
    gold: Ints | None  # (task,): class number, -1 where unknown
    mask: Floats | None  # (task, truth): -inf where gold rules a truth out

    @classmethod
    def of(cls, annotations: Annotations, posterior: Floats, gold: Ints | None) -> Self:
        """Prepare from any method's posterior: one pooled step of Dawid and Skene's."""
        n_classes = annotations.n_classes
        confusion = pooled_confusion(annotations, posterior)
        table = np.log(confusion).swapaxes(1, 2).reshape(-1, n_classes)
        prior = normalize(posterior.sum(axis=0) + 1.0 / n_classes)
        return cls(
            annotations,
            np.ascontiguousarray(table),
            np.log(prior),
            gold,
            gold_mask(gold, n_classes),
        )

    def blocks(self) -> Iterator[LeftOutBlock]:
        """Yield all annotations, one block of whole tasks at a time."""
        data, n_classes = self.annotations, self.annotations.n_classes
        start, step = 0, max(ROWS_AT_ONCE * 4 // max(n_classes, 4), 1)
        with progress.bar("leaving labels out", data.n_tasks, "task") as bar:
            while start < data.n_tasks:
                end = np.searchsorted(data.indptr, data.indptr[start] + step, side="right")
                stop = min(max(int(end) - 1, start + 1), data.n_tasks)
                yield self._block(start, stop)
                bar.advance(stop - start)
                start = stop

    def _block(self, start: int, stop: int) -> LeftOutBlock:
        data = self.annotations
        rows = slice(int(data.indptr[start]), int(data.indptr[stop]))
        joint = data.cells.matrix(start, stop, len(self.table)) @ self.table + self.log_prior
        if self.mask is not None:
            joint += self.mask[start:stop]
        task = np.repeat(np.arange(stop - start), data.redundancy[start:stop])
        worker, label = data.worker[rows], data.label[rows].astype(np.int64)
        others = joint[task] - self.table[data.cells.code[rows]]
        others -= others.max(axis=1, keepdims=True)
        np.exp(others, out=others)
        others /= others.sum(axis=1, keepdims=True)
        return LeftOutBlock(rows, worker, label, others, self._plurality(start, stop, task, label))

    def _plurality(self, start: int, stop: int, task: Ints, label: Ints) -> Ints:
        """Return the label most others gave, which leaves no trace of the worker's own."""
        n_classes = self.annotations.n_classes
        votes = np.bincount(task * n_classes + label, minlength=(stop - start) * n_classes)
        others = votes.reshape(-1, n_classes)[task]
        others[np.arange(len(label)), label] -= 1
        best = others.argmax(axis=1)
        if self.gold is None:
            return best
        truth = self.gold[start:stop][task]
        return np.where(truth >= 0, truth, best)
