"""Iterative weighted majority vote against plain loops, and where others fail."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowdwise.aggregate import IWMV, MajorityVote, Wawa


def slow_fit(annotations, n_rounds, slow_vote, gold=None):
    """Vote, weigh by K * agreement - 1, vote again."""
    weights = np.ones(annotations.n_workers)
    for _ in range(n_rounds):
        agreed, given = slow_vote(annotations, weights, gold)
        weights = annotations.n_classes * agreed / given - 1
    return weights, agreed / given


@pytest.mark.parametrize("n_rounds", [1, 3])
def test_equals_the_plain_loops(voters, slow_vote, slow_shares, n_rounds):
    model = IWMV(max_iter=n_rounds).fit(voters.annotations)
    weights, agreement = slow_fit(voters.annotations, n_rounds, slow_vote)
    assert_allclose(model.weights_, weights)
    assert_allclose(model.skills_, agreement)
    assert_allclose(model.posterior_, slow_shares(voters.annotations, weights))


def test_equals_the_plain_loops_with_weights_and_gold(weighted_voters, voters, slow_vote):
    gold = np.where(np.arange(80) < 30, voters.truth[:80], -1)
    model = IWMV(max_iter=2).fit(weighted_voters, gold=gold)
    weights, _ = slow_fit(weighted_voters, 2, slow_vote, gold)
    assert_allclose(model.weights_, weights)


def test_settles(voters):
    model = IWMV().fit(voters.annotations)
    assert 1 < model.n_iter_ < 20
    assert model.weights_[6] < 0 < model.weights_[:4].min()  # the liar; the careful
    assert_allclose(IWMV(max_iter=200).fit(voters.annotations).weights_, model.weights_)


def test_is_right_more_often_than_the_plain_votes(voters):
    ours, wawa, majority = (
        np.mean(m.fit_predict(voters.annotations) == voters.truth)
        for m in (IWMV(), Wawa(), MajorityVote())
    )
    assert ours > max(wawa, majority + 0.05)


def test_a_worker_at_chance_counts_for_nothing_and_a_liar_against():
    # 0 and 1 agree on all, 2 on half, 3 on none; the last task has only the liar.
    labels = [[0, 0, 0, 1], [1, 1, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0], [-1, -1, -1, 0]]
    gold = [0, 1, 0, 1, -1]
    model = IWMV(max_iter=1).fit(labels, gold=gold)
    assert_allclose(model.weights_, [1.0, 1.0, 0.0, -0.6])  # the last agrees with its own vote
    assert model.labels_[4] == 1


@pytest.mark.parametrize("name", ["rte", "mgc", "spc", "product"])
def test_beats_majority_vote_on_real_crowds(real_accuracy, name):
    assert real_accuracy(IWMV(), name) > real_accuracy(MajorityVote(), name) + 0.01
