"""Truths from labels and a prior per task: a Bayesian bootstrap over the workers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.inference import clamp, expected_log, gold_mask, log_of, normalize
from crowdwise.inference.engines.memory import count, sweep
from crowdwise.typing import Floats, Ints

STRENGTH = 3.0  # labels of the crowd's confusion that every worker gets
N_STEPS = 40
CLOSE = 5e-3  # of posteriors from one step to the next


def pool(counts: Floats) -> Floats:
    """Counts of each worker, with some labels of the whole crowd's confusion added."""
    n_classes = counts.shape[-1]
    crowd = normalize(counts.sum(axis=0) + 0.25 + 0.75 * np.eye(n_classes))
    return counts + STRENGTH * crowd


def infer_in_bags(
    votes: Annotations, gold: Ints | None, bags: Floats, prior: Floats | None
) -> Floats:
    """Mean posterior over bags, each with random weights on the workers, (bag, worker).

    With a prior, (task, class), posteriors start there; else from shares of labels, and a
    prior is estimated.
    """
    return np.mean([infer(votes, gold, weight, prior) for weight in bags], axis=0)


def infer(votes: Annotations, gold: Ints | None, weight: Floats, prior: Floats | None) -> Floats:
    """Dawid and Skene's model with pooled, weighted workers: P(truth) of each task."""
    cells, n_classes = votes.cells, votes.n_classes
    value = weight[cells.code // n_classes]
    cells = replace(cells, value=value if cells.value is None else value * cells.value)
    mask = gold_mask(gold, n_classes)
    if prior is None:
        own = weight[votes.worker] * (1.0 if votes.weight is None else votes.weight)
        posterior, offset = clamp(replace(votes, weight=own).shares(), gold), mask
    else:
        posterior, offset = clamp(prior, gold), log_of(prior)
        offset = offset if mask is None else np.maximum(offset, -1e3) + mask
    log_prior, labeled = np.zeros(n_classes), votes.redundancy > 0
    counts = count(cells, posterior, votes.n_workers, n_classes)
    for _ in range(N_STEPS):
        if prior is None:
            log_prior = np.log(normalize(posterior[labeled].sum(axis=0) + 1.0))
        found = sweep(cells, log_prior, expected_log(pool(counts)), offset, keep=True)
        moved = np.abs(found.posterior - posterior).max(initial=0.0)
        posterior, counts = found.posterior, found.counts
        if moved < CLOSE:
            break
    return posterior
