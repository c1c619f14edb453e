"""Beliefs about probabilities as counts, shared by the variational methods."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln

from crowdwise.errors import ParameterError, explain
from crowdwise.inference.simplex import normalize
from crowdwise.typing import Floats


def expected_log(counts: Floats) -> Floats:
    """Return E[log p] for p with a Dirichlet distribution, with counts on the last axis."""
    return digamma(counts) - digamma(counts.sum(axis=-1, keepdims=True))


def divergence(counts: Floats, prior: Floats, log: Floats | None = None) -> float:
    """Return KL(Dirichlet(counts) || Dirichlet(prior)), summed over all rows.

    ``log`` is ``expected_log(counts)``, if already computed.
    """
    log = expected_log(counts) if log is None else log
    distance = ((counts - prior) * log).sum(axis=-1)
    return float((distance + _log_beta(prior) - _log_beta(counts)).sum())


def pool_counts(counts: Floats, smoothing: Floats, pooling: float) -> Floats:
    """Return pseudo-counts per worker: ``pooling`` labels of the whole crowd's confusion."""
    return pooling * normalize(counts.sum(axis=0) + smoothing)


def positive_pair(value: ArrayLike, name: str, meaning: str) -> Floats:
    """Check for two positive numbers."""
    pair = np.asarray(value, dtype=np.float64)
    if pair.shape != (2,) or not (pair > 0).all():
        raise ParameterError(
            explain(
                f"{name}={value!r} cannot be used.",
                expected=f"two positive numbers, {meaning}",
                fix="leave it out for the default",
            )
        )
    return pair


def _log_beta(counts: Floats) -> Floats:
    return gammaln(counts).sum(axis=-1) - gammaln(counts.sum(axis=-1))
