"""Distributions over very many classes, of which each task's labels name only a few."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from crowdwise.annotations import TIE
from crowdwise.typing import Array, Floats, Indices, Ints


@dataclass(frozen=True, eq=False)
class CompactPosterior:
    """P(truth | labels) of each task, stored only for the classes that its labels name.

    Every other class ``k`` of task ``i`` has the probability ``rest[i] * prior[k]``. Indexing
    returns complete distributions: ``posterior[3]``, ``posterior[:100]``; so does
    :meth:`toarray`, if that fits into memory.

    Attributes
    ----------
    indptr, label, value : ndarray
        The classes named for task ``i`` are ``label[indptr[i] : indptr[i + 1]]``, in rising
        order, with probabilities ``value``; as in a scipy CSR array.
    rest : ndarray of shape (n_tasks,)
        Probability of classes not named for the task, relative to their ``prior``.
    prior : ndarray of shape (n_classes,)
        P(truth) before any label.
    """

    indptr: Ints
    label: Ints
    value: Floats
    rest: Floats
    prior: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rest), len(self.prior)

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        parts = (self.indptr, self.label, self.value, self.rest, self.prior)
        return sum(part.nbytes for part in parts)

    def __len__(self) -> int:
        return len(self.rest)

    def __getitem__(self, rows: Indices) -> Floats:
        """Return complete distributions of some tasks; for one task, a single row."""
        chosen = np.arange(len(self))[rows]
        some = self.take(np.atleast_1d(chosen)).toarray()
        return some if np.ndim(chosen) else some[0]

    def take(self, rows: Ints) -> CompactPosterior:
        """Return the same for some tasks only."""
        part = self._given[rows]
        return CompactPosterior(part.indptr, part.indices, part.data, self.rest[rows], self.prior)

    def toarray(self) -> Floats:
        """Return all distributions, shape (n_tasks, n_classes)."""
        dense = self.rest[:, None] * self.prior
        dense[self.task, self.label] = self.value
        return dense

    def sum(self, axis: int = 1) -> Floats:
        """Return the sum of each distribution."""
        if axis != 1:
            raise ValueError("only axis=1 is supported")
        return self._add(self.value) + self.rest * (1.0 - self._add(self.prior[self.label]))

    def max(self, axis: int = 1) -> Floats:
        """Return the probability of each task's best class."""
        if axis != 1:
            raise ValueError("only axis=1 is supported")
        top = self.rest * self.prior[self._best_other]
        np.maximum.at(top, self.task, self.value)
        return top

    def argmax(self, axis: int = 1) -> Ints:
        """Return each task's best class, the first of tied ones."""
        top = self.max(axis)
        leads = self.value >= top[self.task] - TIE
        best = np.full(len(self), len(self.prior))
        np.minimum.at(best, self.task[leads], self.label[leads])
        other = self._best_other
        ahead = (self.rest * self.prior[other] >= top - TIE) & (self.rest > 0)
        return np.where(ahead, np.minimum(best, other), best)

    def count_tied(self) -> Ints:
        """Count the classes of each task that are tied for the best."""
        top = self.max()
        leads = self._add((self.value >= top[self.task] - TIE).astype(np.float64))
        others = self.rest * self.prior[self._best_other] >= top - TIE
        unnamed = len(self.prior) - np.diff(self.indptr)  # about equally good
        return (leads + np.where(others & (self.rest > 0), unnamed, 0)).astype(np.int64)

    def at(self, label: Ints) -> Floats:
        """Return the probability of one class for each task."""
        return self.at_pairs(np.arange(len(self)), label)

    def at_pairs(self, task: Ints, label: Ints) -> Floats:
        """Return the probability of the given classes of some tasks."""
        n_classes = len(self.prior)
        code, wanted = self.task * n_classes + self.label, task * n_classes + label
        place = np.minimum(np.searchsorted(code, wanted), max(len(code) - 1, 0))
        known = code[place] == wanted if len(code) else np.zeros(len(wanted), dtype=bool)
        return np.where(known, self.value[place], self.rest[task] * self.prior[label])

    def clamp(self, gold: Ints | None) -> CompactPosterior:
        """Put all mass on the gold class of each task, if it is known."""
        if gold is None:
            return self
        known = np.flatnonzero(gold >= 0)
        keep = gold[self.task] < 0
        task = np.concatenate([self.task[keep], known])
        label = np.concatenate([self.label[keep], gold[known]])
        value = np.concatenate([self.value[keep], np.ones(len(known))])
        cells = csr_array((value, (task, label)), shape=self.shape)
        rest = np.where(gold >= 0, 0.0, self.rest)
        return CompactPosterior(cells.indptr, cells.indices, cells.data, rest, self.prior)

    @cached_property
    def task(self) -> Ints:
        """Task of each entry of ``value``."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @cached_property
    def _given(self) -> csr_array:
        return csr_array((self.value, self.label, self.indptr), shape=self.shape)

    @cached_property
    def _best_other(self) -> Ints:
        """Return the class with the highest prior not named for the task, the first of equals."""
        order = np.argsort(-self.prior, kind="stable")
        code = self.task * len(self.prior) + self.label  # rising
        best, open_ = np.full(len(self), order[-1]), np.arange(len(self))
        for candidate in order[: int(np.diff(self.indptr).max(initial=0)) + 1]:
            wanted = open_ * len(self.prior) + candidate
            place = np.minimum(np.searchsorted(code, wanted), max(len(code) - 1, 0))
            free = code[place] != wanted if len(code) else np.ones(len(open_), dtype=bool)
            best[open_[free]] = candidate
            open_ = open_[~free]
            if not len(open_):
                break
        return best

    def _add(self, value: Array) -> Floats:
        return np.bincount(self.task, value, minlength=len(self)).astype(np.float64)
