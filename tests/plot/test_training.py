"""Curves are the losses of every restart, the one that was kept above the others."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from crowdwise.aggregate import MajorityVote
from crowdwise.errors import ParameterError
from crowdwise.learn import SpeeLFC
from crowdwise.nets.loop import History
from crowdwise.plot import plot_training

LOSS = [[3.0, 4.0, 5.0], [2.0, 3.0, 4.0], [1.0, 2.0, 2.5], [0.5, 2.0, 2.0]]
HELD = [[3.5, 4.5, 5.5], [2.5, 3.5, 4.5], [2.0, 2.4, 2.2], [2.1, 2.4, 2.1]]


def curves(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def test_each_restart_is_a_line_and_the_kept_one_is_thick():
    ax = plot_training(History(LOSS, HELD, best=1))
    assert len(ax.lines) == 6
    named = curves(ax)
    assert named.keys() == {"training labels", "held-out labels"}
    assert_allclose(named["training labels"].get_xdata(), [1, 2, 3, 4])
    assert_allclose(named["training labels"].get_ydata(), [4, 3, 2, 2])
    assert_allclose(named["held-out labels"].get_ydata(), [4.5, 3.5, 2.4, 2.4])
    assert named["held-out labels"].get_linestyle() == "--"
    others = [line for line in ax.lines if line not in named.values()]
    assert all(line.get_linewidth() < named["training labels"].get_linewidth() for line in others)
    drawn = sorted(tuple(line.get_ydata()) for line in others)
    expected = [np.array(table)[:, k] for table in (LOSS, HELD) for k in (0, 2)]
    assert drawn == sorted(map(tuple, expected))


def test_without_held_out_labels_one_curve():
    model = SpeeLFC(random_state=0)
    model.history_ = History([[2.0], [1.0]], [], 0)
    ax = plot_training(model)
    assert list(curves(ax)) == ["training labels"]
    assert ax.get_xlabel() == "epoch"


def test_an_objective_will_do(model):
    ax = plot_training(model)
    assert_allclose(ax.lines[0].get_ydata(), model.objective_)
    assert_allclose(ax.lines[0].get_xdata(), np.arange(1, model.n_iter_ + 1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "objective")


def test_it_draws_on_the_given_axes():
    ax = Figure().add_subplot()
    assert plot_training(History(LOSS, [], 0), ax=ax) is ax


def test_a_model_without_a_history_is_refused(crowd):
    with pytest.raises(ParameterError, match="MajorityVote has no history"):
        plot_training(MajorityVote().fit(crowd[0]))
