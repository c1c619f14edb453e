"""Computations on one block of tasks, in compiled code or in plain scipy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from crowdwise import compiled
from crowdwise.annotations import TIE, Cells
from crowdwise.errors import ParameterError, explain
from crowdwise.inference.simplex import clamp, gold_mask
from crowdwise.typing import Floats, Ints

NOTHING = np.zeros((0, 0))
NO_CELLS = Cells(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), None)
NO_TASKS = np.zeros(0, dtype=np.int64)
TASKS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive tasks: their cells and, if any are known, their gold classes."""

    cells: Cells
    label: Ints  # (code,): the label of each code
    gold: Ints | None
    n_classes: int
    first: int = 0  # number of the first task among all
    once: Cells | None = None  # a cell for each annotation, where ``cells`` has one for each class

    @property
    def n_tasks(self) -> int:
        return self.cells.n_tasks

    def take(self, rows: Ints) -> Block:
        """Return some of the tasks."""
        gold = None if self.gold is None else self.gold[rows]
        once = None if self.once is None else self.once.take(rows)
        return Block(self.cells.take(rows), self.label, gold, self.n_classes, -1, once)

    def chunks(self) -> Iterator[Block]:
        """Yield the tasks, some at a time, for work that needs memory for each of them."""
        indptr, code, value = self.cells.indptr, self.cells.code, self.cells.value
        for low in range(0, self.n_tasks, TASKS_AT_ONCE):
            high = min(low + TASKS_AT_ONCE, self.n_tasks)
            cells = Cells(indptr[low : high + 1], code, value)
            gold = None if self.gold is None else self.gold[low:high]
            yield replace(self, cells=cells, gold=gold, first=self.first + low, once=None)

    def refuse_misfits(self, log_prior: Floats, *tables: Floats) -> None:
        """Refuse tables of other sizes, which compiled loops would read past the end."""
        rest = () if tables[0].ndim == 1 else (len(log_prior),)
        shape = (len(self.label), *rest)
        found = [log_prior.shape, *(table.shape for table in tables)]
        fits = len(log_prior) >= self.n_classes and not len(log_prior) % max(self.n_classes, 1)
        if not fits or found[1:] != [shape] * len(tables):
            sizes = f"{len(self.label):,} pairs of worker and label and {self.n_classes} classes"
            raise ParameterError(
                explain(
                    f"Tables do not match {sizes}.",
                    found=f"shapes {', '.join(map(str, found))}",
                    expected="a log-prior of the classes, and a row for each pair",
                    fix="fit the model again, or correct the method that made them",
                )
            )

    def mask(self, n_truths: int) -> Floats | None:
        """Return the log of 0 for every truth that gold rules out."""
        mask = gold_mask(self.gold, self.n_classes)
        if mask is None or n_truths == self.n_classes:
            return mask
        return np.repeat(mask, n_truths // self.n_classes, axis=1)

    def shares(self, lift: Floats | None = None) -> Floats:
        """Return each task's share of labels, uniform without any; gold where known."""
        votes = self.votes(lift)
        total = votes.sum(axis=1, keepdims=True)
        even = np.full_like(votes, 1.0 / max(self.n_classes, 1))
        return clamp(np.divide(votes, total, out=even, where=total > 0), self.gold)

    def votes(self, lift: Floats | None) -> Floats:
        """Sum what each code adds to its own class, (task, class); 1 by default."""
        low, high = self.cells.indptr[0], self.cells.indptr[-1]
        code, value = self.cells.code[low:high], self.cells.value
        task = np.repeat(np.arange(self.n_tasks), np.diff(self.cells.indptr))
        weight = None if value is None else value[low:high]
        if lift is not None:
            weight = lift[code] if weight is None else lift[code] * weight
        place = task * self.n_classes + self.label[code]
        flat = np.bincount(place, weight, minlength=self.n_tasks * self.n_classes)
        return flat.reshape(self.n_tasks, self.n_classes).astype(np.float64, copy=False)


def sweep_block(
    block: Block,
    log_prior: Floats,
    table: Floats,
    offset: Floats | None,
    truths: Floats,
    counts: Floats,
    posterior: Floats = NOTHING,
    *,
    hard: bool = False,
) -> float:
    """Run one E-step: update ``truths`` and ``counts``, fill ``posterior``, return the evidence.

    ``table`` and ``counts`` have a row for each code, (code, truth). ``counts`` and
    ``posterior`` may be empty. ``offset`` is added to each task's log joint.
    """
    block.refuse_misfits(log_prior, table)
    cells = block.cells
    loop = compiled.find("em_pass")
    if loop is not None:
        columns = (cells.indptr, cells.code, cells.value, log_prior, table, offset)
        return float(loop(*columns, posterior, truths, counts, 0, cells.n_tasks, hard))
    matrix = cells.matrix(0, cells.n_tasks, len(table))
    joint = matrix @ table + log_prior  # (task, truth)
    if offset is not None:
        joint += offset
    share, evidence = _normalize_joint(joint, hard=hard)
    truths += share.sum(axis=0)
    if len(posterior):
        posterior[:] = share
    if len(counts):
        counts += matrix.T @ share
    return evidence


def count_block(block: Block, posterior: Floats, counts: Floats) -> None:
    """Add the expected label counts under a posterior, (code, truth)."""
    cells, n_truths = block.cells, posterior.shape[1]
    loop = compiled.find("count")
    if loop is not None:
        columns = (cells.indptr, cells.code, cells.value, posterior, counts)
        loop(*columns, 0, cells.n_tasks, n_truths)
    else:
        counts += cells.matrix(0, cells.n_tasks, len(counts)).T @ posterior


def vote_block(block: Block, truths: Floats, counts: Floats, *, whole: bool = True) -> None:
    """Count with each task's share of labels as its posterior; uniform without labels.

    ``counts`` are by code and truth; unless ``whole``, by code for its own class only.
    """
    cells = block.cells
    loop = compiled.find("vote_pass")
    if loop is not None:
        columns = (cells.indptr, cells.code, cells.value, block.label, block.gold)
        loop(*columns, truths, counts, 0, cells.n_tasks, block.n_classes, whole)
        return
    shares = block.shares()
    truths += shares.sum(axis=0)
    if whole:
        count_block(block, shares, counts)
    else:
        add_right(block, shares, counts)


def coin_block(
    block: Block,
    log_prior: Floats,
    lift: Floats,
    wrong: Floats,
    truths: Floats,
    right: Floats,
    posterior: Floats = NOTHING,
    *,
    hard: bool = False,
) -> float:
    """Do :func:`sweep_block` with a label of code ``c`` raising its own class by ``lift[c]``.

    Every other class has likelihood ``wrong[c]``. ``right`` has a number for each code,
    the expected count of right labels.
    """
    block.refuse_misfits(log_prior, lift, wrong)
    cells = block.cells
    loop = compiled.find("coin_pass")
    if loop is not None:
        columns = (cells.indptr, cells.code, cells.value, block.label, block.gold, log_prior)
        sums = posterior, truths, right
        return float(loop(*columns, lift, wrong, *sums, 0, cells.n_tasks, hard))
    joint = block.votes(lift) + log_prior
    mask = block.mask(block.n_classes)
    share, evidence = _normalize_joint(joint if mask is None else joint + mask, hard=hard)
    truths += share.sum(axis=0)
    if len(posterior):
        posterior[:] = share
    if len(right):
        add_right(block, share, right)
    low, high = cells.indptr[0], cells.indptr[-1]
    all_wrong = wrong[cells.code[low:high]]
    return evidence + float(
        all_wrong.sum() if cells.value is None else all_wrong @ cells.value[low:high]
    )


def add_right(block: Block, share: Floats, right: Floats) -> None:
    """Add the probability of each label to its code's number."""
    cells = block.cells
    low, high = cells.indptr[0], cells.indptr[-1]
    code = cells.code[low:high]
    task = np.repeat(np.arange(block.n_tasks), np.diff(cells.indptr))
    value = share[task, block.label[code]]
    if cells.value is not None:
        value = value * cells.value[low:high]
    right += np.bincount(code, value, minlength=len(right))


def _normalize_joint(joint: Floats, *, hard: bool) -> tuple[Floats, float]:
    """Return P(truth | labels) from log joints, which are overwritten, and the evidence."""
    top = joint.max(axis=1, keepdims=True)
    np.subtract(joint, top, out=joint)
    share = (joint >= -TIE).astype(np.float64) if hard else np.exp(joint)
    total = share.sum(axis=1, keepdims=True)
    share /= total
    return share, float(top.sum() + (0.0 if hard else np.log(total).sum()))
