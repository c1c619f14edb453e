import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.evaluate.draws import draw_crowds, draw_truths, matrix_prior
from crowdwise.simulate import confused_crowd

GOOD = [[0.9, 0.1], [0.2, 0.8]]
POOR = [[0.6, 0.4], [0.4, 0.6]]


@pytest.fixture(scope="module")
def crowd():
    return confused_crowd(
        np.array([GOOD] * 4 + [POOR] * 2), 400, 5, prior=[0.7, 0.3], random_state=0
    )


def test_draws_surround_what_they_were_drawn_from(crowd):
    votes = crowd.annotations
    drawn = draw_crowds(votes, np.eye(2)[crowd.truth] * 0.98 + 0.01, confusion=True)
    assert_allclose(drawn.confusion.mean(axis=0), crowd.confusion, atol=0.12)
    assert_allclose(drawn.shares.mean(axis=0), [0.7, 0.3], atol=0.06)
    assert_allclose(
        drawn.accuracy, np.einsum("swkk,sk->sw", drawn.confusion, drawn.shares), rtol=1e-9
    )
    for name, truth in (("confusion", crowd.confusion), ("shares", [0.7, 0.3])):
        low, high = drawn.interval(name)
        assert np.mean((low <= truth) & (truth <= high)) > 0.8


def test_known_truths_leave_only_the_doubt_of_few_labels(crowd):
    votes, truth = crowd.annotations, crowd.truth
    certain = draw_crowds(votes, np.eye(2)[truth], truth)
    vague = draw_crowds(votes, np.full((400, 2), 0.5))
    n = np.bincount(votes.worker)
    share = certain.accuracy.mean(axis=0)
    assert_allclose(certain.accuracy.std(axis=0), np.sqrt(share * (1 - share) / n), rtol=0.25)
    assert (vague.accuracy.std(axis=0) > certain.accuracy.std(axis=0)).all()


def test_one_seed_gives_one_result(crowd):
    posterior = crowd.annotations.shares()
    first, again, other = (
        draw_crowds(crowd.annotations, posterior, random_state=seed).accuracy for seed in (1, 1, 2)
    )
    assert_array_equal(first, again)
    assert (first != other).any()


def test_truths_follow_their_probabilities():
    posterior = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    truths = draw_truths(posterior, np.random.default_rng(0))
    assert_array_equal(truths.sum(axis=1), 1.0)
    assert_allclose(truths.mean(axis=0), [0.2, 0.5, 0.3], atol=0.015)


def test_the_prior_is_as_accurate_as_the_crowd(crowd):
    prior = matrix_prior(crowd.annotations, np.eye(2)[crowd.truth])
    right = np.mean(crowd.truth[crowd.annotations.task] == crowd.annotations.label)
    assert_allclose(prior.sum(), 6.0)
    assert_allclose(np.diag(prior), 3.0 * right)
