"""The engine for very many classes, without arrays of tasks x classes or tables per worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdwise import compiled
from crowdwise.annotations import TIE, Cells
from crowdwise.inference.compact import CompactPosterior
from crowdwise.inference.engines.blocks import Parts, add_up, in_order
from crowdwise.inference.engines.engine import CoinSums
from crowdwise.inference.engines.memory import MemoryEngine, cut_cells
from crowdwise.inference.engines.sweeps import Edges
from crowdwise.inference.rows import sum_by_group
from crowdwise.typing import Floats, Ints


@dataclass(frozen=True)
class Named:
    """Every (task, class) named by some annotation, in rising order."""

    task: Ints
    label: Ints
    row: Ints  # (annotation,): its pair
    indptr: Ints  # (task + 1,): start of each task's pairs


@dataclass(frozen=True, eq=False)
class CompactEngine(MemoryEngine):
    """Annotations of very many classes, with work and memory proportional to annotations.

    If errors are spread evenly, a label raises its own class and leaves all others unchanged. So
    only the classes named for a task differ, and the sums of the rest have a closed form.
    """

    @cached_property
    def named(self) -> Named:
        n_classes, votes = self.n_classes, self.annotations
        code, row = np.unique(votes.task.astype(np.int64) * n_classes + votes.label, False, True)
        task = code // n_classes
        indptr = np.searchsorted(task, np.arange(self.n_tasks + 1))
        return Named(task, code % n_classes, row, indptr)

    def shares(self, weights: Floats | None = None, *, soft: bool = True) -> CompactPosterior:  # type: ignore[override]  # rows are compact here
        own = self._own(None if weights is None else weights[self.annotations.worker])
        return self._normalized(self._votes(own), np.zeros(self.n_tasks))

    def signed_shares(self, weights: Floats) -> CompactPosterior:  # type: ignore[override]  # the same
        own = self._own(weights[self.annotations.worker])
        against = sum_by_group(self.annotations.task, np.minimum(own, 0.0), self.n_tasks)
        votes = np.maximum(self._votes(own) - against[self.named.task], 0.0)
        unnamed = self.n_classes - np.diff(self.named.indptr)
        light = self._by_task(votes) - against * unnamed <= 0
        votes = np.where(light[self.named.task], self._votes(self._own(None)), votes)
        return self._normalized(votes, np.where(light, 0.0, -against))

    def tally_coins(self) -> CoinSums:
        if (loop := compiled.find("few_pass")) is not None:
            return self._sweep_few(loop, np.ones(self.n_classes), None, None)
        start = self.shares().clamp(self.gold)
        return self._sums(0.0, start, start.at_pairs(self.named.task, self.named.label))

    def sweep_coins(
        self, log_prior: Floats, right: Floats, wrong: Floats, *, hard: bool = False
    ) -> CoinSums:
        if hard:
            share = self._share_lead(log_prior, right - wrong)
            truths = sum_by_group(self.named.label, share, self.n_classes)
            return CoinSums(0.0, truths, self._by_worker(share[self.named.row]), self._given)
        if (loop := compiled.find("few_pass")) is not None:
            return self._sweep_few(loop, np.exp(log_prior), right - wrong, wrong)
        found, evidence = self._expect(log_prior, right, wrong)
        found = found.clamp(self.gold)
        return self._sums(evidence, found, found.at_pairs(self.named.task, self.named.label))

    def coin_posterior(self, log_prior: Floats, right: Floats, wrong: Floats) -> CompactPosterior:
        return self._expect(log_prior, right, wrong)[0].clamp(self.gold)

    def _sweep_few(
        self,
        loop: Callable[..., float],
        prior: Floats,
        lift: Floats | None,
        wrong: Floats | None,
    ) -> CoinSums:
        """Compute the sums in compiled code; of votes if nothing is known about the workers."""
        votes, weight = self.annotations, self._weight
        columns = votes.indptr, votes.worker, weight, self._label, self._codes, prior, lift, wrong

        def one(edges: Edges) -> Parts:
            truths, right = np.zeros(self.n_classes), np.zeros(self.n_workers)
            return np.array([loop(*columns, truths, right, *edges)]), truths, right

        cells = Cells(votes.indptr, votes.worker, None)
        blocks = cut_cells(cells, max(self.n_workers, self.n_classes))
        evidence, truths, right = add_up(in_order(one, blocks, self.n_threads))
        return CoinSums(0.0 if lift is None else float(evidence[0]), truths, right, self._given)

    @cached_property
    def _label(self) -> Ints:
        return self.annotations.label.astype(np.int32, copy=False)

    @cached_property
    def _weight(self) -> Floats | None:
        weight = self.annotations.weight
        return None if weight is None else weight.astype(np.float64)

    def _expect(
        self, log_prior: Floats, right: Floats, wrong: Floats
    ) -> tuple[CompactPosterior, float]:
        """Return P(truth | labels), and the log-evidence of the tasks that count."""
        named, worker, prior = self.named, self.annotations.worker, np.exp(log_prior)
        lift = self._votes(self._own((right - wrong)[worker]))
        top = np.zeros(self.n_tasks)
        np.maximum.at(top, named.task, lift)
        share = prior[named.label] * np.exp(lift - top[named.task])
        left = np.maximum(1.0 - self._by_task(prior[named.label]), 0.0) * np.exp(-top)
        total = self._by_task(share) + left
        found = CompactPosterior(
            named.indptr, named.label, share / total[named.task], np.exp(-top) / total, prior
        )
        all_wrong = sum_by_group(self.annotations.task, self._own(wrong[worker]), self.n_tasks)
        evidence = all_wrong + top + np.log(total)
        if self.gold is not None:
            known = np.flatnonzero(self.gold >= 0)
            own = CompactPosterior(named.indptr, named.label, lift, 0.0 * top, prior)
            lifted = own.at(np.maximum(self.gold, 0))[known]
            evidence[known] = all_wrong[known] + lifted + log_prior[self.gold[known]]
        return found, float(evidence[self._counts].sum())

    def _share_lead(self, log_prior: Floats, lift: Floats) -> Floats:
        """Return each pair's share of the lead: one over the number of classes tied for it."""
        named, unnamed = self.named, self.n_classes - np.diff(self.named.indptr)
        joint = log_prior[named.label] + self._votes(self._own(lift[self.annotations.worker]))
        rest = log_prior.max()  # of classes without a label, which are equal in a vote
        top = np.where(unnamed > 0, rest, -np.inf)
        np.maximum.at(top, named.task, joint)
        leads = joint >= top[named.task] - TIE
        tied = self._by_task(leads.astype(np.float64)) + np.where(rest >= top - TIE, unnamed, 0)
        share = leads / tied[named.task]
        if self.gold is None:
            return share
        gold = self.gold[named.task]
        return np.where(gold >= 0, gold == named.label, share)

    def _sums(self, evidence: float, found: CompactPosterior, share: Floats) -> CoinSums:
        """Sum over the tasks that count, given the share of every pair."""
        rest = found.rest * self._counts
        truths = sum_by_group(found.label, found.value * self._counts[found.task], self.n_classes)
        named = rest[found.task] * found.prior[found.label]
        truths += found.prior * rest.sum() - sum_by_group(found.label, named, self.n_classes)
        return CoinSums(evidence, truths, self._by_worker(share[self.named.row]), self._given)

    @cached_property
    def _counts(self) -> Ints:
        """Return which tasks have a label, or gold."""
        labeled = self.annotations.redundancy > 0
        return labeled if self.gold is None else labeled | (self.gold >= 0)

    @cached_property
    def _given(self) -> Floats:
        return self._by_worker(np.ones(self.annotations.n_annotations))

    def _own(self, value: Floats | None) -> Floats:
        """Return a value for each annotation, multiplied by its weight."""
        weight = self.annotations.weight
        value = np.ones(self.annotations.n_annotations) if value is None else value
        return value if weight is None else value * weight.astype(np.float64)

    def _votes(self, own: Floats) -> Floats:
        return sum_by_group(self.named.row, own, len(self.named.task))

    def _by_task(self, value: Floats) -> Floats:
        return sum_by_group(self.named.task, value, self.n_tasks)

    def _by_worker(self, value: Floats) -> Floats:
        return sum_by_group(self.annotations.worker, self._own(value), self.n_workers)

    def _normalized(self, votes: Floats, rest: Floats) -> CompactPosterior:
        """Normalize votes for the named classes and for each other one to distributions."""
        unnamed = self.n_classes - np.diff(self.named.indptr)
        total = self._by_task(votes) + rest * unnamed
        empty = total <= 0
        safe = np.where(empty, 1.0, total)
        value = np.where(
            empty[self.named.task], 1.0 / self.n_classes, votes / safe[self.named.task]
        )
        share = np.where(empty, 1.0 / self.n_classes, rest / safe)
        even = np.full(self.n_classes, 1.0 / self.n_classes)
        return CompactPosterior(
            self.named.indptr, self.named.label, value, share * self.n_classes, even
        )
