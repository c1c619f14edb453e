"""How crowds are played back for the tables of what planners save."""

import pandas as pd
from numpy.testing import assert_allclose

from crowdbench.tables.routing import (
    Frugal,
    Played,
    Way,
    compare,
    follow,
    labels_to_reach,
)
from crowdwise.plan import Planner
from crowdwise.simulate import OneCoinWorker, replay, simulate_crowd


def draw():
    workers = 8 * [OneCoinWorker((0.55, 0.95))]
    made = simulate_crowd(60, n_classes=2, per_task=6, workers=workers, random_state=0)
    truth = pd.Series(made.truth, index=made.annotations.tasks)
    return made.annotations, truth


def test_frugal_plans_are_those_of_the_default(monkeypatch):
    monkeypatch.setattr("crowdbench.tables.routing.DEPENDENCE", None)  # to be measured
    votes, truth = draw()
    usual, frugal = (
        replay(votes, truth, planner, batch=0.5, random_state=0)
        for planner in (Planner(target=1.0), Frugal(target=1.0))
    )
    pd.testing.assert_frame_equal(usual[["labels", "accuracy"]], frugal[["labels", "accuracy"]])


def test_answers_are_inferred_now_and_then(monkeypatch):
    votes, truth = draw()
    monkeypatch.setattr("crowdbench.tables.routing.N_ORDERS", 1)
    whole = follow(Way(), Played("drawn", votes, truth), 0)
    monkeypatch.setattr("crowdbench.tables.routing.N_LOOKS", 4)
    part = follow(Way(), Played("drawn", votes, truth), 0)
    assert len(part) < len(whole)
    pd.testing.assert_series_equal(part, whole[part.index])


def test_labels_are_counted_up_to_the_same_accuracy():
    alike = pd.Series([0.5, 0.7, 0.8, 0.9], index=[100.0, 200.0, 300.0, 400.0])
    better = pd.Series([0.5, 0.8, 0.9, 0.9], index=[100.0, 200.0, 300.0, 400.0])
    assert labels_to_reach(alike, 0.75) == 250.0
    found = compare(better, alike)
    assert found["accuracy at 100%"] == 0.9
    assert 0.7 < found["labels"] < 0.8
    assert_allclose(found["gain"], (0.09 + 0.1 + 0.09) / 3)
    assert compare(alike, alike)["labels"] == 1.0
