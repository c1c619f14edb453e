"""Skill: how closely a worker's labels follow the truth that the other workers imply."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaincc, ndtri

from crowdwise.annotations import Annotations
from crowdwise.evaluate.intervals import wilson
from crowdwise.evaluate.leave_one_out import LeaveOneOut
from crowdwise.inference import count_labels
from crowdwise.inference.simplex import normalize
from crowdwise.typing import Array, Floats, Ints


@dataclass(frozen=True)
class Skill:
    """The skill of each worker on tasks shared with others; all by worker."""

    value: Floats  # 0 for labels that ignore the task, 1 for the truth, NaN if all are the same
    error: Floats  # standard error of value
    n_shared: Ints  # tasks that others labeled too
    match: Floats  # expected number of correct labels
    by_chance: Floats  # share of correct labels to be expected at random
    same: Floats  # share of the most frequent label
    misses: Ints  # tasks given that label although most of the others disagree
    p_random: Floats  # of the test of independence

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        half = ndtri(0.5 + confidence / 2) * self.error
        return np.maximum(self.value - half, -1.0), np.minimum(self.value + half, 1.0)

    def is_below_chance(self, confidence: float) -> Array:
        """Return whether labels are correct less often than by chance, with confidence.

        Chance is halfway between labels drawn uniformly and labels drawn like the truths. It
        reveals a spammer when one class is rare and skill has little to go on.
        """
        below = wilson(self.match, self.n_shared, confidence)[1] < self.by_chance
        return below & (self.by_chance < 1.0)  # with one class, chance is always right


@dataclass
class SkillSums:
    """Sums over each worker's shared tasks; see :func:`measure_skill` for the symbols."""

    follows: Floats  # of q . y
    possible: Floats  # of q . q
    squares: Floats  # of (q . y) ** 2
    cross: Floats  # of (q . y) (q . q)
    possible_squares: Floats  # of (q . q) ** 2


def measure_skill(others: LeaveOneOut, shared: Array) -> Skill:
    """Compare each worker's labels with the truth that the others imply.

    With ``q`` the others' posterior of a task and ``y`` the label as a one-hot row, both
    centered over the worker's tasks, skill is ``sum(q . y) / sum(q . q)``: how much the labels
    follow the truth, relative to how much the truth itself would.
    """
    data = others.annotations
    n = np.bincount(data.worker[shared], minlength=data.n_workers)
    truth, match, plurality = _sum_truths(others, shared)
    truth /= np.maximum(n, 1)[:, None]
    habit = _label_shares(data.worker[shared], data.label[shared], n, data.n_classes)
    value, error = _skill_ratio(_sum_skill(others, shared, truth, habit), n)
    top = habit.argmax(axis=1)[data.worker]
    missed = shared & (data.label == top) & (plurality != top)
    return Skill(
        value=value,
        error=error,
        n_shared=n,
        match=match,
        by_chance=(np.einsum("wk,wk->w", truth, truth) + 1 / max(data.n_classes, 1)) / 2,
        same=habit.max(axis=1),
        misses=np.bincount(data.worker[missed], minlength=data.n_workers),
        p_random=independence_p_value(
            data.worker[shared], plurality[shared], data.label[shared], n
        ),
    )


def _sum_truths(others: LeaveOneOut, shared: Array) -> tuple[Floats, Floats, Ints]:
    """Sum truths and correct labels by worker; also return the others' plurality."""
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


def _sum_skill(others: LeaveOneOut, shared: Array, truth: Floats, habit: Floats) -> SkillSums:
    """Sum how labels follow truths, now that their means are known."""
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
    return SkillSums(*sums.T)


def _skill_ratio(sums: SkillSums, n: Ints) -> tuple[Floats, Floats]:
    """Return skill and its standard error, the larger of two.

    One is that of a ratio of sums, the other that of a coin tossed on each task that separates
    the truths. The coin is at least as uncertain as labels shuffled among the tasks, and keeps
    a worker with hardly any such tasks, or with one label only, from being judged.
    """
    nothing = np.full(len(n), np.nan)
    decided = sums.possible > 1e-9
    value = np.divide(sums.follows, sums.possible, out=nothing.copy(), where=decided)
    scatter = sums.squares - 2 * value * sums.cross + value**2 * sums.possible_squares
    wide = np.sqrt(np.maximum(scatter, 0) * n / np.maximum(n - 1, 1))
    error = np.divide(wide, sums.possible, out=nothing, where=decided)
    return value, np.maximum(error, np.sqrt(0.5 / np.maximum(sums.possible, 1e-9)))


def _label_shares(worker: Ints, label: Ints, n: Ints, n_classes: int) -> Floats:
    cell = worker.astype(np.int64) * n_classes + label
    counts = np.bincount(cell, minlength=len(n) * n_classes).reshape(len(n), n_classes)
    return counts / np.maximum(n, 1)[:, None]


