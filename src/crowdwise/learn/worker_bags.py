"""Truths from labels and a prior per task: a Bayesian bootstrap over the workers."""

from __future__ import annotations

import numpy as np

from crowdwise.annotations import Annotations, find_labeled
from crowdwise.inference import (
    MemoryEngine,
    clamp,
    expected_log,
    log_of,
    normalize,
    pool_counts,
    worker_prior,
)
from crowdwise.typing import Floats, Ints

SMOOTHING, POOLING = (1.0, 0.25), 3.0  # pooled as in BayesBag
SHARES = 0.1  # weight of a task's own shares of labels, as in BayesBag
N_STEPS = 40
CLOSE = 5e-3  # change of posteriors from one step to the next


def pool(counts: Floats) -> Floats:
    """Return counts of each worker, plus some labels of the whole crowd's confusion."""
    return counts + pool_counts(counts, worker_prior(SMOOTHING, counts.shape[-1]), POOLING)


def infer_in_bags(
    votes: Annotations, gold: Ints | None, bags: Floats, prior: Floats | None
) -> Floats:
    """Return the mean posterior over bags with random weights of workers, (bag, worker).

    With a prior, (task, class), posteriors start from it and the labels together; otherwise from
    shares of labels, and a prior is estimated.
    """
    total, engine = np.zeros((votes.n_tasks, votes.n_classes)), MemoryEngine(votes, gold)
    for weight in bags:
        total += infer(engine.reweighted(weight), prior)
    mean = total / len(bags)
    mixed = np.where(find_labeled(votes)[:, None], mean + SHARES * (votes.shares() - mean), mean)
    return clamp(mixed, gold)


def infer(engine: MemoryEngine, prior: Floats | None) -> Floats:
    """Run Dawid and Skene's model with pooled, weighted workers: P(truth) of each task."""
    votes = engine.annotations
    labeled = votes.redundancy > 0
    # A prior equal for all tasks would leave open which class is which.
    start = engine.shares() if prior is None else normalize(prior * (1.0 + votes.votes()))
    posterior = clamp(start, engine.gold)
    log_class, counts = log_of(start if prior is None else prior), engine.count(posterior)
    for _ in range(N_STEPS):
        if prior is None:
            log_prior = np.log(normalize(posterior[labeled].sum(axis=0) + 1.0))
            log_class = np.broadcast_to(log_prior, posterior.shape)
        found = engine.expect(log_class, expected_log(pool(counts)))
        moved = np.abs(found.posterior - posterior).max(initial=0.0)
        posterior, counts = found.posterior, found.counts
        if moved < CLOSE:
            break
    return posterior
