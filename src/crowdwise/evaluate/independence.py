"""Whether a worker's labels have anything to do with the truth."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaincc

from crowdwise.annotations import Annotations
from crowdwise.typing import Floats, Ints

CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Margin:
    """How often each worker has each value (a truth, or a label)."""

    times: Floats  # (worker, value)

    @classmethod
    def of(cls, worker: Ints, value: Ints, shape: tuple[int, int]) -> "Margin":
        cell = worker.astype(np.int64) * shape[1] + value
        return cls(
            np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        )

    @property
    def kinds(self) -> Floats:
        """How many values each worker has."""
        return (self.times > 0).sum(axis=1).astype(np.float64)

    def terms(self, n: Floats) -> tuple[Floats, Floats]:
        """The two parts of the variance that depend on this margin alone."""
        inverse = np.divide(1, self.times, out=np.zeros_like(self.times), where=self.times > 0)
        even = (self.kinds - 1) * (n - self.kinds) / (n - 1)
        return even, (n * inverse.sum(axis=1) - self.kinds**2) / (n - 2)


def independence(worker: Ints, truth: Ints, label: Ints, n: Ints) -> Floats:
    """Chance of Pearson's chi-square, or more, if labels did not depend on truths.

    Its mean and variance over all ways to shuffle a worker's labels are exact, and a gamma
    distribution with that mean and variance gives the chance: it holds for thin tables,
    where the usual one does not. NaN where all labels or all truths of a worker are alike.

    Parameters
    ----------
    worker, truth, label : ndarray of shape (n_annotations,)
        Running numbers.
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
    """Sum over the cells of each worker's table of count ** 2 / (row * column)."""
    n_workers, width = truths.times.shape
    row = worker.astype(np.int64) * width + truth
    ones = np.ones(len(row))
    table = csr_array((ones, (row, label)), shape=(n_workers * width, width))
    row = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    owner = row // width
    margins = truths.times.reshape(-1)[row] * labels.times[owner, table.indices]
    return np.bincount(owner, table.data**2 / margins, minlength=n_workers).astype(np.float64)


def signal(annotations: Annotations, posterior: Floats) -> Floats:
    """How far apart the rows of each worker's confusion matrix are, from 0 to 1.

    Equation 8 of Raykar and Yu for any number of classes, unweighted: the mean squared
    distance between rows, over that of a perfect worker. Each row has one pseudo-label
    spread like all labels of the worker, so that nothing is read into a row hardly seen.
    """
    n_classes, n_workers = annotations.n_classes, annotations.n_workers
    if n_classes < 2:
        return np.full(n_workers, np.nan)
    code = annotations.worker.astype(np.int64) * n_classes + annotations.label
    shape = (n_workers * n_classes, annotations.n_tasks)
    cells = csr_array((np.ones(len(code)), (code, annotations.task)), shape=shape)
    step = max(CELLS_AT_ONCE // n_classes**2, 1)
    found = [np.zeros(0)]
    for start in range(0, n_workers, step):
        block = cells[start * n_classes : (start + step) * n_classes] @ posterior
        found.append(_spread_of_rows(block.reshape(-1, n_classes, n_classes).swapaxes(1, 2)))
    return np.concatenate(found)


def _spread_of_rows(counts: Floats) -> Floats:
    """The score from expected counts, (worker, truth, label)."""
    n_classes = counts.shape[1]
    total = counts.sum(axis=(1, 2))
    habit = counts.sum(axis=1) / np.maximum(total, 1)[:, None]
    confusion = counts + habit[:, None, :]
    confusion /= np.maximum(confusion.sum(axis=2, keepdims=True), 1e-300)
    apart = n_classes * (confusion**2).sum(axis=(1, 2))  # sum over pairs of rows, opened up
    apart -= (confusion.sum(axis=1) ** 2).sum(axis=1)
    score = apart / (n_classes * (n_classes - 1))
    return np.where(total > 0, score, np.nan)
