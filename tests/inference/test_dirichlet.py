"""Dirichlet beliefs against integrals and against their definitions."""

from math import lgamma, log

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import beta

from crowdwise.errors import ParameterError
from crowdwise.inference.dirichlet import divergence, expected_log, positive_pair
from crowdwise.inference.simplex import worker_prior


def test_expected_log_is_the_integral():
    counts = np.array([[2.5, 0.7], [1.0, 6.0]])
    for row, found in zip(counts, expected_log(counts), strict=True):
        density = beta(*row).pdf
        first = quad(lambda p, density=density: density(p) * log(p), 0, 1)[0]
        second = quad(lambda p, density=density: density(p) * log(1 - p), 0, 1)[0]
        assert_allclose(found, [first, second], rtol=1e-6)


def test_divergence_is_the_integral():
    before, after = beta(1.5, 3.0), beta(4.0, 2.0)
    gap = quad(lambda p: after.pdf(p) * (after.logpdf(p) - before.logpdf(p)), 0, 1)[0]
    assert_allclose(divergence(np.array([4.0, 2.0]), np.array([1.5, 3.0])), gap, rtol=1e-6)


def test_divergence_adds_up_over_rows_and_one_prior_serves_all():
    rng = np.random.default_rng(0)
    counts, prior = rng.uniform(0.3, 9, (4, 3, 3)), rng.uniform(0.3, 3, (3, 3))
    total = 0.0
    for matrix in counts:
        for row, base in zip(matrix, prior, strict=True):
            density = lgamma(row.sum()) - lgamma(base.sum())
            for a, b, mean in zip(row, base, expected_log(row), strict=True):
                density += lgamma(b) - lgamma(a) + (a - b) * mean
            total += density
    assert_allclose(divergence(counts, prior), total)
    assert divergence(prior, prior) == pytest.approx(0.0)


def test_a_worker_prior_comes_in_three_forms():
    assert_allclose(worker_prior(2.0, 2), [[2, 2], [2, 2]])
    assert_allclose(worker_prior((4.0, 1.0), 3), [[4, 1, 1], [1, 4, 1], [1, 1, 4]])
    assert_allclose(worker_prior([[3.0, 1.0], [2.0, 5.0]], 2), [[3, 1], [2, 5]])


@pytest.mark.parametrize("smoothing", [[1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]], (4.0, 0.0)])
def test_a_worker_prior_of_another_shape_is_refused(smoothing):
    with pytest.raises(ParameterError, match=r"expected: a positive number, a pair"):
        worker_prior(smoothing, 3)


@pytest.mark.parametrize("value", [1.0, (1.0,), (1.0, 0.0), (1.0, 2.0, 3.0)])
def test_a_pair_is_two_positive_numbers(value):
    with pytest.raises(ParameterError, match="two positive numbers, hot and cold"):
        positive_pair(value, "taps", "hot and cold")
