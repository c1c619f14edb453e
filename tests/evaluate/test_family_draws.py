import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.aggregate.families import Families
from crowdwise.annotations import Annotations
from crowdwise.evaluate import uncertainty
from crowdwise.evaluate.draws import ALONE, draw_chain, draw_crowds
from crowdwise.evaluate.family_draws import _State, draw_family_chain
from crowdwise.inference import MemoryEngine

RIGHT = np.linspace(0.6, 0.9, 12)
FIVE, SEVEN = (
    Families(np.where(who, 0, -1), np.where(who, 0.7, 0.0), 0.0)
    for who in (np.arange(12) < 5, np.arange(12) >= 5)
)


def crowd(n_copies, seed=0, n_tasks=400):
    """Twelve workers of every task; the first ones give the label of the first, often."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_tasks)
    label = np.where(rng.random((n_tasks, 12)) < RIGHT, truth[:, None], 1 - truth[:, None])
    copies = (np.arange(12) < n_copies) & (rng.random((n_tasks, 12)) < 0.7)
    label = np.where(copies, label[:, :1], label)
    task, worker = np.indices(label.shape)
    votes = Annotations.from_codes(task.ravel(), worker.ravel(), label.ravel())
    return votes, truth, (label == truth[:, None]).mean(axis=0)


def accuracies(draws):
    return np.array([np.einsum("wkk,k->w", matrices, shares) for _, matrices, shares in draws])


def draw(votes, families, n_draws, gold=None, seed=0):
    rng = np.random.default_rng(seed)
    return list(draw_family_chain(votes, gold, votes.shares(), 0.75, families, n_draws, rng))


@pytest.mark.parametrize("families", [FIVE, SEVEN])
def test_a_family_is_not_mistaken_for_skill(families):
    """A chain of independent workers trusts the five who copy; this one does not.

    Nor does it rely on the members that were found.
    """
    votes, _, right = crowd(5)
    found = accuracies(draw(votes, families, 80)).mean(axis=0)
    alone = draw_chain(MemoryEngine(votes), votes.shares(), 0.75, np.random.default_rng(0))
    assert (accuracies(alone).mean(axis=0) - right)[:5].mean() > 0.02
    assert abs((found - right)[:5].mean()) < 0.01


def test_intervals_hold_where_half_of_the_workers_copy():
    votes, _, right = crowd(6, seed=4)
    bounds = uncertainty(votes).workers
    inside = (bounds["low"] <= right) & (right <= bounds["high"])
    assert inside.mean() > 0.9


def test_most_draws_have_families_where_labels_show_them(monkeypatch):
    taken = []

    def record(*arguments):
        taken.append(arguments[4:6])
        return draw_family_chain(*arguments)

    monkeypatch.setattr("crowdwise.evaluate.draws.draw_family_chain", record)
    alone = draw_crowds((votes := crowd(0)[0]), votes.shares())
    assert not taken
    found = draw_crowds((votes := crowd(5)[0]), votes.shares())
    ((families, n_draws),) = taken
    assert_array_equal(families.members()[0], np.arange(5))
    assert_allclose(n_draws / len(found.right), 1 - 1 / ALONE, atol=0.02)
    assert abs(len(found.right) - len(alone.right)) < ALONE


def test_known_truths_are_never_drawn_otherwise():
    votes, truth, _ = crowd(5, n_tasks=60)
    gold = np.where(np.arange(60) < 20, 1 - truth, -1)
    for truths, matrices, shares in draw(votes, FIVE, 9, gold):
        assert_array_equal(truths[:20].argmax(axis=1), gold[:20])
        assert_allclose(matrices.sum(axis=2), 1.0)
        assert_allclose(shares.sum(), 1.0)


@pytest.mark.parametrize("n_draws", [0, 1, 10, 900])
def test_as_many_draws_as_asked_for_from_one_seed(n_draws):
    votes, _, _ = crowd(3, n_tasks=20)
    first, again = (accuracies(draw(votes, FIVE, n_draws)) for _ in range(2))
    assert len(first) == n_draws
    assert_array_equal(first, again)


def test_truths_and_answers_follow_their_joint_probability():
    """Against a loop over both, for one task of five workers, in two families and in none."""
    label, number = [0, 0, 1, 1, 0], np.array([0, 0, -1, 1, 1])
    votes = Annotations.from_codes(np.zeros(5, int), np.arange(5), label)
    rng = np.random.default_rng(0)
    state = _State(votes, None, np.full((1, 2), 0.5), 0.7, number, 2, rng)
    state.strength = np.array([0.6, 0.3, 0.0])
    chance = np.zeros((2, 2, 2))
    for k, a, b in np.ndindex(2, 2, 2):
        p = state.shares[k] * state.answers[0, k, a] * state.answers[1, k, b]
        for w in range(5):
            own, f = state.matrices[w, k, label[w]], number[w]
            copied = state.strength[f] * (label[w] == (a, b)[f]) if f >= 0 else 0.0
            p *= copied + (1 - state.strength[f]) * own
        chance[k, a, b] = p
    given = state.matrices[votes.worker, :, votes.label]
    seen = np.zeros((2, 2, 2))
    for _ in range(4000):
        truth, (first, second) = state._draw_truths(given)
        seen[truth[0], first[0], second[0]] += 1 / 4000
    assert_allclose(seen, chance / chance.sum(), atol=0.03)
    assert_allclose(state.log_likelihoods, np.log(chance.sum()))


def test_members_follow_their_probability():
    votes = Annotations.from_codes(np.arange(3), np.zeros(3, int), [0, 1, 0])
    rng = np.random.default_rng(0)
    state = _State(votes, None, np.full((3, 2), 0.5), 0.7, np.array([-1]), 2, rng)
    state.strength, state.parts = np.array([0.6, 0.3, 0.0]), np.array([0.2, 0.5, 0.3])
    own, fits = np.array([0.7, 0.2, 0.6]), np.array([[True, True, False], [True, False, True]])
    chance = [
        part * np.prod(s * fit + (1 - s) * own)
        for part, s, fit in zip(state.parts, state.strength, [*fits, np.zeros(3)], strict=True)
    ]
    seen = np.zeros(3)
    for _ in range(4000):
        state._draw_members(own, fits)
        seen[state.number[0]] += 1 / 4000
    assert_allclose(seen, chance / np.sum(chance), atol=0.03)
