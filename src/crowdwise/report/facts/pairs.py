"""Agreement between pairs of workers."""

from dataclasses import dataclass

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.evaluate.cohen import shared_tasks
from crowdwise.typing import Floats, Ints

MOST_WORKERS = 40  # rows in the figure
MIN_OVERLAP = 5  # tasks that a pair must share
MOST_PAIRS = 10
COPY_OVERLAP = 20  # shared tasks from which identical labels are suspicious
COPY_CHANCE = 1e-3  # chance that any pair agrees this well by accident


@dataclass(frozen=True)
class WorkerPair:
    """Two workers, the tasks that both labeled, and their agreement there."""

    one: str
    other: str
    n_shared: int
    agreement: float
    kappa: float


@dataclass(frozen=True)
class PairFacts:
    """Agreement between all pairs of the busiest workers."""

    name: list[str]  # (row,): workers who agree most with the rest come first
    kappa: Floats  # (row, row): NaN where a pair shares too few tasks
    n_shared: Ints  # (row, row)
    worst: tuple[WorkerPair, ...]  # pairs that disagree most
    copies: tuple[WorkerPair, ...]  # pairs that agree more than chance explains
    min_overlap: int
    note: str


def pair_facts(data: Annotations) -> PairFacts | None:
    """Compare the busiest workers pairwise; ``data`` has one label per worker and task."""
    labels = np.bincount(data.worker, minlength=data.n_workers)
    busy = np.argsort(-labels, kind="stable")[:MOST_WORKERS]
    busy = busy[labels[busy] > 0]
    some = data.filter(np.isin(data.worker, busy))
    pairs = shared_tasks(some, None, MIN_OVERLAP)
    if not len(pairs.n_shared):
        return None
    row = np.full(data.n_workers, -1)
    row[busy] = np.arange(len(busy))
    kappa = np.full((len(busy), len(busy)), np.nan)
    shared = np.zeros(kappa.shape, dtype=np.int64)
    one, other = row[pairs.workers].T
    kappa[one, other] = kappa[other, one] = pairs.kappa
    shared[one, other] = shared[other, one] = pairs.n_shared
    order = by_agreement(kappa)
    names = [str(name) for name in data.workers[busy].tolist()]
    found = [
        WorkerPair(names[i], names[j], int(n), float(agree / n), float(k))
        for i, j, n, agree, k in zip(
            one, other, pairs.n_shared, pairs.agree, pairs.kappa, strict=True
        )
    ]
    return PairFacts(
        name=[names[i] for i in order],
        kappa=kappa[np.ix_(order, order)],
        n_shared=shared[np.ix_(order, order)],
        worst=worst_of(found),
        copies=copies_of(found),
        min_overlap=MIN_OVERLAP,
        note=_left_out(len(busy), int((labels > 0).sum())),
    )


def by_agreement(kappa: Floats) -> Ints:
    """Order rows by mean kappa, best first; rows without any come last."""
    known = np.isfinite(kappa)
    mean = np.where(known, kappa, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.argsort(np.where(known.any(axis=1), -mean, np.inf), kind="stable")


def worst_of(pairs: list[WorkerPair]) -> tuple[WorkerPair, ...]:
    """Return the pairs with the lowest kappa; ties go to those that share more tasks."""
    known = [pair for pair in pairs if np.isfinite(pair.kappa)]
    return tuple(sorted(known, key=lambda pair: (pair.kappa, -pair.n_shared))[:MOST_PAIRS])


def copies_of(pairs: list[WorkerPair]) -> tuple[WorkerPair, ...]:
    """Return pairs with identical labels if chance is unlikely to produce any such pair.

    Under chance, each pair agrees as often as pairs do on average.
    """
    known = [pair for pair in pairs if np.isfinite(pair.kappa)]
    if not known:
        return ()
    total = sum(pair.n_shared for pair in known)
    usual = sum(pair.agreement * pair.n_shared for pair in known) / total
    return tuple(
        pair
        for pair in sorted(known, key=lambda pair: -pair.n_shared)
        if pair.agreement == 1
        and pair.n_shared >= COPY_OVERLAP
        and len(known) * usual**pair.n_shared < COPY_CHANCE
    )[:MOST_PAIRS]


def _left_out(n_rows: int, n_workers: int) -> str:
    if n_rows == n_workers:
        return ""
    return f"The {n_rows:,} busiest of {n_workers:,} workers are compared."
