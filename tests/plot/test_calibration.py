"""Points are the bins of the reliability table."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from crowdwise.evaluate import reliability_table
from crowdwise.learn import SpeeLFC, Training
from crowdwise.plot import plot_calibration


@pytest.mark.parametrize("bins", ["width", "mass"])
def test_points_intervals_and_shares(bins, model, crowd):
    ax = plot_calibration(model, crowd[1], n_bins=5, bins=bins, confidence=0.9)
    table = reliability_table(model, crowd[1], n_bins=5, bins=bins, confidence=0.9)
    line, _, (ends,) = ax.containers[1]
    assert_allclose(line.get_xydata(), table[["confidence", "accuracy"]])
    low, high = np.array(ends.get_segments())[:, :, 1].T
    assert_allclose(low, table["low"], atol=1e-9)
    assert_allclose(high, table["high"], atol=1e-9)
    bars = ax.containers[0]
    assert_allclose([bar.get_height() for bar in bars], table["n_tasks"] / 200)
    assert_allclose([bar.get_x() for bar in bars], table["from"])
    assert_allclose([bar.get_x() + bar.get_width() for bar in bars], table["to"])
    gap = np.average((table["confidence"] - table["accuracy"]).abs(), weights=table["n_tasks"])
    assert ax.get_title() == f"mean gap {gap:.3f}, 200 tasks"


def test_the_diagonal_is_there(model, crowd):
    diagonal = plot_calibration(model, crowd[1]).lines[0]
    assert_allclose(diagonal.get_xydata(), [[0, 0], [1, 1]])


def test_a_learner_is_judged_by_its_posterior(crowd):
    votes, truth = crowd
    X = np.random.default_rng(0).normal(size=(votes.n_tasks, 2))
    model = SpeeLFC(training=Training(epochs=2, device="cpu"), random_state=0).fit(X, votes)
    frame = pd.DataFrame(model.posterior_, index=votes.tasks, columns=votes.classes)
    found, expected = (plot_calibration(x, truth).containers[1][0] for x in (model, frame))
    assert_allclose(found.get_xydata(), expected.get_xydata())


def test_certain_and_right_is_the_corner(crowd):
    _, truth = crowd
    certain = pd.get_dummies(pd.Series(truth), dtype=float)
    ax = plot_calibration(certain, truth)
    assert_allclose(ax.containers[1][0].get_xydata(), [[1, 1]])


def test_it_draws_on_the_given_axes(model, crowd):
    ax = Figure().add_subplot()
    assert plot_calibration(model, crowd[1], ax=ax) is ax
