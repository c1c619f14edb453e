"""Wawa against plain loops, on crowds drawn from a model, and on real ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.aggregate import MajorityVote, Wawa


def slow_fit(annotations, n_rounds, slow_vote, gold=None):
    """Vote, weigh by agreement, vote again."""
    weights = np.ones(annotations.n_workers)
    for _ in range(n_rounds):
        agreed, given = slow_vote(annotations, weights, gold)
        weights = agreed / given
    return weights


@pytest.mark.parametrize("n_rounds", [1, 2])
def test_equals_the_plain_loops(voters, slow_vote, slow_shares, n_rounds):
    model = Wawa(max_iter=n_rounds).fit(voters.annotations)
    weights = slow_fit(voters.annotations, n_rounds, slow_vote)
    assert_allclose(model.weights_, weights)
    assert_allclose(model.skills_, weights)
    assert_allclose(model.posterior_, slow_shares(voters.annotations, weights))


def test_equals_the_plain_loops_with_weights_and_gold(weighted_voters, voters, slow_vote):
    gold = np.where(np.arange(80) < 30, voters.truth[:80], -1)
    model = Wawa().fit(weighted_voters, gold=gold)
    weights = slow_fit(weighted_voters, 1, slow_vote, gold)
    assert_allclose(model.weights_, weights)
    assert_array_equal(model.labels_[:30], voters.truth[:30])


def test_more_rounds_end_once_the_weights_have_settled(voters):
    model = Wawa(max_iter=100).fit(voters.annotations)
    assert 1 < model.n_iter_ < 20
    again = Wawa(max_iter=model.n_iter_ + 1).fit(voters.annotations)
    assert_allclose(again.weights_, model.weights_)


def test_finds_who_is_right(voters):
    skills = Wawa().fit(voters.annotations).skills_
    assert skills[:4].min() > skills[4:6].max() > skills[4:6].min() > skills[6]


def test_is_right_more_often_than_majority_vote(voters):
    ours, theirs = (
        np.mean(m.fit_predict(voters.annotations) == voters.truth) for m in (Wawa(), MajorityVote())
    )
    assert ours > theirs + 0.02


def test_gold_labels_teach_about_workers(voters):
    gold = {task: voters.truth[task] for task in range(150)}
    right = np.einsum("wkk,k->w", voters.confusion, [0.5, 0.3, 0.2])
    error = [np.abs(Wawa().fit(voters.annotations, g).skills_ - right).mean() for g in (gold, None)]
    assert error[0] < error[1]


def test_refuses_no_rounds():
    with pytest.raises(ValueError, match="'max_iter' parameter of Wawa"):
        Wawa(max_iter=0).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("bluebirds", 0.7593), ("wordsim", 0.8667), ("rte", 0.9213), ("mgc", 0.7971)],
)
def test_reaches_the_reference_accuracy_on_real_crowds(real_accuracy, name, accuracy):
    assert real_accuracy(Wawa(), name) == pytest.approx(accuracy, abs=0.005)
