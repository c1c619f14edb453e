"""A crowd whose labels keep arriving: the posterior of each task, and the sums over all.

Each label is appended to a column and linked to the previous label of the same task. A
*visit* infers some tasks again under the current sums and updates the sums by the differences, as
in the incremental EM of Neal and Hinton (1998). Tasks with new labels are visited at once, all
others in turn, until a whole round of visits changes nothing. EM has several local optima and
``fit`` stops slightly before one, so visits alone do not lead where a fit to all labels leads:
at least every thousand labels, a fit to a *snapshot* of them is taken over.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import Protocol

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.inference.engines.engine import Sums
from crowdwise.inference.engines.memory import MemoryEngine
from crowdwise.inference.growing_arrays import Growing, NameBook, number_repeats
from crowdwise.inference.ledger import Fitted, Ledger, Snapshot
from crowdwise.inference.rows import LabelRows
from crowdwise.typing import Array, Floats, Ints

BLOCK = 1 << 12  # approximate number of labels per visit
STILL = 1e-6  # smaller changes of all probabilities count as none
EVERY = 1_000  # labels after which a fit to all of them is due at the latest


class Judge(Protocol):
    """A method's inference for some tasks: their posterior, and what is counted for them."""

    def __call__(self, engine: MemoryEngine, sums: Sums, crowd: Floats) -> tuple[Floats, Floats]:
        """Infer from the sums of the engine's workers, and the counts of all workers together."""
        ...