def _membership(worker: Ints, n_workers: int) -> csr_array:
    """Return a sparse matrix, workers x rows, that sums rows by worker."""
    ones, place = np.ones(len(worker)), np.arange(len(worker))
    return csr_array((ones, (worker, place)), shape=(n_workers, len(worker)))


@dataclass(frozen=True)
class Margin:
    """How often each worker has each value (a truth or a label)."""

    times: Floats  # (worker, value)

    @classmethod
    def of(cls, worker: Ints, value: Ints, shape: tuple[int, int]) -> "Margin":
        cell = worker.astype(np.int64) * shape[1] + value
        return cls(
            np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        )

    @property
    def kinds(self) -> Floats:
        """Count the distinct values of each worker."""
        return (self.times > 0).sum(axis=1).astype(np.float64)

    def terms(self, n: Floats) -> tuple[Floats, Floats]:
        """Return the two parts of the variance that depend on this margin alone."""
        inverse = np.divide(1, self.times, out=np.zeros_like(self.times), where=self.times > 0)
        even = (self.kinds - 1) * (n - self.kinds) / (n - 1)
        return even, (n * inverse.sum(axis=1) - self.kinds**2) / (n - 2)


def independence_p_value(worker: Ints, truth: Ints, label: Ints, n: Ints) -> Floats:
    """Return the p-value of Pearson's chi-square test that labels do not depend on truths.

    The mean and variance over all permutations of a worker's labels are exact, and a gamma
    distribution with that mean and variance gives the p-value; this holds for sparse tables,
    where the usual one does not. NaN if all labels or all truths of a worker are the same.

    Parameters
    ----------
    worker, truth, label : ndarray of shape (n_annotations,)
        Class numbers and worker numbers.
    n : ndarray of shape (n_workers,)
        Annotations of each worker.

    References
    ----------
    Lewis, Saunders and Westcott (1984). The moments of the Pearson chi-squared statistic
    and the minimum expected value in two-way tables. Biometrika 71(3).
    doi:10.1093/biomet/71.3.515
    """
    n = n.astype(np.float64)
    shape = len(n), 1 + max(int(truth.max(initial=0)), int(label.max(initial=0)))
    truths, labels = Margin.of(worker, truth, shape), Margin.of(worker, label, shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = n * (_explained(worker, truth, label, truths, labels) - 1)
        mean = n / (n - 1) * (truths.kinds - 1) * (labels.kinds - 1)
        even_truths, thin_truths = truths.terms(n)
        even_labels, thin_labels = labels.terms(n)
        even = (even_truths - thin_truths) * (even_labels - thin_labels)
        variance = 2 * n / (n - 3) * even + n**2 / (n - 1) * thin_truths * thin_labels
        chance = gammaincc(mean**2 / variance, np.maximum(statistic, 0) * mean / variance)
    defined = (truths.kinds > 1) & (labels.kinds > 1) & (n > 4) & (variance > 0)
    return np.where(defined, chance, np.nan)


def _explained(worker: Ints, truth: Ints, label: Ints, truths: Margin, labels: Margin) -> Floats:
    """Sum count ** 2 / (row * column) over the cells of each worker's table."""
    n_workers, width = truths.times.shape
    row = worker.astype(np.int64) * width + truth
    ones = np.ones(len(row))
    table = csr_array((ones, (row, label)), shape=(n_workers * width, width))
    row = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    owner = row // width
    margins = truths.times.reshape(-1)[row] * labels.times[owner, table.indices]
    return np.bincount(owner, table.data**2 / margins, minlength=n_workers).astype(np.float64)


def measure_signal(annotations: Annotations, posterior: Floats) -> Floats:
    """Measure how far apart the rows of each worker's confusion matrix are, from 0 to 1.

    Equation 8 of Raykar and Yu for any number of classes, unweighted: the mean squared
    distance between rows, relative to that of a perfect worker. Each row has one pseudo-label
    spread like all labels of the worker, so a row that is rarely seen counts for little.
    """
    n_classes, n_workers = annotations.n_classes, annotations.n_workers
    if n_classes < 2:
        return np.full(n_workers, np.nan)
    counts = count_labels(annotations, posterior)  # (worker, truth, label)
    total = counts.sum(axis=(1, 2))
    habit = counts.sum(axis=1) / np.maximum(total, 1)[:, None]
    confusion = normalize(counts + habit[:, None, :])
    apart = n_classes * (confusion**2).sum(axis=(1, 2))  # sum over pairs of rows, expanded
    apart -= (confusion.sum(axis=1) ** 2).sum(axis=1)
    return np.where(total > 0, apart / (n_classes * (n_classes - 1)), np.nan)
