import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.annotations import Annotations
from crowdwise.evaluate.draws import CrowdDraws, draw_crowds, sample_tasks
from crowdwise.evaluate.worker_draws import draw_truths, draw_workers
from crowdwise.inference import MemoryEngine
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
    assert_allclose(drawn.shares.mean(axis=0), [0.7, 0.3], atol=0.09)
    expected = np.einsum("swkk,sk->sw", drawn.confusion, drawn.shares)
    assert_allclose(drawn.accuracy, expected, rtol=1e-6)
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


def test_workers_without_labels_are_like_the_crowd():
    """As accurate, with errors that fall alike; whoever erred once may err otherwise, too."""
    votes = Annotations.from_codes(
        np.arange(40), np.zeros(40, int), np.arange(40) % 4, workers=[0, 1], classes=range(4)
    )
    truth = np.where(np.arange(40) % 8 == 0, 1, np.arange(40) % 4)  # five times a 0 for a 1
    rng, engine = np.random.default_rng(0), MemoryEngine(votes)
    drawn = [draw_workers(engine, np.eye(4)[truth], 0.8, rng)[0] for _ in range(2000)]
    busy, idle = np.mean(drawn, axis=0)
    assert_allclose(np.diag(idle), 0.8, atol=0.03)
    assert_allclose(idle.sum(axis=1), 1.0)
    assert_allclose(idle[1, [0, 2, 3]], 0.2 * np.array([6, 1, 1]) / 8, atol=0.02)
    assert_allclose(busy[1, 1], (10 + 1.5 * 0.8) / (15 + 1.5), atol=0.01)
    assert np.quantile([one[0, 1, 2] for one in drawn], 0.95) > 0.03


def test_bounds_hold_a_new_draw_as_often_as_they_say():
    rng = np.random.default_rng(0)
    some = rng.random((39, 4000))  # (draw, quantity)
    drawn = CrowdDraws(some, some, some[:, 0], None)
    low, high = drawn.interval("accuracy", 0.9)
    assert_allclose(np.mean((low <= (new := rng.random(4000))) & (new <= high)), 0.9, atol=0.01)


def test_right_is_the_share_of_labels_that_are_the_drawn_truths(crowd):
    votes, posterior = crowd.annotations, np.eye(2)[crowd.truth]
    assert_array_equal(draw_crowds(votes, posterior, crowd.truth).right, 1.0)
    plain = draw_crowds(votes, posterior).right
    assert 0.85 < np.median(plain) < 1.0
    unlabeled = Annotations.from_codes(
        votes.task, votes.worker, votes.label, tasks=np.arange(500), classes=votes.classes
    )
    more = draw_crowds(unlabeled, np.vstack([posterior, np.full((100, 2), 0.5)])).right
    assert_allclose(np.median(more), np.median(plain), atol=0.03)  # only tasks with labels count


def test_a_chain_of_few_annotations_makes_more_steps():
    def correlation(n_tasks):
        few = confused_crowd(np.array([GOOD] * 3), n_tasks, 2, random_state=0).annotations
        chain = draw_crowds(few, few.shares()).accuracy[:160, 0]
        return np.corrcoef(chain[1:], chain[:-1])[0, 1]

    assert correlation(200) < 0.75


def test_tasks_are_sampled_where_there_are_many(crowd):
    votes = crowd.annotations
    assert_array_equal(sample_tasks(votes, 2000, 0), np.arange(400))
    some = sample_tasks(votes, 1000, 0)
    assert len(np.unique(some)) == 200
    assert (np.diff(some) > 0).all()
