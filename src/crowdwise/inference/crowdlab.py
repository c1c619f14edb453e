"""The weighted vote of workers and a classifier behind CROWDLAB and ActiveLab."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax, xlogy

from crowdwise.annotations import Annotations
from crowdwise.inference.rows import LabelRows, sum_by_group
from crowdwise.inference.simplex import log_of
from crowdwise.typing import Array, Floats, Ints

LEAST = 1e-6  # minimum weight, and minimum error that weights are compared with
FLOOR = 1e-30  # minimum probability before taking logarithms
TEMPERATURES = (0.1, 0.2, 0.5, 0.8, 1.0, 2.0, 3.0, 5.0, 8.0)


@dataclass(frozen=True)
class Consensus:
    """The labels that a weighted vote agrees on, with the weights."""

    consensus: Ints  # (task,): class number
    posterior: Floats  # (task, class)
    model: float  # weight of the classifier
    worker: Floats  # (worker,): weight of each

    @property
    def quality(self) -> Floats:
        """The probability that each task's label is right."""
        return self.posterior[np.arange(len(self.consensus)), self.consensus]


@dataclass(frozen=True)
class CrowdlabCounts:
    """The labels, as weighted counts."""

    rows: LabelRows
    votes: Floats  # (task, class)
    n_workers: int

    @classmethod
    def of(cls, votes: Annotations) -> CrowdlabCounts:
        return cls(LabelRows.of(votes), votes.votes(), votes.n_workers)

    @property
    def size(self) -> Floats:
        """Number of labels of each task."""
        return self.votes.sum(axis=1)

    def by_worker(self, value: Floats) -> Floats:
        """Return the weighted sum of each worker's rows."""
        return sum_by_group(self.rows.worker, self.rows.weight * value, self.n_workers)

    def by_class(self, value: Floats) -> Floats:
        """Return the weighted sum of each task's rows by label."""
        return self.rows.by_class(value, self.votes.shape)

    def mean_by_worker(self, value: Floats, weight: Floats) -> Floats:
        """Return the mean of each worker's rows; NaN for a worker without any."""
        total = self.by_worker(weight)
        empty = np.full(self.n_workers, np.nan)
        return np.divide(self.by_worker(value * weight), total, out=empty, where=total > 0)


def find_consensus(
    counts: CrowdlabCounts, proba: Floats, gold: Ints, tiebreak: Floats, *, best_quality: bool
) -> Consensus:
    """Find the posterior and the labels: the majority's, or the most probable ones."""
    consensus = np.where(gold >= 0, gold, majority_label(counts, proba, tiebreak))
    first = weigh(counts, proba, consensus)
    if not best_quality:
        return first
    best = first.posterior == first.posterior.max(axis=1, keepdims=True)
    better = np.where(best.sum(axis=1) == 1, best.argmax(axis=1), consensus)
    return weigh(counts, proba, np.where(gold >= 0, gold, better))


def weigh(counts: CrowdlabCounts, proba: Floats, consensus: Ints) -> Consensus:
    """Weight the classifier and the workers by their agreement, and average them."""
    size, n_classes, several = counts.size, proba.shape[1], counts.size > 1
    if not several.any():  # no agreement to measure: only the classifier counts
        return Consensus(consensus, proba, 1.0, np.ones(counts.n_workers))
    named = consensus[several]
    error = max(np.mean(named != np.bincount(named).argmax()), LEAST)
    missed = np.mean(proba[several].argmax(axis=1) != named)
    model = max(1.0 - missed / error, LEAST) * np.sqrt(size[size > 0].mean())
    worker = np.maximum(1.0 - (1.0 - agreement_with_others(counts)) / error, LEAST)
    with_it = counts.votes[several, named]
    right = np.mean(with_it / size[several])  # how often a label equals the task's
    wrong = (1.0 - right) / max(n_classes - 1, 1)
    votes = counts.by_class(worker[counts.rows.worker])  # (task, class)
    everyone = votes.sum(axis=1, keepdims=True)
    posterior = model * proba + right * votes + wrong * (everyone - votes)
    return Consensus(consensus, posterior / (model + everyone), float(model), worker)


