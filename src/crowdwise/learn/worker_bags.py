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
from crowdwise.learn.label_stacking import LEAST
from crowdwise.typing import Array, Floats, Ints

SMOOTHING, POOLING = (1.0, 0.25), 3.0  # pooled as in BayesBag
SHARES = 0.1  # weight of a task's own shares of labels, as in BayesBag
N_STEPS = 40
CLOSE = 5e-3  # change of posteriors from one step to the next
MANY_STEPS, VERY_CLOSE = 200, 1e-3  # likewise while class frequencies are found, which move slowly
SCALING_STEPS = 3


def pool(counts: Floats) -> Floats:
    """Return counts of each worker, plus some labels of the whole crowd's confusion."""
    return counts + pool_counts(counts, worker_prior(SMOOTHING, counts.shape[-1]), POOLING)


def infer_in_bags(
    votes: Annotations,
    gold: Ints | None,
    bags: Floats,
    prior: Floats | None,
    dependence: float = 0.0,
) -> Floats:
    """Return the mean posterior over bags with random weights of workers, (bag, worker).

    With a prior, (task, class), posteriors start from it and the labels together; otherwise from
    shares of labels, and a prior is estimated. As in BayesBag, the more labels a task has, the
    less certain is its truth if workers err together.
    """
    total, engine = np.zeros((votes.n_tasks, votes.n_classes)), MemoryEngine(votes, gold)
    for weight in bags:
        total += infer(engine.reweighted(weight), prior)
    more = np.maximum(votes.votes().sum(axis=1, keepdims=True) - 1.0, 0.0)  # after the first label
    mean = normalize((total / len(bags)) ** (1.0 / (1.0 + more * dependence)))
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


def find_balance(
    engine: MemoryEngine, prior: Floats, labeled: Array
) -> tuple[Floats, Floats, Floats]:
    """Find factors for the classes of a prior that make labels most likely, (class,), by EM.

    Also return the posteriors without them, and with them. Poor workers' labels alone hardly say
    how rare a class is; with a prior that says which tasks are alike, they do.
    """
    before = posterior = infer(engine, prior)
    counts, factor = engine.count(posterior), np.ones(engine.n_classes)
    more = engine.n_classes * normalize(prior[labeled].sum(axis=0))  # a few tasks as they are
    for _ in range(MANY_STEPS):
        share = normalize(posterior[labeled].sum(axis=0) + more)
        for _ in range(SCALING_STEPS):
            now = normalize(normalize(prior[labeled] * factor).sum(axis=0) + more)
            factor *= share / np.maximum(now, LEAST)
        found = engine.expect(log_of(normalize(prior * factor)), expected_log(pool(counts)))
        moved = np.abs(found.posterior - posterior).max(initial=0.0)
        posterior, counts = found.posterior, found.counts
        if moved < VERY_CLOSE:
            break
    return factor, before, posterior
