"""Folds of tasks whose labels are never seen by what is learned about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import logsumexp

from crowdwise.aggregate.shared_errors import measure_dependence
from crowdwise.annotations import Annotations, find_labeled
from crowdwise.inference import (
    MemoryEngine,
    clamp,
    draw_weights,
    expected_log,
    fingerprint,
    gold_mask,
    log_of,
    normalize,
)
from crowdwise.inference.engines.memory import count
from crowdwise.learn.label_stacking import EVIDENCE, LEAST
from crowdwise.learn.penalty_path import Problem
from crowdwise.learn.worker_bags import find_balance, infer_in_bags, pool
from crowdwise.typing import Array, Floats, Ints

N_BAGS = 16


@dataclass(frozen=True)
class Folds:
    """Tasks distributed over folds.

    For each fold there is a world without its labels, in which truths are inferred and
    regressions learned: their predictions for the tasks of the fold have never been touched by
    its labels, however many rounds there were. Inside a world, one more fold at a time is left
    out, since a task's own label must not return to it through its features.
    """

    votes: Annotations
    gold: Ints | None
    fold: Ints  # (task,)
    n_folds: int
    bags: Floats  # (bag, worker)
    dependence: float = 0.0  # how much workers err together

    @classmethod
    def deal(
        cls, votes: Annotations, gold: Ints | None, key: Floats, n: int, rng: np.random.RandomState
    ) -> Self:
        """Distribute sorted tasks, those of a class together and then by key, n at a time.

        So each fold has its share of every class, and the order of the tasks has no effect.
        """
        likely = clamp(votes.shares(), gold).argmax(axis=1)
        row = np.lexsort((key, likely, find_counting(votes, gold)))
        fold: Ints = np.empty(len(row), dtype=np.int64)
        turns = [rng.permutation(n) for _ in range(-(-len(row) // n))]
        fold[row] = np.concatenate(turns)[: len(row)]
        return cls.of(votes, gold, fold, n, rng)

    @classmethod
    def of(
        cls, votes: Annotations, gold: Ints | None, fold: Ints, n: int, rng: np.random.RandomState
    ) -> Self:
        """Draw the bags for given folds, and measure how much workers err together."""
        engine = MemoryEngine(votes, gold)
        dependence = measure_dependence(engine, fingerprint(engine)).correlation
        return cls(votes, gold, fold, n, draw_weights(votes, N_BAGS, rng), dependence)

    @cached_property
    def labeled(self) -> Array:
        """Return which tasks have a label that counts, or a known truth."""
        return find_counting(self.votes, self.gold)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """List all (world, fold left out in it); in a fold's own world only one is left out."""
        return [(f, g) for f in range(self.n_folds) for g in range(self.n_folds)]

    def infer(self, prior: Floats | None, hidden: int | None = None) -> Floats:
        """Return P(truth | labels, prior) of each task, without the labels of the hidden fold."""
        votes, gold = self.without(hidden)
        prior = None if prior is None else self.rebalance(prior, hidden)
        return infer_in_bags(votes, gold, self.bags, prior, self.dependence)

    def rebalance(self, prior: Floats, hidden: int | None) -> Floats:
        """Make classes as frequent in a prior as labels say, if they say so clearly.

        The factors count the more, the likelier they make labels by workers who were counted on
        other tasks: as Stein's estimator, not at all if they gain less than by chance. The prior
        must tell tasks apart by as much, since labels alone fit nearly any frequencies.
        """
        engine = MemoryEngine(*self.without(hidden))
        seen = self.labeled & (self.fold != hidden)
        factor, before, after = find_balance(engine, prior, seen)
        changed = normalize(prior * factor)
        alike = np.broadcast_to(changed[seen].mean(axis=0), changed.shape)
        both = self.evidence(changed, after, hidden)[seen].sum()
        gain = both - self.evidence(prior, before, hidden)[seen].sum()
        told = both - self.evidence(alike, after, hidden)[seen].sum()
        chance = (len(factor) - 1) / 2 / EVIDENCE
        kept = 1.0 - chance / max(chance, LEAST, min(float(gain), float(told)))
        return normalize(prior * factor**kept)

    def without(self, hidden: int | None) -> tuple[Annotations, Ints | None]:
        """Return labels and known truths of the tasks that are not in the hidden fold."""
        if hidden is None:
            return self.votes, self.gold
        votes = self.votes.filter(self.fold[self.votes.task] != hidden)
        return votes, None if self.gold is None else np.where(self.fold == hidden, -1, self.gold)

    def one_world(self, posterior: Floats, *, left_out: bool = True) -> Problem:
        """Make a regression for each fold left out, or one on all tasks, from one posterior."""
        groups = [{fold} for fold in range(self.n_folds)] if left_out else [set[int]()]
        target = np.zeros(len(groups), dtype=np.int64)
        return Problem(posterior[None].astype(np.float32), target, self.weigh(groups))

    def all_worlds(self, posteriors: Floats) -> Problem:
        """Make a regression for each pair, on each world's posterior, (world, task, class)."""
        target = np.array([world for world, _ in self.pairs])
        weight = self.weigh([set(pair) for pair in self.pairs])
        return Problem(posteriors.astype(np.float32), target, weight)

    def weigh(self, left_out: list[set[int]]) -> Floats:
        """Weight every labeled task that is not left out equally, (task, group)."""
        weight = np.stack([~np.isin(self.fold, list(out)) for out in left_out], axis=1)
        weight = (weight & self.labeled[:, None]).astype(np.float32)
        return weight / np.maximum(weight.sum(axis=0), 1.0)

    def likelihood(self, posterior: Floats, hidden: int | None = None) -> Floats:
        """Return P(labels | truth) of each task up to a factor, (task, truth)."""
        log = self.log_likelihood(posterior, hidden)
        return np.exp(log - log.max(axis=1, keepdims=True))

    def evidence(self, prior: Floats, posterior: Floats, hidden: int | None) -> Floats:
        """Return log P(labels) of each task under a prior, (task,)."""
        log: Floats = logsumexp(log_of(prior) + self.log_likelihood(posterior, hidden), axis=1)
        return log

    def log_likelihood(self, posterior: Floats, hidden: int | None) -> Floats:
        """Return log P(labels | truth) of each task, (task, truth).

        Workers are counted on tasks of other folds, and never on those of the hidden one.
        """
        votes, n_classes = self.votes, self.votes.n_classes
        rows = [np.flatnonzero(self.fold == fold) for fold in range(self.n_folds)]
        parts = [votes[some] for some in rows]
        truth = clamp(posterior, self.gold)
        counts = [
            count(part.cells, truth[some], votes.n_workers, n_classes)
            for part, some in zip(parts, rows, strict=True)
        ]
        log = np.zeros((votes.n_tasks, n_classes))
        for fold, (part, some) in enumerate(zip(parts, rows, strict=True)):
            seen = sum(own for other, own in enumerate(counts) if other not in (fold, hidden))
            log[some] = sum_over_labels(part, expected_log(pool(np.asarray(seen))))
        mask = gold_mask(self.gold, n_classes)
        return log if mask is None else log + mask


def find_counting(votes: Annotations, gold: Ints | None) -> Array:
    """Return which tasks have a label that counts, or a known truth."""
    labeled = find_labeled(votes)
    return labeled if gold is None else labeled | (gold >= 0)


def sum_over_labels(votes: Annotations, tables: Floats) -> Floats:
    """Sum ``tables[worker, truth, label]`` over the labels of each task, (task, truth)."""
    by_cell = np.ascontiguousarray(tables.swapaxes(1, 2)).reshape(-1, votes.n_classes)
    summed: Floats = votes.cells.matrix(0, votes.n_tasks, len(by_cell)) @ by_cell
    return summed
