"""Confusion matrices as counts of the (worker, label) pairs that occur."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from crowdwise.annotations import Pairs
from crowdwise.errors import FormatError
from crowdwise.inference.engines.blocks import Parts, add_up, in_order
from crowdwise.typing import Array, Floats, Ints

CELLS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class PairBelief:
    """Label counts of each worker and truth, separate from pseudo-counts.

    Only (worker, label) pairs that occur have a row: for all others the counts are the
    pseudo-counts, and their sum has a closed form. So work and memory grow with the
    annotations, however many classes there are.
    """

    pairs: Pairs
    counts: Floats  # (pair, truth): expected label counts
    pseudo: Floats  # (truth, label): added to those of every worker
    earlier: Floats | None = None  # (worker, truth, label): of other tasks
    unknown: Floats | None = None  # (truth, label): all counts of workers after the last

    @classmethod
    def of_all(cls, counts: Floats, pseudo: Floats, earlier: Floats | None = None) -> Self:
        """Make from counts of all pairs, (worker, truth, label)."""
        pairs = Pairs.all_of(len(counts), counts.shape[-1])
        return cls(pairs, pairs.take(counts), pseudo, earlier)

    def refuse_misfits(self, n_workers: int, n_classes: int) -> None:
        """Refuse impossible sizes or numbers, such as those of a damaged file."""
        pairs, n_truths = self.pairs, len(self.pseudo)
        tables = {
            "counts": (self.counts, (len(pairs), n_truths)),
            "pseudo": (self.pseudo, (n_truths, n_classes)),
            "earlier": (self.earlier, (n_workers, n_truths, n_classes)),
            "unknown": (self.unknown, (n_truths, n_classes)),
        }
        if (pairs.n_workers, pairs.n_classes) != (n_workers, n_classes) or not pairs.is_sound:
            raise FormatError("Pairs of worker and label are not in rising order, or not there.")
        for name, (table, expected) in tables.items():
            if table is not None and np.shape(table) != expected:
                raise FormatError(f"{name} of pairs have shape {np.shape(table)}.")
            if table is not None and table.min(initial=0.0) < 0:
                raise FormatError(f"{name} of pairs are below 0.")

    @cached_property
    def total(self) -> Floats:
        """Total count of each worker and truth, (worker, truth)."""
        return self.pairs.add_up(self.counts) + self._prior_total

    @cached_property
    def _prior_total(self) -> Floats:
        total = self.pseudo.sum(axis=1)
        return total[None] if self.earlier is None else total + self.earlier.sum(axis=2)

    @cached_property
    def _heard(self) -> Array:
        """Whether workers have counts besides the pseudo-counts, now or earlier."""
        heard: Array = self.pairs.add_up(self.counts).sum(axis=1) > 0
        return heard if self.earlier is None else heard | (self.earlier.sum(axis=(1, 2)) > 0)

    def log_mean(self, n_threads: int | None = None) -> tuple[Floats, float]:
        """Return log P(label | truth) of each pair, and the total log-prior up to a constant."""
        log_total, table = np.log(self.total), np.empty_like(self.counts)

        def one(some: slice) -> Parts:
            prior = self._prior_rows(self.pairs.worker[some], self.pairs.label[some])
            log = np.log(self.counts[some] + prior)
            np.subtract(log, log_total[self.pairs.worker[some]], out=table[some])
            return (np.array([(prior * log).sum()]),)

        (inner,) = add_up(in_order(one, list(self._parts()), n_threads))
        belief = inner[0] + self._unseen() - (self._prior_total * log_total).sum()
        if n_idle := int((~self._heard).sum()):  # their prior alone is constant
            total = self.pseudo.sum(axis=1)
            belief -= n_idle * (xlogy(self.pseudo, self.pseudo).sum() - xlogy(total, total).sum())
        return table, float(belief)

    def expected_log(self, n_threads: int | None = None) -> tuple[Floats, float]:
        """Return E[log P(label | truth)] of each pair, and the divergence from the prior."""
        log_total, table = digamma(self.total), np.empty_like(self.counts)

        def one(some: slice) -> Parts:
            worker = self.pairs.worker[some]
            prior = self._prior_rows(worker, self.pairs.label[some])
            counts = self.counts[some] + prior
            np.subtract(digamma(counts), log_total[worker], out=table[some])
            gain = (self.counts[some] * table[some]).sum()
            return (np.array([gain + (gammaln(prior) - gammaln(counts)).sum()]),)

        (inner,) = add_up(in_order(one, list(self._parts()), n_threads))
        return table, float(inner[0] + (gammaln(self.total) - gammaln(self._prior_total)).sum())

    def all_counts(self) -> Floats:
        """Return counts plus pseudo-counts, (worker, truth, label)."""
        counts = self.pairs.spread(self.counts) + self.pseudo
        return counts if self.earlier is None else counts + self.earlier

    def diagonal(self) -> Floats:
        """Return P(label = truth | truth) of each worker, (worker, truth)."""
        n_classes = self.pairs.n_classes
        worker, label = (part.ravel() for part in np.indices((self.pairs.n_workers, n_classes)))
        right = self._rows(worker, label)[np.arange(len(label)), label]
        return right.reshape(-1, n_classes) / self.total

    def crowd(self) -> Floats:
        """Return the counts of all workers together, (truth, label)."""
        return self.pairs.add_up_labels(self.counts).T

    def mean_counts(self) -> Floats:
        """Return the mean counts of all workers who have some, (truth, label)."""
        heard = self._heard
        mean = self.crowd() / max(int(heard.sum()), 1) + self.pseudo
        return mean if self.earlier is None else mean + self.earlier[heard].mean(axis=0)

    def mean_shares(self) -> Floats:
        """Return the mean P(label | truth) of all workers who have counts, (truth, label)."""
        heard = self._heard
        if self.earlier is not None:
            counts = self.all_counts()
            return np.asarray((counts / self.total[:, :, None])[heard].mean(axis=0))
        odds, worker = 1.0 / self.total, self.pairs.worker
        added = self.pairs.add_up_labels(self.counts * odds[worker]).T
        ours = self.pseudo * odds[heard].sum(axis=0)[:, None]
        return (added + ours) / max(int(heard.sum()), 1)

    def with_unknown(self, counts: Floats) -> Self:
        """Return the same with these counts for the unknown worker."""
        return replace(self, unknown=counts)

    def of(self, pairs: Pairs, *, expected: bool) -> Floats:
        """Return the table of other pairs: log P(label | truth), or its expectation."""
        if pairs is self.pairs:
            return self.expected_log()[0] if expected else self.log_mean()[0]
        log = digamma if expected else np.log
        known = pairs.worker < self.pairs.n_workers
        worker = np.where(known, pairs.worker, 0)
        table: Floats = log(self._rows(worker, pairs.label)) - log(self.total)[worker]
        if self.unknown is not None:
            new = log(self.unknown) - log(self.unknown.sum(axis=1, keepdims=True))
            table[~known] = new.T[pairs.label[~known]]
        return table

    def _rows(self, worker: Ints, label: Ints) -> Floats:
        """Return all counts of some pairs, which may lack a row, (…, truth)."""
        rows, own = self._prior_rows(worker, label), self.pairs.code
        wanted = worker.astype(np.int64) * self.pairs.n_classes + label
        place = np.minimum(np.searchsorted(own, wanted), max(len(own) - 1, 0))
        there = np.flatnonzero(own[place] == wanted)
        rows[there] += self.counts[place[there]]
        return rows

    def _prior_rows(self, worker: Ints, label: Ints) -> Floats:
        rows = self.pseudo.T[label]
        return rows if self.earlier is None else rows + self.earlier[worker, :, label]

    def _unseen(self) -> float:
        """Sum p log p over the pseudo-counts of pairs without a row."""
        if self.earlier is not None:
            every = self.earlier + self.pseudo
            seen = every[self.pairs.worker, :, self.pairs.label]
            return float(xlogy(every, every).sum() - xlogy(seen, seen).sum())
        times = np.bincount(self.pairs.label, minlength=self.pairs.n_classes)
        return float(xlogy(self.pseudo, self.pseudo).sum(axis=0) @ (self.pairs.n_workers - times))

    def _parts(self) -> Iterator[slice]:
        size = max(CELLS_AT_ONCE // max(self.counts.shape[1], 1), 1)
        return (slice(i, i + size) for i in range(0, max(len(self.pairs), 1), size))
