"""Common factors of judges: a factor model of their ratings, and the resulting weights."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import squareform

from crowdwise.inference.ratings import LEAST_NOISE
from crowdwise.typing import Floats, Ints

MOST_FACTORS = 3
ALIKE = 0.95  # congruence above which two sets of loadings are one factor
STEPS, SETTLED = 1000, 1e-7


def guess_families(correlation: Floats, n_tasks: int) -> Ints:
    """Group judges who agree beyond what all have in common, by partial correlation."""
    n = len(correlation)
    inverse = np.linalg.inv(correlation + LEAST_NOISE * np.eye(n))
    scale = np.sqrt(np.diag(inverse))
    partial = -inverse / np.outer(scale, scale)
    if n < 3:
        return np.arange(n)
    beside = squareform(partial, checks=False)
    bar = 2.5 * max(float(np.median(beside)), 0.0) + 3.0 / np.sqrt(max(n_tasks, 1))
    tree = linkage(1.0 - beside, "average")
    return fcluster(tree, 1.0 - bar, "distance").astype(np.int64) - 1


def count_factors(correlation: Floats, n_tasks: int) -> int:
    """Count eigenvalues above those of chance (Marchenko and Pastur), from 1 to 3."""
    chance = (1.0 + np.sqrt(len(correlation) / max(n_tasks, 1))) ** 2
    found = int((np.linalg.eigvalsh(correlation) > chance).sum())
    return int(np.clip(found, 1, min(MOST_FACTORS, max((len(correlation) - 1) // 2, 1))))


def fit_factors(correlation: Floats, n_factors: int) -> tuple[Floats, Floats]:
    """Return loadings (judge, factor) and noise (judge,) of maximum likelihood.

    The likelihood is a function of the noise alone, since the best loadings for given noise are
    the leading axes of the remainder (Joreskog 1967).
    """

    def lead(noise: Floats) -> tuple[Floats, Floats]:
        scale = np.sqrt(noise)
        size, axes = np.linalg.eigh(correlation / np.outer(scale, scale))
        return scale[:, None] * axes[:, -n_factors:] * np.sqrt(
            np.maximum(size[-n_factors:] - 1.0, 0.0)
        ), size[:-n_factors]

    def loss(noise: Floats) -> tuple[float, Floats]:
        loading, rest = lead(noise)
        left = (loading**2).sum(axis=1) + noise - np.diag(correlation)
        return float((rest - np.log(rest) - 1.0).sum()), left / noise**2

    n = len(correlation)
    inverse = np.linalg.inv(correlation + LEAST_NOISE * np.eye(n))
    start = ((1.0 - 0.5 * n_factors / n) / np.diag(inverse)).clip(LEAST_NOISE, 1.0)
    bounds = [(LEAST_NOISE, 1.0)] * n
    noise = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return lead(noise)[0], noise


def rotate_quartimax(loading: Floats) -> Floats:
    """Rotate the factors so that one of them explains as much as possible of every judge."""
    turn = np.eye(loading.shape[1])
    for _ in range(STEPS):
        left, _, right = np.linalg.svd(loading.T @ (loading @ turn) ** 3)
        before, turn = turn, left @ right
        if np.abs(turn - before).max() < SETTLED:
            break
    return loading @ turn


def fit_between(correlation: Floats, family: Ints) -> Floats:
    """Fit one factor that explains correlations between families only."""
    between = (family[:, None] != family[None, :]).astype(np.float64)
    size, axes = np.linalg.eigh(correlation)
    loading = face_up(axes[:, -1] * np.sqrt(size[-1]) * 0.8)
    for _ in range(STEPS):
        before = loading.copy()
        for j in range(len(loading)):
            mass = float(between[j] @ loading**2)
            if mass > 1e-9:
                loading[j] = (between[j] * correlation[j]) @ loading / mass
        if np.abs(loading - before).max() < SETTLED:
            break
    return loading.clip(-0.99, 0.99)


def face_up(loading: Floats) -> Floats:
    """Flip the loadings so that most of them are positive."""
    return loading if loading.sum() >= 0 else -loading


def weigh_judges(correlation: Floats, family: Ints, n_tasks: int) -> Floats:
    """Weight each judge's rating by how much it tells about what the panel has in common.

    This is the main factor if families agree on it; if one family dominates, the factor that
    families share, with judges of one family counted as dependent.
    """
    n = len(correlation)
    if n < 3:
        return np.full(n, 1.0 / max(n, 1))
    loading, noise = fit_factors(correlation, count_factors(correlation, n_tasks))
    turned = rotate_quartimax(loading)
    main = face_up(turned[:, (turned**2).sum(axis=0).argmax()])
    if len(np.unique(family)) > 2:
        shared = fit_between(correlation, family)
        if main @ shared < ALIKE * np.linalg.norm(main) * np.linalg.norm(shared):
            rest = correlation - np.outer(shared, shared)
            together = (family[:, None] == family[None, :]) * 0.5 * rest
            np.fill_diagonal(together, np.diag(rest).clip(min=LEAST_NOISE) + 0.05)
            return solve(together, shared)
    return solve(loading @ loading.T + np.diag(noise), main)


def score_factors(correlation: Floats) -> Floats:
    """Return weights (judge, factor) that turn ratings into scores of up to three factors."""
    n_factors = min(MOST_FACTORS, max((len(correlation) - 1) // 2, 1))
    loading, noise = fit_factors(correlation, n_factors)
    turned = rotate_quartimax(loading)
    weight = solve(turned @ turned.T + np.diag(noise), turned)
    return weight / np.sqrt(np.maximum(((weight.T @ correlation) * weight.T).sum(axis=1), 1e-12))


def solve(matrix: Floats, side: Floats) -> Floats:
    """Return ``matrix^-1 side`` of a positive definite matrix, regularized if needed."""
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    lift = max(LEAST_NOISE - lowest, 0.0)
    found: Floats = cho_solve(cho_factor(matrix + lift * np.eye(len(matrix))), side)
    return found
