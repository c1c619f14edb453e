"""Steepness of judges' votes: logistic curves over the score by the other judges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.sparse import csr_array
from scipy.special import expit, log_expit

from crowdwise.inference.ratings import dense_blocks
from crowdwise.inference.rows import sum_by_group
from crowdwise.typing import Floats, Ints

MOST_BINS = 1000  # bins of scores, so that the cost does not depend on the number of tasks
CONTINUUM = 1 - 2 / np.pi  # remaining covariance within two halves of a normal distribution
LOW, HIGH = (1.5, 3.0), (3.0, 1.5)  # Beta priors of a judge's lowest and highest rate
PRECISELY = {"maxiter": 5000, "maxfun": 10000, "ftol": 1e-14, "gtol": 1e-7, "maxcor": 30}
FLAT = 0.01  # precision of a slope's prior


@dataclass(frozen=True)
class Votes:
    """Votes for a class over a score, in cells of judge and score bin."""

    judge: Ints
    score: Floats
    n: Floats  # votes
    yes: Floats  # votes for the class
    n_judges: int

    @classmethod
    def of(cls, votes: csr_array, scores: Floats, family: Ints) -> Votes:
        """Collect votes (task, judge) of each family over ``scores`` (task, family) of others."""
        parts, columns = [], votes.tocsc()
        for g, score in enumerate(scores.T):
            edges = np.sort(score)
            if len(edges) > MOST_BINS:
                edges = edges[np.linspace(0, len(edges) - 1, MOST_BINS).astype(np.int64)]
            edges = np.unique(edges)
            at = np.searchsorted(edges, score)
            count = np.maximum(np.bincount(at, minlength=len(edges)), 1)
            center = sum_by_group(at, score, len(edges)) / count
            for judge in np.flatnonzero(family == g):
                own = slice(*columns.indptr[judge : judge + 2])
                bin_of = at[columns.indices[own]]
                n = np.bincount(bin_of, minlength=len(edges)).astype(np.float64)
                yes = sum_by_group(bin_of, columns.data[own], len(edges))
                some = np.flatnonzero(n)
                parts.append((np.full(len(some), judge), center[some], n[some], yes[some]))
        who, where, votes_in, for_it = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls(who, where, votes_in, for_it, votes.shape[1])

    def fit_slope(self) -> tuple[float, float]:
        """Fit one logistic curve for all judges: slope and intercept."""

        def loss(at: Floats) -> tuple[float, Floats]:
            p = expit(at[0] * self.score + at[1]).clip(1e-12, 1 - 1e-12)
            value = self.yes @ np.log(p) + (self.n - self.yes) @ np.log1p(-p)
            miss = self.yes - self.n * p
            slope = miss @ self.score - FLAT * at[0]
            return -(value - FLAT * at[0] ** 2 / 2), -np.array([slope, miss.sum()])

        a, c = minimize(loss, [1.0, 0.0], jac=True, method="L-BFGS-B", options=PRECISELY).x
        return float(a), float(c)

    def fit_bounded(self, slope: float, intercept: float) -> tuple[float, float]:
        """Fit one curve between each judge's lowest and highest rate: slope and intercept."""
        size = self.n_judges

        def loss(at: Floats) -> tuple[float, Floats]:
            low, high = expit(at[2 : 2 + size]), expit(at[2 + size :])
            p = expit(at[0] * self.score + at[1])
            rate = low[self.judge] * (1 - p) + high[self.judge] * p
            rate = rate.clip(1e-9, 1 - 1e-9)
            value = self.yes @ np.log(rate) + (self.n - self.yes) @ np.log1p(-rate)
            miss = (self.yes - self.n * rate) / (rate * (1 - rate))
            curve = miss * (high - low)[self.judge] * p * (1 - p)
            moves = [np.array([curve @ self.score - FLAT * at[0], curve.sum()])]
            value -= FLAT * at[0] ** 2 / 2
            ends = (at[2 : 2 + size], low, 1 - p, LOW), (at[2 + size :], high, p, HIGH)
            for odds, bound, share, (a, b) in ends:
                value += ((a - 1) * log_expit(odds) + (b - 1) * log_expit(-odds)).sum()
                own = sum_by_group(self.judge, miss * share, size) * bound * (1 - bound)
                moves.append(own + (a - 1) * (1 - bound) - (b - 1) * bound)
            return -value, -np.concatenate(moves)

        start = np.concatenate([[1.5 * slope, intercept], np.full(size, -2.0), np.full(size, 2.0)])
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=PRECISELY).x
        return float(found[0]), float(found[1])


def measure_overlap(votes: csr_array, proba: Floats, family: Ints) -> float:
    """Measure the correlation of families that remains within classes, relative to a continuum.

    0 for two clean classes; 1 for scores without a gap, so that the classes are the two
    halves of one distribution. ``votes`` are standardized, (task, judge).
    """
    between = family[:, None] != family[None, :]
    whole, above = np.zeros((2, len(family), len(family)))
    for rows, value, _ in dense_blocks(votes):
        whole += value.T @ value
        above += value.T @ (value * proba[rows, None])
    covered = float(covariance(whole, votes.T @ np.ones(len(proba)), len(proba))[between].sum())
    if covered <= 0:
        return 1.0
    sides = (above, proba), (whole - above, 1.0 - proba)
    within = 0.0
    for product, side in sides:
        left = covariance(product, votes.T @ side, float(side.sum()))
        within += float(side.mean() * left[between].sum())
    return float(np.clip(within / covered / CONTINUUM, 0.0, 1.0))


def covariance(product: Floats, total: Floats, weight: float) -> Floats:
    """Return the covariance of columns from weighted sums of products and of values."""
    weight = max(weight, 1e-300)
    return product / weight - np.outer(total, total) / weight**2


def match_mean(logit: Floats, target: float) -> float:
    """Return what to add to logits so that their mean probability is ``target``."""
    low, high = -60.0 - float(logit.max()), 60.0 - float(logit.min())
    found: float = brentq(lambda shift: expit(logit + shift).mean() - target, low, high, xtol=1e-13)
    return found
