"""Newton steps on many functions at once."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.inference.newton import Shape, ascend, falls

TOP = np.array([0.3, -0.6, 0.9])


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
