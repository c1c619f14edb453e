"""A logistic regression that starts from prior knowledge, averaged over several priors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, log_expit

from crowdwise.typing import Floats

# Standard deviations of the priors: of the intercept, of the slope of the prior logit (around
# 1), of the factors, and of single judges. Small ones keep the prior, large ones learn from gold.
INTERCEPTS, SLOPES = (0.2, 0.6, 1.5), (0.15, 0.5)
FACTORS, JUDGES = (0.03, 0.3, 0.8), (0.01, 0.06, 0.15, 0.3)
ROWS_AT_ONCE = 1 << 16
LONGEST = 4.0  # maximum step of a logit
NEWTON, SETTLED = 100, 1e-9
LEAST_SHARE = 1e-3  # share of the average below which a prior is dropped


@dataclass(frozen=True)
class Average:
    """Linear log-odds under several priors, with their uncertainties and weights."""

    share: Floats  # (prior,), sums to one
    coef: Floats  # (prior, column)
    root: Floats  # (prior, column, …): root root' is the covariance of the coefficients

    def predict(self, design: Floats) -> Floats:
        """Return P(yes) of each row, less certain where the coefficients are (MacKay)."""
        found = np.zeros(len(design))
        for share, coef, root in zip(self.share, self.coef, self.root, strict=True):
            variance = ((design @ root) ** 2).sum(axis=1)
            found += share * expit(design @ coef / np.sqrt(1.0 + np.pi * variance / 8.0))
        return found

    def predict_table(self, ratings: csr_array) -> Floats:
        """Return P(yes) of each row of a sparse table, with columns 1 and its own."""
        found = np.empty(ratings.shape[0])
        for start in range(0, len(found), ROWS_AT_ONCE):
            rows = ratings[start : start + ROWS_AT_ONCE].toarray()
            found[start : start + len(rows)] = self.predict(np.insert(rows, 0, 1.0, axis=1))
        return found

    def turn(self, map: Floats) -> Average:
        """Express the same log-odds in other columns: ``design = columns @ map``."""
        return Average(self.share, self.coef @ map.T, np.matmul(map, self.root))


def average_priors(design: Floats, yes: Floats, n_factors: int, accuracy: float = 1.0) -> Average:
    """Find the mode under every prior, and weight them by their evidence (Laplace).

    Columns of ``design`` are 1, the prior logit, the factors, then the judges. A gold
    label is right with probability ``accuracy``.
    """
    n_judges = design.shape[1] - 2 - n_factors
    mean = np.zeros(design.shape[1])
    mean[1] = 1.0
    coef, root, evidence = [], [], []
    for intercept, slope, factor, judge in product(INTERCEPTS, SLOPES, FACTORS, JUDGES):
        deviation = np.repeat([intercept, slope, factor, judge], [1, 1, n_factors, n_judges])
        found, curvature, value = fit_mode(design, yes, mean, deviation**-2.0, accuracy)
        coef.append(found)
        root.append(np.linalg.inv(np.linalg.cholesky(curvature)).T)
        evidence.append(value)
    share = np.exp(np.array(evidence) - max(evidence))
    kept = share >= LEAST_SHARE * share.sum()
    share = share[kept] / share[kept].sum()
    return Average(share, np.stack(coef)[kept], np.stack(root)[kept])


def fit_mode(
    design: Floats, yes: Floats, mean: Floats, precision: Floats, accuracy: float
) -> tuple[Floats, Floats, float]:
    """Return the most probable coefficients, the curvature there, and the log-evidence."""
    coef, sign = mean.copy(), np.where(yes > 0.5, 1.0, -1.0)
    with np.errstate(divide="ignore"):
        trust = np.log(accuracy) - np.log1p(-accuracy)  # log-odds that a gold label is right
    for _ in range(NEWTON):
        logit = design @ coef
        p = expit(logit)
        target = expit(logit + sign * trust)  # P(yes | gold label)
        slope = design.T @ (target - p) - precision * (coef - mean)
        curvature = (design * (p * (1 - p))[:, None]).T @ design + np.diag(precision)
        step = np.linalg.solve(curvature, slope)
        coef = coef + step / max(float(np.abs(design @ step).max()) / LONGEST, 1.0)
        if np.abs(step).max() < SETTLED:
            break
    logit = design @ coef
    likelihood = np.logaddexp(
        np.log(accuracy) + log_expit(sign * logit),
        np.log(accuracy) - trust + log_expit(-sign * logit),
    ).sum()
    prior = -0.5 * (precision * (coef - mean) ** 2).sum() + 0.5 * np.log(precision).sum()
    return coef, curvature, float(likelihood + prior - 0.5 * np.linalg.slogdet(curvature)[1])
