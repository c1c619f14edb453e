"""Intervals: known values, coverage, and agreement with other implementations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from crowdwise.errors import ParameterError
from crowdwise.evaluate import Estimate, bootstrap, credible, wilson
from crowdwise.evaluate.intervals import bca_levels


def mean(sums):
    return sums[:, 1] / sums[:, 0]


def with_ones(values):
    return np.column_stack([np.ones(len(values)), values])


@pytest.mark.parametrize(("right", "total"), [(0, 10), (9, 10), (37, 50), (50, 50)])
def test_wilson_equals_scipy(right, total):
    expected = stats.binomtest(right, total).proportion_ci(0.9, method="wilson")
    assert_allclose(wilson(right, total, 0.9), [expected.low, expected.high])


def test_wilson_of_nothing_is_everything():
    assert_allclose(wilson(0, 0), [0, 1])


def test_credible_is_jeffreys():
    low, high = credible([3.0], [10.0], 0.9)
    assert_allclose([low[0], high[0]], stats.beta(3.5, 7.5).interval(0.9))


@pytest.mark.parametrize(("right", "total"), [(1, 1), (0, 1), (0.99999, 1), (7, 7), (1e-6, 3)])
def test_credible_holds_the_share_itself(right, total):
    low, high = credible([right], [total], 0.95)
    plain = stats.beta(right + 0.5, total - right + 0.5).interval(0.95)
    assert low <= right / total <= high
    assert low == pytest.approx(min(plain[0], right / total))
    assert high == pytest.approx(max(plain[1], right / total))


def test_a_share_above_one_is_one():
    assert credible(3, 2)[1] == 1.0


def test_credible_of_nothing_is_jeffreys_prior():
    assert_allclose(np.ravel(credible([0.0], [0.0], 0.9)), stats.beta(0.5, 0.5).interval(0.9))


def test_bootstrap_equals_scipys():
    values = np.random.default_rng(0).exponential(size=60) ** 2  # skewed, so that BCa matters
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=5000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    found = bootstrap(with_ones(values), mean, n_resamples=5000)
    assert_allclose(found, expected, rtol=0.03)
    plain = np.mean(values) + np.std(values) / np.sqrt(60) * np.array([-1.96, 1.96])
    assert found[1] > plain[1] + 0.1  # the longer tail is on the right


def test_levels_are_efrons():
    drawn, left_out = np.arange(100.0), np.array([0.0, 1.0, 5.0])
    bias = stats.norm.ppf(0.305)  # 30 below the value, and half of the one at it
    pull = 2 - left_out
    skew = np.sum(pull**3) / (6 * np.sum(pull**2) ** 1.5)
    expected = [
        stats.norm.cdf(bias + (bias + z) / (1 - skew * (bias + z)))
        for z in (stats.norm.ppf(0.05), stats.norm.ppf(0.95))
    ]
    assert_allclose(bca_levels(30.0, drawn, left_out, 0.9), expected)


def test_groups_keep_the_width():
    values = np.random.default_rng(0).exponential(size=50_000)
    low, high = bootstrap(with_ones(values), mean)
    assert_allclose(high - low, 2 * 1.96 * values.std() / np.sqrt(50_000), rtol=0.08)
    assert low < values.mean() < high


def test_undefined_resamples_are_passed_over():
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])

    def share(sums):
        out = np.full(len(sums), np.nan)
        return np.divide(sums[:, 1], sums[:, 0], out=out, where=sums[:, 0] > 0)

    low, high = bootstrap(rows, share)
    assert np.isfinite([low, high]).all()


def test_no_interval_from_one_row_or_no_resamples():
    assert np.isnan(bootstrap(with_ones([1.0]), mean)).all()
    assert np.isnan(bootstrap(with_ones([1.0, 2.0]), mean, n_resamples=0)).all()


def test_no_interval_of_an_undefined_value():
    assert np.isnan(bootstrap(np.zeros((5, 2)), lambda sums: sums[:, 1] * np.nan)).all()


@pytest.mark.parametrize("confidence", [0, 1, -0.5])
def test_refuses_impossible_confidence(confidence):
    with pytest.raises(ParameterError, match=r"such as 0\.95"):
        wilson(1, 2, confidence)


def test_an_estimate_is_a_number():
    assert float(Estimate(0.5)) == 0.5
