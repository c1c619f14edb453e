"""What known truths can show of labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import hypergeom

from crowdwise.plan import Planner
from crowdwise.plan.promise import MISSED, Tally, find_shown, rules_out, truths_needed
from crowdwise.simulate import OneCoinWorker, replay, simulate_crowd

CASES = [(80, 60, 0.8), (200, 80, 0.9), (300, 150, 0.95)]


@pytest.mark.parametrize(("n_tasks", "n_gold", "target"), CASES)
def test_too_much_is_rarely_promised(n_tasks, n_gold, target):
    """However many labels are wrong, over all draws of the tasks whose truth is known."""
    others = n_tasks - n_gold
    allowed, seen = int((1 - target) * others + 1e-9), np.arange(n_gold + 1)
    said = np.array([rules_out(n_tasks, n_gold, wrong, allowed) for wrong in seen])
    assert said[0]
    assert not said[-1]
    missed = [
        hypergeom.pmf(seen, n_tasks, wrong, n_gold)[said & (wrong - seen > allowed)].sum()
        for wrong in range(n_tasks + 1)
    ]
    assert MISSED / 5 < max(missed) <= MISSED


@pytest.mark.parametrize("wrong", [0, 2])
def test_the_lower_end_is_the_highest_that_is_shown(wrong):
    low, others = Tally(200, 120, wrong).low(), 80
    shown = [n for n in range(others + 1) if rules_out(200, 120, wrong, n)]
    assert_allclose(low, 1 - shown[0] / others)
    assert shown == list(range(shown[0], others + 1))
    assert Tally(50, 50, 10).low() == 1.0  # nothing is left to promise


def test_the_tasks_that_are_shown_end_before_the_first_failure():
    rng = np.random.default_rng(0)
    right = np.where(rng.random(1_000) < 0.3, 1.0, np.nan)
    right[600:] = np.where(np.isnan(right[600:]), np.nan, rng.random(400) < 0.5)
    whole = np.ones(1_000, dtype=bool)
    last, tally = find_shown(right, whole, 0.9)
    assert 600 < last < 800
    assert (tally.n_tasks, tally.n_gold) == (last, (~np.isnan(right[:last])).sum())
    assert tally.low() >= 0.9
    whole[500:] = False  # ties stay together
    whole[-1] = True
    assert find_shown(right, whole, 0.9)[0] == 500
    right[:40] = np.where(np.isnan(right[:40]), np.nan, 0.0)  # the surest ones are wrong
    assert find_shown(right, np.ones(1_000, dtype=bool), 0.9)[0] == 0


def test_truths_that_are_needed():
    assert [truths_needed(target) for target in (0.9, 0.95, 0.99)] == [44, 90, 459]
    for target, least in ((0.9, 44), (0.95, 90)):
        large = 1_000_000
        allowed = int((1 - target) * (large - least))
        assert rules_out(large, least, 0, allowed)
        assert not rules_out(large, least - 1, 0, allowed)


@pytest.mark.parametrize(("target", "n_tasks"), [(0.9, 108), (0.95, 300), (0.99, 1_000)])
def test_as_many_truths_as_needed_show_the_target_and_fewer_do_not(target, n_tasks):
    needed = int(truths_needed(target, n_tasks))
    assert needed > truths_needed(target)

    def shown(n_gold):
        right = np.full(n_tasks, np.nan)
        right[:n_gold] = 1.0
        return find_shown(right, np.ones(n_tasks, dtype=bool), target)[0] == n_tasks

    assert shown(needed)
    assert not any(shown(n) for n in range(int(truths_needed(target)), needed))


def test_many_tasks_need_no_more_truths_than_infinitely_many():
    assert [truths_needed(0.99, n) for n in (1_000_000, 5_000, 1_000)] == [459, 475, 683]
    assert truths_needed(0.99, 333) == truths_needed(1.0) == np.inf


def test_99_percent_are_promised_where_the_crowd_and_the_truths_suffice():
    workers = 20 * [OneCoinWorker((0.93, 0.99))]
    crowd = simulate_crowd(1_500, n_classes=2, per_task=6, workers=workers, random_state=0)
    planner = Planner(target=0.99)
    course = replay(crowd.annotations, crowd.truth, planner, batch=1, n_gold=560, stop=True)
    end = course.iloc[-1]
    assert end["done"] == 1_500
    assert end["labels"] < crowd.annotations.n_annotations
    assert 0.99 <= end["promised"] <= end["done_accuracy"]
    few = dict(enumerate(crowd.truth[:500]))  # all of them right, but too few
    promise = planner.look(crowd.annotations, few).done()
    assert not promise.checked
    assert np.isnan(promise.low)
