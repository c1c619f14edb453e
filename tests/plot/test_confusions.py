"""What is drawn of confusion matrices is what was learned and what was counted."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.aggregate import MajorityVote
from crowdwise.errors import ParameterError
from crowdwise.plot import plot_confusions


def drawn(ax):
    return np.ma.filled(ax.images[0].get_array(), np.nan)


def slow_counts(votes, truths, worker):
    """Share of labels by truth, as loops."""
    table = np.zeros((3, 3))
    for task, who, label in zip(votes.task, votes.worker, votes.label, strict=True):
        if votes.workers[who] == worker and votes.tasks[task] in truths:
            table[votes.classes.tolist().index(truths[votes.tasks[task]]), label] += 1
    return table / np.maximum(table.sum(axis=1, keepdims=True), 1)


def test_learned_above_counted_for_the_busiest_first(model, crowd):
    votes, truth = crowd
    axes = plot_confusions(model, votes, truth, n_workers=3)
    assert axes.shape == (2, 3)
    busiest = ["di", "cy", "bob"]
    for column, worker in enumerate(busiest):
        number = votes.workers.tolist().index(worker)
        assert_allclose(drawn(axes[0, column]), model.confusion_[number])
        assert_allclose(drawn(axes[1, column]), slow_counts(votes, truth, worker))
        assert axes[0, column].get_title() == worker
        assert axes[1, column].get_title() == f"{worker} ({(votes.worker == number).sum()})"
    assert axes[0, 0].get_ylabel() == "learned\ntruth"
    assert axes[1, 0].get_ylabel() == "counted\ntruth"
    assert axes[1, 0].get_xlabel() == "label"
    assert [text.get_text() for text in axes[1, 0].get_xticklabels()] == ["cat", "dog", "hen"]


def test_the_bar_beside_them_has_their_colors(model):
    figure = plot_confusions(model, workers=["bob"])[0, 0].figure
    matrix, bar = figure.axes
    assert bar.get_ylabel() == "P(label | truth)"
    (shades,) = [one for one in bar.collections if one.get_array() is not None]
    assert shades.get_cmap() == matrix.images[0].get_cmap()


def test_numbers_stand_in_the_cells(model):
    ax = plot_confusions(model, workers=["bob"])[0, 0]
    cells = {text.get_position()[::-1]: text.get_text() for text in ax.texts}
    table = np.ndenumerate(model.confusion_[1])
    expected = {place: f"{100 * value:.0f}" for place, value in table}
    assert cells == expected


def test_without_truth_the_models_own_counts(model, crowd):
    votes, _ = crowd
    votes = votes[np.arange(150)[::-1]]  # other tasks than the model's, in another order
    axes = plot_confusions(model, votes, workers=["ann"])
    table = np.zeros((3, 3))
    for task, who, label in zip(votes.task, votes.worker, votes.label, strict=True):
        if who == 0:
            table[:, label] += model.posterior_[votes.tasks[task]]
    assert_allclose(drawn(axes[1, 0]), table / table.sum(axis=1, keepdims=True))


def test_truths_that_a_worker_never_met_are_blank(model, crowd):
    votes, truth = crowd
    some = {task: label for task, label in truth.items() if label != "dog"}
    ax = plot_confusions(model, votes, some, workers=["di"])[1, 0]
    assert np.isnan(drawn(ax)[1]).all()
    assert_allclose(drawn(ax)[[0, 2]], slow_counts(votes, some, "di")[[0, 2]])
    assert len(ax.texts) == 6


def test_without_annotations_only_what_was_learned(model):
    axes = plot_confusions(model, n_workers=2)
    assert axes.shape == (1, 2)
    assert [ax.get_title() for ax in axes[0]] == ["ann", "bob"]


def test_other_workers_annotations_are_passed_over(model, crowd):
    votes, truth = crowd
    more = votes.to_frame()
    more.loc[len(more)] = {"task": 0, "worker": "eve", "label": "cat"}
    axes = plot_confusions(model, more, truth, workers=["di"])
    assert_allclose(drawn(axes[1, 0]), slow_counts(votes, truth, "di"))


def test_it_draws_on_the_given_axes(model):
    figure = Figure()
    axes = figure.subplots(1, 2)
    assert_array_equal(plot_confusions(model, workers=["ann", "di"], axes=axes)[0], axes)
    assert len(figure.axes) == 2  # no color bar is squeezed in
    with pytest.raises(ParameterError, match=r"(?s)2 axes for 1 x 3.*figure\.subplots\(1, 3\)"):
        plot_confusions(model, n_workers=3, axes=axes)


def test_mistakes_are_named(model, crowd):
    with pytest.raises(ParameterError, match="does not know worker 'zoe'"):
        plot_confusions(model, workers=["ann", "zoe"])
    with pytest.raises(ParameterError, match="MajorityVote has no confusion"):
        plot_confusions(MajorityVote().fit(crowd[0]))
