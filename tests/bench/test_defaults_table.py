"""The table of defaults: its data, its baselines and its rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from crowdbench.baselines import VotesThenLR
from crowdbench.sets import LearningSet
from crowdbench.tables import _defaults
from crowdbench.tables.defaults import TABLE, EmbeddedLR, measure
from crowdbench.tables.embedder_choice import compare
from crowdbench.tables.small_sets import draw, simulated
from crowdwise import embed, learn
from crowdwise.embed import RLL, Center
from crowdwise.learn import Training
from crowdwise.simulate import label_by_crowd, one_coin_confusion


@pytest.fixture(scope="module")
def easy():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    X = rng.normal(size=(300, 5)) + 2.0 * truth[:, None]
    votes = label_by_crowd(truth[:200], one_coin_confusion([0.9, 0.8, 0.7], 2), 2, random_state=0)
    series = pd.Series(truth[:200], index=votes.tasks)
    return LearningSet("easy", X[:200], votes, series, X[200:], truth[200:])


@pytest.mark.parametrize("targets", ["majority", "shares", "ibcc"])
def test_baselines_learn_and_choose_a_penalty(easy, targets):
    model = VotesThenLR(targets)
    found = measure(model, easy, 0)
    assert found["accuracy"] > 0.9
    assert found["balanced accuracy"] > 0.9
    assert found["log loss"] < 0.5
    assert model.inverse_penalty_ < 10


def test_an_embedder_has_a_regression_behind_it(easy):
    model = EmbeddedLR(Center(training=Training(epochs=3), random_state=0))
    assert measure(model, easy, 0)["accuracy"] > 0.9


def test_vectors_are_compared_with_features_by_held_out_labels(easy):
    model = EmbeddedLR(RLL(groups_per_epoch=200, random_state=0))
    found = compare(model, easy, 0)
    tried = model.embedder_.search_
    best = max(
        e
        for c, e in zip(tried.candidates, tried.held_out, strict=True)
        if c["output"] != "features"
    )
    assert found["held-out gain"] == pytest.approx(best - tried.held_out[0])
    assert tried.candidates[0] == {"output": "features"}
    assert found["accuracy"] > 0.9


def test_every_method_is_there_with_its_defaults():
    assert {*learn.LEARNERS, *(f"{name} + LR" for name in embed.EMBEDDERS)} <= set(TABLE.rows)
    for name in learn.LEARNERS:
        assert str(TABLE.rows[name].make("hotel")) == str(getattr(learn, name)())
    assert len(TABLE.columns) == 10 * 3 + 3 * 3 * 2


def test_labels_of_test_tasks_are_not_learned_from(easy):
    cut = _defaults.cut(easy, seed=1)
    assert len(cut.y_test) == 80
    assert len(cut.X) == cut.annotations.n_tasks == 120
    assert not set(cut.truth.index) & (set(easy.truth.index) - set(cut.annotations.tasks))
    rows = {tuple(row) for row in cut.X}
    assert not rows & {tuple(row) for row in cut.X_test}


def test_simulated_classes_are_as_rare_as_the_column_says(monkeypatch):
    names = np.repeat(list("abc"), 2000)
    X = np.arange(6000, dtype=np.float32)[:, None]
    monkeypatch.setattr(_defaults, "described", lambda name: (X, names))
    data = _defaults.simulated("usps", 10, 2, 0)
    both = np.concatenate([data.truth.to_numpy(), data.y_test])
    sizes = np.sort(np.bincount(both))
    assert sizes[2] / sizes[0] == pytest.approx(10, rel=0.2)
    assert (data.annotations.redundancy == 2).all()
    right = data.truth.to_numpy()[data.annotations.task] == data.annotations.label
    assert 0.55 < right.mean() < 0.75
    assert not set(data.X[:, 0]) & set(data.X_test[:, 0])


def test_small_sets_are_drawn_anew_and_tested_on_the_rest():
    iris = 12  # of the sets by turns
    first, again, other = draw(30, iris), draw(30, iris), draw(30, iris + 16)
    assert len(first.X) == first.annotations.n_tasks == 30
    assert len(first.y_test) == 120
    assert_array_equal(first.annotations.label, again.annotations.label)
    assert_array_equal(first.X, again.X)
    assert len({tuple(row) for row in first.X} ^ {tuple(row) for row in other.X}) > 10
    assert (first.truth.to_numpy() == first.annotations.shares().argmax(axis=1)).mean() > 0.3


def test_simulated_workers_are_better_than_chance():
    truth = np.repeat(np.arange(4), 500)
    for seed in range(5):
        votes = simulated(truth, 4, np.random.RandomState(seed))
        right = pd.Series(votes.label == truth[votes.task]).groupby(votes.worker).mean()
        assert right.mean() > 0.3
