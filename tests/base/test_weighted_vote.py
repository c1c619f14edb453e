"""Votes with weights: against loops, and at their edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import Annotations
from crowdwise.base.weighted_vote import agreement_rate, count_agreement, have_settled
from crowdwise.inference import MemoryEngine

WEIGHTS = np.array([2.0, 0.5, 1.0, 0.0, 0.3, -0.2, -1.5])


@pytest.mark.usefixtures("either_loop")
def test_agreement_equals_the_plain_loops(voters, slow_vote):
    for weights in (np.ones(7), WEIGHTS):
        found = count_agreement(MemoryEngine(voters.annotations), weights)
        assert_allclose(found, slow_vote(voters.annotations, weights))


def test_agreement_equals_the_plain_loops_with_weights_and_gold(weighted_voters, slow_vote):
    gold = np.where(np.arange(80) % 3 == 0, np.arange(80) % 2, -1)
    found = count_agreement(MemoryEngine(weighted_voters, gold), WEIGHTS)
    assert_allclose(found, slow_vote(weighted_voters, WEIGHTS, gold))


def test_the_size_of_the_weights_does_not_matter(voters):
    found = count_agreement(MemoryEngine(voters.annotations), WEIGHTS * 1e-12)
    assert_allclose(found, count_agreement(MemoryEngine(voters.annotations), WEIGHTS))


def test_rounding_does_not_break_a_tie():
    votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 0]])
    assert 0.7 + 0.2 != 0.9
    agreed, given = count_agreement(MemoryEngine(votes), np.array([0.7, 0.2, 0.9]))
    assert_allclose(agreed, [1.0, 1.0, 1.0])
    assert_allclose(given, [2.0, 2.0, 2.0])


def test_a_distribution_agrees_in_part():
    soft = [[0.7, 0.3], [0.4, 0.6]]
    votes = Annotations.from_codes([0, 0], [0, 1], [0, 1], soft=soft)
    agreed, given = count_agreement(MemoryEngine(votes), np.ones(2))  # class 0 leads with 1.1
    assert_allclose(agreed, [0.7, 0.4], rtol=1e-6)
    assert_allclose(given, [1.0, 1.0])
    assert_allclose(
        MemoryEngine(votes).signed_shares(np.array([1.0, 3.0])), [[1.9 / 4, 2.1 / 4]], rtol=1e-6
    )


def test_a_worker_without_labels_has_the_crowds_share():
    found = agreement_rate(np.array([3.0, 1.0, 0.0]), np.array([4.0, 4.0, 0.0]))
    assert_allclose(found, [0.75, 0.25, 0.5])


def test_vote_shares_equal_the_plain_loops(voters, weighted_voters, slow_shares):
    for votes in (voters.annotations, weighted_voters):
        for weights in (np.abs(WEIGHTS) + 0.1, WEIGHTS - 0.1):
            assert_allclose(MemoryEngine(votes).signed_shares(weights), slow_shares(votes, weights))


def test_negative_weights_leave_the_winner_of_the_plain_sum(voters):
    votes = voters.annotations
    total = np.zeros((votes.n_tasks, 3))
    np.add.at(total, (votes.task, votes.label), (WEIGHTS - 0.1)[votes.worker])
    found = MemoryEngine(votes).signed_shares(WEIGHTS - 0.1)
    assert_array_equal(found.argmax(axis=1), total.argmax(axis=1))


def test_workers_who_weigh_nothing_count_the_same_among_themselves():
    votes = Annotations.from_matrix([[0, 1, 1, -1], [0, 1, 1, 0], [-1, -1, -1, -1]])
    found = MemoryEngine(votes).signed_shares(np.array([0.0, 0.0, 0.0, 2.0]))
    assert_allclose(found, [[1 / 3, 2 / 3], [1.0, 0.0], [0.5, 0.5]])


def test_weights_have_settled_when_none_moves():
    weights = np.array([1e6, 1.0])
    assert have_settled(weights, weights + np.array([0, 1e-4]))
    assert not have_settled(weights, weights + np.array([0, 1e-2]))
