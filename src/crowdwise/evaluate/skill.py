"""Skill: how much a worker's labels follow the truth as the other workers have it."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri

from crowdwise.evaluate.independence import independence
from crowdwise.evaluate.intervals import wilson
from crowdwise.evaluate.left_out import LeaveOneOut
from crowdwise.typing import Array, Floats, Ints


@dataclass(frozen=True)
class Skill:
    """What the tasks that a worker shares with others say of the worker; all by worker."""

    value: Floats  # 0 for labels that ignore the task, 1 for the truth, NaN if all are alike
    error: Floats  # standard error of value
    n_shared: Ints  # tasks that others labelled too
    match: Floats  # expected number of right labels
    by_luck: Floats  # share of right labels that random ones could have
    same: Floats  # share of the most frequent label
    misses: Ints  # tasks labelled so, though most of the others disagree
    p_random: Floats  # of the test of independence

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        half = ndtri(0.5 + confidence / 2) * self.error
        return np.maximum(self.value - half, -1.0), np.minimum(self.value + half, 1.0)

    def worse_than_luck(self, confidence: float) -> Array:
        """Whether labels are surely right less often than random ones could be.

        Luck is half way between that of labels drawn evenly and of labels drawn like the
        truths. It tells a spammer where one class is rare and skill has little to go by.
        """
        return wilson(self.match, self.n_shared, confidence)[1] < self.by_luck


@dataclass
class Sums:
    """Sums over each worker's shared tasks; see :func:`skill_of` for the letters."""

    follows: Floats  # of q . y
    possible: Floats  # of q . q
    squares: Floats  # of (q . y) ** 2
    cross: Floats  # of (q . y) (q . q)
    possible_squares: Floats  # of (q . q) ** 2


def skill_of(others: LeaveOneOut, shared: Array) -> Skill:
    """Compare each worker's labels with the truth that the others imply.

    With ``q`` the others' posterior of a task and ``y`` the label as a one-hot row, both
    less their means over the worker's tasks, skill is ``sum(q . y) / sum(q . q)``: how much
    the labels follow the truth, over how much the truth itself would.
    """
    data = others.annotations
    n = np.bincount(data.worker[shared], minlength=data.n_workers)
    truth, match, plurality = _first_look(others, shared)
    truth /= np.maximum(n, 1)[:, None]
    habit = _label_shares(data.worker[shared], data.label[shared], n, data.n_classes)
    value, error = _ratio(_second_look(others, shared, truth, habit), n)
    top = habit.argmax(axis=1)[data.worker]
    missed = shared & (data.label == top) & (plurality != top)
    return Skill(
        value=value,
        error=error,
        n_shared=n,
        match=match,
        by_luck=(np.einsum("wk,wk->w", truth, truth) + 1 / max(data.n_classes, 1)) / 2,
        same=habit.max(axis=1),
        misses=np.bincount(data.worker[missed], minlength=data.n_workers),
        p_random=independence(data.worker[shared], plurality[shared], data.label[shared], n),
    )


def _first_look(others: LeaveOneOut, shared: Array) -> tuple[Floats, Floats, Ints]:
    """Sums of truths and of right labels by worker; what the others say, by annotation."""
    data = others.annotations
    truth, match = np.zeros((data.n_workers, data.n_classes)), np.zeros(data.n_workers)
    plurality = np.empty(data.n_annotations, dtype=data.label.dtype)
    for block in others.blocks():
        kept = shared[block.rows]
        worker, label, posterior = block.worker[kept], block.label[kept], block.truth[kept]
        truth += _membership(worker, data.n_workers) @ posterior
        right = posterior[np.arange(len(label)), label]
        match += np.bincount(worker, right, minlength=data.n_workers)
        plurality[block.rows] = block.plurality
    return truth, match, plurality


def _second_look(others: LeaveOneOut, shared: Array, truth: Floats, habit: Floats) -> Sums:
    """Add up how labels follow truths, now that their means are known."""
    n_workers = len(truth)
    sums = np.zeros((n_workers, 5))
    for block in others.blocks():
        kept = shared[block.rows]
        worker, label = block.worker[kept], block.label[kept]
        q = block.truth[kept] - truth[worker]
        follows = q[np.arange(len(label)), label] - np.einsum("rk,rk->r", q, habit[worker])
        possible = np.einsum("rk,rk->r", q, q)
        squares = follows**2, follows * possible, possible**2
        columns = np.column_stack([follows, possible, *squares])
        sums += _membership(worker, n_workers) @ columns
    return Sums(*sums.T)


def _ratio(sums: Sums, n: Ints) -> tuple[Floats, Floats]:
    """Skill and its standard error, the larger of two.

    They are that of a ratio of sums, and that of a coin tossed on each task that tells
    truths apart. The coin is at least as unsure as labels shuffled among the tasks, and
    keeps a worker with hardly any such task, or with one label only, from being judged.
    """
    nothing = np.full(len(n), np.nan)
    told = sums.possible > 1e-9
    value = np.divide(sums.follows, sums.possible, out=nothing.copy(), where=told)
    scatter = sums.squares - 2 * value * sums.cross + value**2 * sums.possible_squares
    wide = np.sqrt(np.maximum(scatter, 0) * n / np.maximum(n - 1, 1))
    error = np.divide(wide, sums.possible, out=nothing, where=told)
    return value, np.maximum(error, np.sqrt(0.5 / np.maximum(sums.possible, 1e-9)))


def _label_shares(worker: Ints, label: Ints, n: Ints, n_classes: int) -> Floats:
    cell = worker.astype(np.int64) * n_classes + label
    counts = np.bincount(cell, minlength=len(n) * n_classes).reshape(len(n), n_classes)
    return counts / np.maximum(n, 1)[:, None]


def _membership(worker: Ints, n_workers: int) -> csr_array:
    """Sparse workers x rows, to add up rows by worker."""
    ones, place = np.ones(len(worker)), np.arange(len(worker))
    return csr_array((ones, (worker, place)), shape=(n_workers, len(worker)))
