import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.evaluate.draws import draw_crowds
from crowdwise.evaluate.misled import Misled, find_shares, say
from crowdwise.simulate import confused_crowd

GOOD = [[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.0, 0.2, 0.8]]
SHARES = np.array([0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def crowd():
    return confused_crowd(np.array([GOOD] * 8), 900, 4, prior=SHARES, random_state=0)


def tables(n_workers, n_classes):
    return np.log(np.full(n_classes, 1 / n_classes)), np.log(np.full((n_workers, 3, 3), 1 / 3))


def test_what_a_crowd_says_follows_from_its_errors():
    """Against the table P(says | truth), written out."""
    to, rate = np.array([0.2, 0.5, 0.3]), 0.15
    leaves = rate / (1 - to)
    table = np.array(
        [[1 - rate if k == c else leaves[k] * to[c] for c in range(3)] for k in range(3)]
    )
    assert_allclose(table.sum(axis=1), 1.0)
    assert_allclose(say(SHARES, rate, to, leaves), SHARES @ table)
    assert_allclose(find_shares(SHARES @ table, rate, to, leaves), SHARES, atol=0.01)


def test_truths_differ_on_so_many_tasks_and_known_ones_never(crowd):
    misled = Misled.of(crowd.annotations, None)
    gold = np.where(np.arange(900) < 300, crowd.truth, -1)
    rng, answers = np.random.default_rng(0), crowd.truth
    drawn = [misled.draw_truths(answers, 0.2, gold, rng) for _ in range(60)]
    other = np.array(drawn) != answers
    assert not other[:, :300].any()
    assert_allclose(other[:, 300:].mean(), 0.2, atol=0.02)
    assert_array_equal(misled.draw_truths(answers, 0.0, None, rng), answers)


def test_a_rare_answer_is_more_often_wrong_and_shares_become_more_even():
    votes = confused_crowd(np.array([np.eye(2)] * 3), 2000, 2, prior=[0.8, 0.2], random_state=0)
    misled, rng = Misled.of(votes.annotations, None), np.random.default_rng(0)
    drawn = np.array([misled.draw_truths(votes.truth, 0.1, None, rng) for _ in range(60)])
    wrong = (drawn != votes.truth).mean(axis=0)
    assert wrong[votes.truth == 1].mean() > 2 * wrong[votes.truth == 0].mean()
    assert drawn.mean() < votes.truth.mean()  # of those who say the rare class some err


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_truths_differ_on_so_many_tasks_even_if_one_class_is_rarely_said(rate):
    """A twentieth of the answers are of one class, fewer than wrong ones: the others err too."""
    votes = confused_crowd(np.array([np.eye(2)] * 3), 2000, 2, prior=[0.95, 0.05], random_state=0)
    misled, rng = Misled.of(votes.annotations, None), np.random.default_rng(0)
    drawn = [misled.draw_truths(votes.truth, rate, None, rng) for _ in range(40)]
    assert_allclose((np.array(drawn) != votes.truth).mean(), rate, atol=0.01)


def test_one_crowd_in_five_is_misled_unless_known_truths_tell(crowd):
    levels = (np.arange(400) + 0.5) / 400
    blind = Misled.of(crowd.annotations, None)
    rates = [blind.rate(level, *tables(8, 3)) for level in levels]
    assert_allclose(np.mean(np.array(rates) > 0), 0.2, atol=0.01)
    assert max(rates) <= 0.45
    log_shares, table = np.log(SHARES), np.log(np.maximum([GOOD] * 8, 1e-3))
    right = Misled.of(crowd.annotations, np.where(np.arange(900) < 100, crowd.truth, -1))
    assert np.mean([right.rate(level, log_shares, table) for level in levels]) < 0.002
    elsewhere = (crowd.truth + (np.arange(900) % 10 == 0)) % 3  # all err on every tenth task
    wrong = Misled.of(crowd.annotations, np.where(np.arange(900) < 300, elsewhere, -1))
    rates = [wrong.rate(level, log_shares, table) for level in levels]
    assert 0.05 < np.quantile(rates, 0.05) < np.quantile(rates, 0.95) < 0.2


def test_intervals_reach_down_to_a_crowd_that_errs_together(crowd):
    posterior = np.eye(3)[crowd.truth] * 0.97 + 0.01
    drawn = draw_crowds(crowd.annotations, posterior)
    low, high = drawn.interval("right")
    assert low < 0.87
    assert high > 0.95
    known = draw_crowds(crowd.annotations, posterior, crowd.truth)
    assert_array_equal(known.right, 1.0)
