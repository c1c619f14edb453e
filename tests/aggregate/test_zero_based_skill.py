"""Zero-based skill against plain loops, its learning rate, and real crowds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.aggregate import MajorityVote, ZeroBasedSkill
from crowdwise.base.weighted_vote import count_agreement
from crowdwise.inference import MemoryEngine


def slow_fit(annotations, n_steps, slow_vote, rate=1.0, decay=0.5, every=20, gold=None):
    """Vote, step toward the agreement, vote again."""
    skill = np.full(annotations.n_workers, 1 / annotations.n_classes)
    for step in range(1, n_steps + 1):
        if step % every == 0:
            rate *= decay
        agreed, given = slow_vote(annotations, skill, gold)
        skill = skill + rate * (agreed / given - skill)
    return skill


@pytest.mark.parametrize(
    ("rate", "decay", "every"), [(1.0, 0.5, 20), (0.3, 0.5, 20), (0.8, 0.25, 2)], ids=str
)
def test_equals_the_plain_loops(voters, slow_vote, slow_shares, rate, decay, every):
    params = {"learning_rate": rate, "decay": decay, "decay_every": every}
    model = ZeroBasedSkill(**params, max_iter=5).fit(voters.annotations)
    skill = slow_fit(voters.annotations, 5, slow_vote, rate, decay, every)
    assert_allclose(model.weights_, skill)
    assert_allclose(model.skills_, skill)
    assert_allclose(model.posterior_, slow_shares(voters.annotations, skill))


def test_equals_the_plain_loops_with_weights_and_gold(weighted_voters, voters, slow_vote):
    gold = np.where(np.arange(80) < 30, voters.truth[:80], -1)
    model = ZeroBasedSkill(learning_rate=0.5, max_iter=3).fit(weighted_voters, gold=gold)
    assert_allclose(model.weights_, slow_fit(weighted_voters, 3, slow_vote, 0.5, gold=gold))
    assert_array_equal(model.labels_[:30], voters.truth[:30])


def test_ending_early_changes_nothing(voters, slow_vote):
    model = ZeroBasedSkill().fit(voters.annotations)
    assert model.n_iter_ < 20
    assert_allclose(model.weights_, slow_fit(voters.annotations, 25, slow_vote))


def test_without_learning_it_is_majority_vote(voters):
    model = ZeroBasedSkill(learning_rate=0.0).fit(voters.annotations)
    assert_allclose(model.weights_, 1 / 3)
    assert_allclose(model.posterior_, MajorityVote().fit(voters.annotations).posterior_)


def test_no_step_lowers_what_skills_and_votes_raise_together(voters):
    """A vote, and then a step, both raise sum_w n_w (skill * agreement - skill**2 / 2)."""
    raised = []
    for n_steps in range(1, 12):
        model = ZeroBasedSkill(learning_rate=0.4, max_iter=n_steps).fit(voters.annotations)
        agreed, given = count_agreement(MemoryEngine(voters.annotations), model.weights_)
        raised.append((model.weights_ * agreed - given * model.weights_**2 / 2).sum())
    assert np.diff(raised).min() >= -1e-9


def test_is_right_more_often_than_majority_vote(voters):
    ours, theirs = (
        np.mean(m.fit_predict(voters.annotations) == voters.truth)
        for m in (ZeroBasedSkill(), MajorityVote())
    )
    assert ours > theirs + 0.02


@pytest.mark.parametrize(
    "params",
    [{"learning_rate": 1.5}, {"decay": -0.1}, {"decay_every": 0}, {"max_iter": 0}],
    ids=str,
)
def test_refuses_parameters_that_make_no_sense(params):
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter of ZeroBasedSkill"):
        ZeroBasedSkill(**params).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("bluebirds", 0.7593), ("wordsim", 0.8667), ("rte", 0.9213), ("mgc", 0.8000)],
)
def test_reaches_the_accuracy_of_crowd_kit_on_real_crowds(real_accuracy, name, accuracy):
    assert real_accuracy(ZeroBasedSkill(), name) == pytest.approx(accuracy, abs=0.005)
