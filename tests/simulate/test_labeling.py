"""Who labels what: the right number of different workers, as often as their activity says."""

from itertools import permutations

import numpy as np
import pytest

from crowdwise.errors import ParameterError
from crowdwise.simulate import labeling as module
from crowdwise.simulate.labeling import assign, draw_power_law, measure_progress


def inclusion(activity, per_task):
    """P(a worker is among the drawn), by going through all orders of drawing."""
    share = np.zeros(len(activity))
    for drawn in permutations(range(len(activity)), per_task):
        chance, left = 1.0, sum(activity)
        for worker in drawn:
            chance *= activity[worker] / left
            left -= activity[worker]
        share[list(drawn)] += chance
    return share


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "redrawn"])
@pytest.mark.parametrize("activity", [None, [8, 1, 1, 2, 3, 1, 0.5, 4, 1]], ids=["even", "uneven"])
def test_workers_are_drawn_by_activity_and_never_twice(dense, activity, monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 10**9 if dense else 0)
    task, worker = assign(8000, 9, 2, activity, np.random.RandomState(0))
    assert task.tolist() == np.repeat(np.arange(8000), 2).tolist()
    assert (worker.reshape(-1, 2)[:, 0] != worker.reshape(-1, 2)[:, 1]).all()
    expected = inclusion(activity or [1] * 9, 2)
    assert np.bincount(worker) / 8000 == pytest.approx(expected, abs=0.018)


def test_redrawing_leaves_no_repeats_in_long_rows(monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 0)
    weight = (1.0 + np.arange(24)) ** -1.5
    _, worker = assign(500, 24, 6, weight, np.random.RandomState(0))
    assert all(len(set(row)) == 6 for row in worker.reshape(-1, 6).tolist())


def test_tasks_may_get_different_numbers():
    size = np.array([1, 3, 2, 9])
    task, _ = assign(4, 5, size, None, np.random.RandomState(0))
    assert np.bincount(task).tolist() == [1, 3, 2, 5]


def test_who_is_not_active_labels_nothing():
    _, worker = assign(50, 4, 2, [1, 0, 1, 1], np.random.RandomState(0))
    assert set(worker.tolist()) == {0, 2, 3}


def test_progress_goes_by_time_within_a_worker():
    worker = np.array([0, 1, 0, 1, 0, 2])
    time = np.array([9, 2, 1, 0, 5, 7])
    assert measure_progress(worker, time).tolist() == [1, 1, 0, 0, 0.5, 0]


def test_power_law_is_shuffled_ranks():
    found = draw_power_law(4, 2.0, np.random.RandomState(0))
    assert sorted(found) == pytest.approx([1 / 16, 1 / 9, 1 / 4, 1])


@pytest.mark.parametrize(
    ("per_task", "activity", "message"),
    [
        (0, None, "1 or more"),
        (2.5, None, "whole number"),
        ([1, 2], None, "3 of them"),
        (2, [1, 1], "5 finite numbers"),
        (2, [1, 1, 1, 1, -1], "0 or more"),
        (2, [1, 1, 1, 1, np.inf], "finite"),
        (3, [1, 1, 0, 0, 0], "2 workers are active, and a task needs 3"),
    ],
)
def test_what_makes_no_sense_is_refused(per_task, activity, message):
    with pytest.raises(ParameterError, match=message):
        assign(3, 5, per_task, activity, np.random.RandomState(0))


def test_activities_too_uneven_end_in_an_error(monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 0)
    with pytest.raises(ParameterError, match="too uneven"):
        assign(3, 9, 2, [1] + [1e-12] * 8, np.random.RandomState(0))