def agreement_with_others(counts: CrowdlabCounts) -> Floats:
    """Return how often other labels of a worker's tasks agree; the average if there are none."""
    rows = counts.rows
    own = np.minimum(rows.weight, 1.0)  # a label is not compared with itself
    others = counts.size[rows.task] - own
    same = counts.votes[rows.task, rows.label] - own
    share = np.divide(same, others, out=np.zeros_like(others), where=others > 0)
    agreement = counts.mean_by_worker(share, others)
    return np.where(np.isnan(agreement), np.nanmean(agreement), agreement)


def majority_label(counts: CrowdlabCounts, proba: Floats | None, tiebreak: Floats) -> Ints:
    """Return the most frequent label of each task.

    Ties go to the class that the classifier prefers, then to the rarer one, then to that of
    the workers who agree more with other majorities, and then to the higher ``tiebreak``.
    """
    best = counts.votes == counts.votes.max(axis=1, keepdims=True)
    clear, first = best.sum(axis=1) == 1, best.argmax(axis=1)
    if proba is not None:
        best = narrow(best, proba)
    best = narrow(best, np.broadcast_to(-counts.votes.sum(axis=0), best.shape))
    if (best.sum(axis=1) > 1).any():
        best = narrow(best, mean_agreement(counts, clear, first))
    return narrow(best, tiebreak).argmax(axis=1)


def mean_agreement(counts: CrowdlabCounts, clear: Array, consensus: Ints) -> Floats:
    """Return the mean agreement of each label's workers with clear majorities."""
    rows = counts.rows
    agrees = (rows.label == consensus[rows.task]).astype(np.float64)
    agreement = counts.mean_by_worker(agrees, clear[rows.task].astype(np.float64))
    usual = np.nanmean(agreement) if np.isfinite(agreement).any() else 0.0
    known = np.where(np.isnan(agreement), usual, agreement)
    total, nobody = counts.votes, np.zeros_like(counts.votes)
    return np.divide(counts.by_class(known[rows.worker]), total, out=nobody, where=total > 0)


def narrow(best: Array, score: Floats) -> Array:
    """Keep those of the tied classes with the highest score."""
    among = np.where(best, score, -np.inf)
    return among == among.max(axis=1, keepdims=True)


def score_workers(counts: CrowdlabCounts, found: Consensus) -> Floats:
    """Mix the mean posterior of each worker's labels with their agreement with the consensus."""
    rows, size = counts.rows, counts.size
    own = counts.mean_by_worker(found.posterior[rows.task, rows.label], np.ones(len(rows.task)))
    agrees = (rows.label == found.consensus[rows.task]).astype(np.float64)
    shared = (size > 1)[rows.task].astype(np.float64)
    agreement = counts.mean_by_worker(agrees, shared)
    crowd = size[size > 0].mean() * found.worker[np.isfinite(own)].mean()
    trust = found.model / (found.model + crowd)
    mixed = trust * own + (1.0 - trust) * agreement
    return np.where(np.isnan(agreement), own, mixed)


def fit_temperature(shares: Floats, proba: Floats) -> float:
    """Return the temperature whose probabilities are closest to the shares of labels."""
    log_class = log_of(proba)

    def distance(temperature: float) -> float:
        return -float(
            xlogy(shares, np.maximum(softmax(log_class / temperature, axis=1), FLOOR)).sum()
        )

    grid = np.array(TEMPERATURES)
    place = int(np.argmin([distance(value) for value in grid]))
    fine = [grid[[place]]]
    if place > 0:
        fine.insert(0, np.linspace(grid[place - 1], grid[place], 4, endpoint=False))
    if place < len(grid) - 1:
        fine.append(np.linspace(grid[place], grid[place + 1], 5)[1:])
    close = np.concatenate(fine)
    return float(close[np.argmin([distance(value) for value in close])])


def apply_temperature(proba: Floats, temperature: float) -> Floats:
    """Return probabilities at a temperature: sharper below one, flatter above."""
    return softmax(np.log(np.maximum(proba, FLOOR)) / temperature, axis=1)
