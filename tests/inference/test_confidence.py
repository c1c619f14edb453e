import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.inference import Confidence

MEAN = np.array([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.6, 0.4]])
SHARE = np.array([[1.0, 0.0], [0.8, 0.2], [0.5, 0.5], [0.5, 0.5]])
N_LABELS = np.array([1.0, 5.0, 2.0, 0.0])


def test_dependent_labels_count_for_less_and_shares_are_mixed_in():
    found = Confidence(dependence=0.25, shares=0.1).answer(MEAN, SHARE, N_LABELS)
    odds = 3.0  # 9 ** (1 / (1 + 4 / 4))
    assert_allclose(found[0], [0.91, 0.09])
    assert_allclose(found[1, 0], 0.9 * odds / (1 + odds) + 0.08)
    assert_array_equal(found[3], MEAN[3])
    assert_allclose(found.sum(axis=1), 1)


def test_labels_that_weigh_less_than_one_make_nobody_surer():
    found = Confidence(dependence=0.25, shares=0.0).answer(MEAN, SHARE, np.full(4, 0.2))
    assert_allclose(found, MEAN)


def draw(n, power, seed=0):
    """Posteriors that are right as often as they say once taken to a power."""
    rng = np.random.default_rng(seed)
    sure = rng.dirichlet([1.0, 0.6, 0.3], n)
    truth = (rng.random(n)[:, None] > sure.cumsum(axis=1)).sum(axis=1)
    posterior = sure ** (1 / power)
    return posterior / posterior.sum(axis=1, keepdims=True), np.full((n, 3), 1 / 3), truth


@pytest.mark.parametrize("power", [0.5, 1.0, 1.6])
def test_many_truths_give_the_power_that_makes_confidence_right(power):
    posterior, share, truth = draw(4000, power)
    found = Confidence(0.0, 0.05).fit(posterior, share, np.ones(4000), truth)
    assert_allclose(found.power, power, rtol=0.2)
    assert found.shares <= 0.05


def test_shares_grow_where_they_tell_more():
    posterior, share, truth = draw(500, 1.0)
    share = np.eye(3)[truth] * 0.9 + 0.1 / 3
    found = Confidence(0.0, 0.05).fit(posterior[::-1], share, np.ones(500), truth)
    assert found.shares >= 0.8


def test_few_truths_change_little():
    posterior, share, truth = draw(3, 0.3)
    found = Confidence(0.0, 0.05).fit(posterior, share, np.ones(3), truth)
    assert 0.4 < found.power < 2.5
    assert found.shares <= 0.2