class LiveCrowd:
    """Labels that arrive one by one or in batches, and the sums over them for a method."""

    def __init__(self, tasks: Array, workers: Array, classes: Array, memory: float = 0.0) -> None:
        self.tasks, self.workers, self.classes = map(NameBook, (tasks, workers, classes))
        self.memory, self.begun = memory, 0
        self.cursor, self.still = 0, 0  # position in the round, and tasks since the last change
        n_tasks, n_workers, k = len(tasks), len(workers), len(classes)
        self.task, self.worker, self.label = (Growing(np.zeros(0, np.int64)) for _ in range(3))
        self.weight, self.before = Growing(np.zeros(0)), Growing(np.zeros(0, np.int64))
        self.rank = Growing(np.zeros(0, np.int64))  # its number among its worker's labels
        self.last = Growing(np.full(n_tasks, -1, np.int64))
        self.size = Growing(np.zeros(n_tasks, np.int64))
        self.gold = Growing(np.full(n_tasks, -1, np.int64))
        self.posterior, self.counted = (Growing(np.zeros((n_tasks, k))) for _ in range(2))
        self.given = Growing(np.zeros(n_workers, np.int64))
        self.counts = Growing(np.zeros((n_workers, k, k)))
        self.truths = np.zeros(k)
        self.shown: Floats | None = None  # posterior shown by a model
        self.pending: Future[Fitted] | None = None  # a fit in the background

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "pending": None}  # left behind where it runs, and due again later

    @classmethod
    def reopen(cls, ledger: Ledger, tasks: Array, workers: Array, classes: Array) -> LiveCrowd:
        """Continue from a ledger."""
        ledger.refuse_misfits(len(tasks), len(workers), len(classes))
        live = cls(tasks, workers, classes, ledger.memory)
        live._link(ledger.task, ledger.worker, ledger.label, ledger.weight)
        live.gold.view[:], live.begun = ledger.gold, ledger.begun
        live.posterior.view[:] = ledger.posterior
        live.recount(ledger.counted)
        return live

    def close(self) -> Ledger:
        """Return everything that a file needs."""
        names = ("task", "worker", "label", "weight", "gold", "posterior", "counted")
        columns = {name: getattr(self, name).view.copy() for name in names}
        return Ledger(memory=float(self.memory), begun=self.begun, **columns)

    def show_posterior(self) -> Floats:
        """Return a read-only view of the posterior."""
        self.shown = self.posterior.view
        self.shown.flags.writeable = False
        return self.shown

    @property
    def n_labels(self) -> int:
        return self.task.n

    # -- adding labels -----------------------------------------------------------------

    def add(self, votes: Annotations, gold: Ints | None) -> Ints:
        """Add new labels, and truths as class numbers; returns the numbers of their tasks."""
        known = votes.redundancy > 0 if gold is None else (votes.redundancy > 0) | (gold >= 0)
        place = np.full(votes.n_tasks, -1, np.int64)
        place[known] = self.tasks.enroll(votes.tasks[known])
        who = np.unique(votes.worker)
        workers = np.full(votes.n_workers, -1, np.int64)
        workers[who] = self.workers.enroll(votes.workers[who])
        classes = self.classes.enroll(votes.classes)
        self._make_room()
        rows, order = LabelRows.of(votes), self._order(votes)
        task, worker, label = place[rows.task], workers[rows.worker], classes[rows.label]
        self._link(task[order], worker[order], label[order], rows.weight[order])
        if gold is not None:
            given = gold >= 0
            self.gold.view[place[given]] = gold[given]
        self.still = 0
        return np.unique(place[known])

    def _order(self, votes: Annotations) -> Ints:
        """Return the order in which the cells came: by time if known, else by task."""
        n_cells = len(votes.cells.code)
        if votes.time is None:
            return np.arange(n_cells)
        each = n_cells // max(votes.n_annotations, 1)
        first = np.argsort(votes.time, kind="stable") * each
        return (first[:, None] + np.arange(each)).ravel()

    def _make_room(self) -> None:
        """Add rows for new tasks and workers, and columns for new classes."""
        pad = len(self.classes) - len(self.truths)
        if pad:
            for table in (self.posterior, self.counted, self.counts):
                table.widen(pad)
            self.truths = np.pad(self.truths, (0, pad))
        for column, value in ((self.last, -1), (self.size, 0), (self.gold, -1)):
            column.extend(len(self.tasks), value)
        for column in (self.posterior, self.counted):
            column.extend(len(self.tasks))
        for column in (self.given, self.counts):
            column.extend(len(self.workers))

    def _link(self, task: Ints, worker: Ints, label: Ints, weight: Floats) -> None:
        """Append labels, each linked to the previous one of its task."""
        first = self.n_labels
        number = np.arange(first, first + len(task))
        before, turn = number_repeats(task)
        linked = np.where(before >= 0, before + first, self.last.view[task])
        _, nth = number_repeats(worker)
        rank = self.given.view[worker] + nth
        added = np.bincount(worker, minlength=len(self.workers))
        if self.memory:
            self.counts.view[:] *= self.fade(added)[:, None, None]
        self.given.view[:] += added
        self.last.view[task] = number  # the last of several remains
        np.maximum.at(self.size.view, task, self.size.view[task] + turn + 1)
        columns = (self.task, self.worker, self.label, self.weight, self.before, self.rank)
        for column, values in zip(
            columns, (task, worker, label, weight, linked, rank), strict=True
        ):
            column.append(values)
        self._add_counts(first)

    def _add_counts(self, first: int) -> None:
        """Count repeated labels under the current posteriors: visits add only differences."""
        new = slice(first, None)
        task, worker, label = self.task.view[new], self.worker.view[new], self.label.view[new]
        value = self.weight.view[new] * self.fade(self.given.view[worker] - 1 - self.rank.view[new])
        share = value[:, None] * self.counted.view[task]
        np.add.at(self.counts.view.swapaxes(1, 2), (worker, label), share)

    def fade(self, age: Ints) -> Floats:
        """Return the weight of a label after this many later ones by its worker."""
        return np.exp(-age / self.memory) if self.memory else np.ones(len(age))

    # -- inference ---------------------------------------------------------------------

    def gather(self, tasks: Ints) -> tuple[Annotations, Ints, Ints]:
        """Return the labels of these tasks, with the numbers of workers and of labels."""
        at, owner, found, owners = self.last.view[tasks], np.arange(len(tasks)), [], []
        while len(at):
            there = at >= 0
            at, owner = at[there], owner[there]
            found.append(at)
            owners.append(owner)
            at = self.before.view[at]
        cell, owner = np.concatenate(found), np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        cell = cell[order]
        rows, worker = np.unique(self.worker.view[cell], return_inverse=True)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(tasks)))])
        votes = Annotations(
            tasks=tasks,
            workers=self.workers.names.view[rows],
            classes=self.classes.names.view,
            indptr=indptr.astype(np.int64),
            worker=worker.astype(np.int32),
            label=self.label.view[cell].astype(np.int32),
            weight=self.weight.view[cell],
        )
        return votes, rows, cell

    def snapshot(self) -> Snapshot:
        """Return all labels so far; columns only grow beyond what the snapshot sees."""
        return Snapshot(
            tasks=self.tasks.names.view,
            workers=self.workers.names.view,
            classes=self.classes.names.view,
            task=self.task.view,
            worker=self.worker.view,
            label=self.label.view,
            weight=self.weight.view,
            gold=self._gold_of(np.arange(len(self.tasks))),
        )

    def _gold_of(self, tasks: Ints) -> Ints | None:
        gold = self.gold.view[tasks]
        return gold if (gold >= 0).any() else None

    def recount(self, counted: Floats) -> None:
        """Recompute the sums from what is counted for every task."""
        votes, rows, cell = self.gather(np.arange(len(self.tasks)))
        self.counted.view[:] = counted
        self.truths = counted.sum(axis=0)
        self.counts.view[:] = 0.0
        self.counts.view[rows] = self._count(votes, rows, cell, counted)

    def take(self, fitted: Fitted) -> Ints:
        """Take over the results of a fit; returns tasks with labels that it has not seen."""
        n_tasks, k = fitted.posterior.shape
        for column, found in ((self.posterior, fitted.posterior), (self.counted, fitted.counted)):
            column.view[:n_tasks] = 0.0
            column.view[:n_tasks, :k] = found
        if self.memory:
            self.recount(self.counted.view.copy())
        else:
            self.truths = self.counted.view.sum(axis=0)
            self.counts.view[:] = 0.0
            self.counts.view[: len(fitted.counts), :k, :k] = fitted.counts
            self._add_counts(fitted.n_labels)
        later = np.unique(self.task.view[fitted.n_labels :])
        self.begun = fitted.n_labels
        self.still = 0 if self.memory or len(later) else len(self.tasks)
        return later

    def is_due(self, growth: float) -> bool:
        """Return whether there are enough new labels that a fit to all may differ."""
        if self.memory and self.begun and int(self.given.view.max(initial=0)) > self.memory:
            return False  # old tasks were inferred with their workers' skill at the time
        more = self.n_labels // EVERY > self.begun // EVERY
        return more or self.n_labels >= growth * self.begun

    def visit(self, tasks: Ints, judge: Judge) -> None:
        """Infer some tasks again, and update the sums by the differences."""
        votes, rows, cell = self.gather(tasks)
        sums = Sums(0.0, self.truths, self.counts.view[rows])
        engine = MemoryEngine(votes, self._gold_of(tasks), 1)
        posterior, counted = judge(engine, sums, self.counts.view.sum(axis=0))
        change = counted - self.counted.view[tasks]
        moved = np.abs(posterior - self.posterior.view[tasks]).max(initial=0.0)
        self.posterior.view[tasks], self.counted.view[tasks] = posterior, counted
        self.truths = np.maximum(self.truths + change.sum(axis=0), 0.0)
        new = self.counts.view[rows] + self._count(votes, rows, cell, change)
        self.counts.view[rows] = np.maximum(new, 0.0)  # rounding may give negative values
        self.still = self.still + len(tasks) if moved < STILL else 0

    def _count(self, votes: Annotations, rows: Ints, cell: Ints, counted: Floats) -> Floats:
        if self.memory:
            age = self.given.view[rows][votes.worker] - 1 - self.rank.view[cell]
            votes = replace(votes, weight=self.weight.view[cell] * self.fade(age))
        return MemoryEngine(votes, None, 1).count(counted)

    def settle(self, judge: Judge, work: int) -> None:
        """Visit tasks in turn until a round changes nothing, or for ``work`` labels."""
        while work > 0 and self.still < len(self.tasks):
            tasks = self._next_block()
            looked = int(self.size.view[tasks].sum())
            work -= max(looked, len(tasks), 1)
            recent = tasks if not self.memory else tasks[self._is_recent(tasks)]
            if len(recent):
                self.visit(recent, judge)
            if len(recent) < len(tasks):
                self.still += len(tasks) - len(recent)

    def _next_block(self) -> Ints:
        ends = self.size.view[self.cursor : self.cursor + BLOCK].cumsum()
        stop = self.cursor + max(int(np.searchsorted(ends, BLOCK, side="right")), 1)
        tasks = np.arange(self.cursor, min(stop, len(self.tasks)))
        self.cursor = 0 if stop >= len(self.tasks) else stop
        return tasks

    def _is_recent(self, tasks: Ints) -> Array:
        """Return which tasks have a label that is not forgotten yet."""
        last = self.last.view[tasks]
        age = self.given.view[self.worker.view[last]] - self.rank.view[last]
        return (last >= 0) & (age <= 2 * self.memory)
