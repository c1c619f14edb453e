"""Logistic models with one unknown per worker or task: loops and finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.errors import ParameterError
from crowdwise.inference import MemoryEngine
from crowdwise.inference.logistic import (
    Shape,
    ascend,
    at_scale,
    falls,
    normal_prior,
    responses_of,
    softplus,
)

SMALL = 1e-4
TOP = np.array([0.3, -0.6, 0.9])


@pytest.fixture(scope="module")
def rows(weighted_voters):
    whole = MemoryEngine(weighted_voters)._load((0, weighted_voters.n_tasks))
    return responses_of(whole, weighted_voters.pairs.worker)


def test_rows_are_the_annotations(weighted_voters, rows):
    assert_array_equal(rows.task, weighted_voters.task)
    assert_array_equal(rows.worker, weighted_voters.worker)
    assert_array_equal(rows.cell, weighted_voters.task * 3 + weighted_voters.label)
    assert_allclose(rows.weight, weighted_voters.weight)


def test_softplus_does_not_overflow():
    x = np.array([-800.0, -1.5, 0.0, 2.0, 800.0])
    expected = [0.0, np.log(1 + np.exp(-1.5)), np.log(2), np.log(1 + np.exp(2.0)), 800.0]
    assert_allclose(softplus(x), expected)


def test_at_scale_equals_the_plain_loop_and_its_differences(rows):
    rng = np.random.default_rng(0)
    scale, factor = rng.normal(1, 1, 7), rng.exponential(size=len(rows.task))
    right = rng.random(len(rows.task))

    def slow(scale):
        value = np.zeros(7)
        for w, f, c, weight in zip(rows.worker, factor, right, rows.weight, strict=True):
            chance = 1 / (1 + np.exp(-scale[w] * f))
            value[w] += weight * (c * np.log(chance) + (1 - c) * np.log(1 - chance))
        return value

    shape = at_scale(scale, factor, rows.worker, rows, right)
    before, here, after = (slow(scale + step) for step in (-SMALL, 0.0, SMALL))
    assert_allclose(shape.value, here)
    assert_allclose(shape.slope, (after - before) / (2 * SMALL), rtol=1e-5)
    assert_allclose(shape.curvature, -(after - 2 * here + before) / SMALL**2, rtol=1e-4)


def test_a_normal_prior_is_added_to_all_three():
    prior, at = normal_prior((0.5, 2.0), "prior"), np.array([1.5, -0.5])
    found = prior.added_to(Shape(np.ones(2), np.zeros(2), np.full(2, 3.0)), at)
    assert_allclose(found.value, 1 - (at - 0.5) ** 2 / 4)
    assert_allclose(found.slope, -(at - 0.5) / 2)
    assert_allclose(found.curvature, [3.5, 3.5])


@pytest.mark.parametrize("pair", [1.0, (1.0, 0.0), (1.0, 1.0, 1.0), (np.inf, 1.0)])
def test_a_prior_is_a_mean_and_a_variance(pair):
    with pytest.raises(ParameterError, match="expected: a mean and a positive variance"):
        normal_prior(pair, "skill_prior")


def test_one_step_finds_the_top_of_a_parabola():
    def parabolas(x):
        return Shape(-2 * (x - TOP) ** 2, -4 * (x - TOP), np.full(3, 4.0))

    assert_allclose(ascend(np.zeros(3), parabolas), TOP)


def test_no_step_is_longer_than_one():
    def slopes(x):
        return Shape(x * [1.0, -1.0], np.array([1.0, -1.0]), np.full(2, 1e-3))

    assert_allclose(ascend(np.zeros(2), slopes), [1.0, -1.0])


def test_a_step_that_would_fall_is_halved_and_others_are_not():
    # The curvature is stated too small by 8, so a full step overshoots unless it is halved.
    def parabolas(x):
        stated = np.array([1.0, 8.0])
        return Shape(-4 * (x - 0.1) ** 2, -8 * (x - 0.1), stated)

    # The first: 0.8, 0.4 and then 0.2, which is as far from the top as the start.
    assert_allclose(ascend(np.zeros(2), parabolas), [0.2, 0.1])


def test_where_no_step_helps_the_point_stays():
    def deceptive(x):
        return Shape(np.where(x == 0, 0.0, [-1.0, np.nan]), np.ones(2), np.ones(2))

    assert_array_equal(ascend(np.zeros(2), deceptive), [0.0, 0.0])


def test_rounding_is_no_fall():
    before = np.array([1e6, 1.0, 1.0, -1.0])
    after = np.array([1e6 - 1e-7, 1.0 - 1e-6, np.nan, -1.0])
    assert_array_equal(falls(before, after), [False, True, True, False])
