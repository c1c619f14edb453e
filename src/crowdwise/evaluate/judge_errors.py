"""Errors of judges within the true classes, and their correlations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri
from scipy.stats import t

from crowdwise.annotations import Annotations
from crowdwise.evaluate.intervals import NAN, Estimate, bootstrap
from crowdwise.inference.ratings import Correlations, dense_blocks
from crowdwise.typing import Array, Floats, Ints

MOST_GROUPS, MOST_CELLS = 1000, 20_000_000  # groups of tasks that are resampled together


@dataclass(frozen=True)
class Errors:
    """Products of two judges' errors, and counts of shared tasks, by group of tasks."""

    product: Floats  # (group, judge, judge)
    common: Floats  # (group, judge, judge)
    skill: Floats  # (judge,): distance between the classes in the judge's ratings
    n_tasks: int

    @classmethod
    def of(cls, votes: Annotations, proba: Floats, rng: np.random.RandomState) -> Errors:
        """Compute errors within classes, from P(class) of each task (task, class)."""
        used = np.flatnonzero(proba.sum(axis=1) > 0)
        n_judges = votes.n_workers
        most = max(min(MOST_GROUPS, MOST_CELLS // (2 * n_judges**2)), 50)
        n_groups = min(len(used), most)
        group = rng.permutation(len(used)) * n_groups // len(used)
        order = np.argsort(group, kind="stable")
        ends = np.searchsorted(group[order], np.arange(n_groups + 1))
        proba = proba[used][order]
        product = np.zeros((n_groups, n_judges, n_judges))
        common, means = np.zeros_like(product), np.zeros((votes.n_classes, n_judges))
        seen = table_of(votes, np.ones(votes.n_annotations))[used][order]
        for k, weight in enumerate(proba.T):
            table = table_of(votes, rate_class(votes, k))[used][order]
            means[k] = (table.T @ weight) / np.maximum(seen.T @ weight, 1e-300)
            for rows, rating, here in dense_blocks(table):
                error = rating - here * means[k]
                by_error, by_seen = error * weight[rows, None], here * weight[rows, None]
                for g, part in parts_of(rows, ends):
                    product[g] += by_error[part].T @ error[part]
                    common[g] += by_seen[part].T @ here[part]
        scored = votes.score is not None
        skill = means[-1] - means[0] if scored else means.mean(axis=0) - 1 / votes.n_classes
        return cls(product, common, skill, len(used))

    def correlate(self) -> Correlations:
        value = np.nan_to_num(correlations(self.product.sum(axis=0), self.common.sum(axis=0)))
        np.fill_diagonal(value, 1.0)
        return Correlations(value, self.common.sum(axis=0), self.n_tasks)

    def count_effective(
        self, n_resamples: int, confidence: float, rng: np.random.RandomState
    ) -> Estimate:
        """Estimate how many independent judges the panel is worth, from the mean correlation."""
        n_groups, n_judges = self.product.shape[:2]
        square = n_judges**2
        off = ~np.eye(n_judges, dtype=bool)

        def share(sums: Floats) -> Floats:
            product, common = sums[:, :square], sums[:, square:]
            shape = (-1, n_judges, n_judges)
            met = correlations(product.reshape(shape), common.reshape(shape))[:, off]
            n_met = np.isfinite(met).sum(axis=1)
            mean = np.nansum(met, axis=1) / np.maximum(n_met, 1)
            return np.where(n_met > 0, (1 + (n_judges - 1) * mean) / n_judges, NAN)

        rows = np.concatenate(
            [self.product.reshape(n_groups, -1), self.common.reshape(n_groups, -1)], axis=1
        )
        level = widen(confidence, self.n_tasks)
        low, high = bootstrap(
            rows, share, n_resamples=n_resamples, confidence=level, random_state=rng
        )
        found = float(share(rows.sum(axis=0, keepdims=True))[0])
        value, low, high = (1 / max(one, 1 / n_judges) for one in (found, high, low))
        return Estimate(value, low, high)

    def list_pairs(self, workers: Array, confidence: float | None) -> pd.DataFrame:
        """List the correlation of each pair of judges, with a jackknife interval over groups."""
        product, common = self.product.sum(axis=0), self.common.sum(axis=0)
        first, second = np.triu_indices(len(workers), 1)
        value = correlations(product, common)[first, second].clip(-0.9999, 0.9999)
        half = np.full(len(value), NAN)
        if confidence is not None:
            left = correlations(product - self.product, common - self.common)[:, first, second]
            left = np.arctanh(left.clip(-0.9999, 0.9999))
            n = len(left)
            spread = ((left - left.mean(axis=0)) ** 2).sum(axis=0) * (n - 1) / n
            half = ndtri(0.5 + confidence / 2) * np.sqrt(spread)
        return pd.DataFrame(
            {
                "first": workers[first],
                "second": workers[second],
                "correlation": value,
                "low": np.tanh(np.arctanh(value) - half),
                "high": np.tanh(np.arctanh(value) + half),
                "n_tasks": common[first, second].round().astype(int),
            }
        )


def widen(confidence: float, n: int) -> float:
    """Return the level at which resamples of few tasks are as wide as Student's t intervals.

    Hesterberg (2015). What teachers should know about the bootstrap. The American Statistician
    69(4). doi:10.1080/00031305.2015.1089789
    """
    n = max(n, 2)
    quantile = np.sqrt(n / (n - 1)) * t.ppf(0.5 + confidence / 2, n - 1)
    return min(float(2 * ndtr(quantile) - 1), np.nextafter(1.0, 0.0))


def parts_of(rows: slice, ends: Ints) -> Iterator[tuple[int, slice]]:
    """Yield the groups with rows in a block, and which rows of the block those are."""
    first, last = np.searchsorted(ends, [rows.start, rows.stop - 1], side="right") - 1
    for g in range(first, last + 1):
        start, stop = max(ends[g], rows.start), min(ends[g + 1], rows.stop)
        yield g, slice(start - rows.start, stop - rows.start)


def table_of(votes: Annotations, value: Floats) -> csr_array:
    """Arrange values of annotations as tasks x judges; repeats are averaged, 0 means none."""
    place = (votes.task, votes.worker)
    table = csr_array((value, place), shape=votes.shape)
    count = csr_array((np.ones(len(value)), place), shape=votes.shape)
    table.data = table.data / count.data
    return table


def rate_class(votes: Annotations, k: int) -> Floats:
    """Return each annotation's score, or without scores, how much it supports class ``k``."""
    if votes.score is not None:
        return votes.score
    if votes.soft is not None:
        return votes.soft[:, k].astype(np.float64)
    return (votes.label == k).astype(np.float64)


def correlations(product: Floats, common: Floats) -> Floats:
    """Compute correlations from sums of products and counts, over the last two axes."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = product / common
        own = np.diagonal(mean, axis1=-2, axis2=-1)
        own = np.where(own > 1e-12, own, NAN)
        found: Floats = mean / np.sqrt(own[..., :, None] * own[..., None, :])
    return found.clip(-1.0, 1.0)
