"""Curves are what methods make of fewer labels."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.learn import SpeeLFC
from crowdwise.plot import plot_redundancy

STEADY = DawidSkene(max_iter=20, tol=0)


def edges(band):
    """The lower and the upper edge of a band, by x."""
    points = band.get_paths()[0].vertices
    along = np.unique(points[:, 0])
    at = [points[points[:, 0] == x, 1] for x in along]
    return along, [y.min() for y in at], [y.max() for y in at]


def slow_score(method, votes, target):
    """Mean over tasks of the chance that a label picked among the tied best is the target."""
    scores = []
    for task, row in zip(votes.tasks, method.fit(votes).posterior_, strict=True):
        best = [k for k, p in zip(votes.classes, row, strict=True) if p > row.max() - 1e-9]
        wanted = target.get(task)
        if wanted is not None:
            scores.append(sum(k in wanted for k in best) / (len(best) * len(wanted)))
    return np.mean(scores)


def slow_draws(method, votes, target, n_labels, n_draws, seed):
    rng = np.random.RandomState(seed)
    return [slow_score(method, votes.subsample(n_labels, rng), target) for _ in range(n_draws)]


def test_accuracy_with_its_band(crowd):
    votes, truth = crowd
    some = {task: truth[task] for task in range(150)}
    ax = plot_redundancy(STEADY, votes, some, n_draws=4, confidence=0.5, random_state=3)
    seeds = np.random.RandomState(3).randint(2**31 - 1, size=3)
    target = {task: [label] for task, label in some.items()}
    expected = [
        slow_draws(STEADY, votes, target, n, 4 if n < 3 else 1, seeds[n - 1]) for n in (1, 2, 3)
    ]
    x, y = ax.lines[0].get_data()
    assert_array_equal(x, [1, 2, 3])
    assert_allclose(y, [np.mean(draws) for draws in expected])
    along, low, high = edges(ax.collections[0])
    assert_array_equal(along, x)
    assert_allclose(low, [np.quantile(draws, 0.25) for draws in expected])
    assert_allclose(high, [np.quantile(draws, 0.75) for draws in expected])
    assert ax.get_ylabel() == "accuracy"
    assert ax.get_title() == "mean and 50% of 4 draws of labels"


def test_without_truth_the_share_that_stays(crowd):
    votes, _ = crowd
    ax = plot_redundancy(MajorityVote(), votes, n_labels=[2, 1], n_draws=3, random_state=1)
    whole = MajorityVote().fit(votes).posterior_
    target = {
        task: [k for k, p in zip(votes.classes, row, strict=True) if p > row.max() - 1e-9]
        for task, row in zip(votes.tasks, whole, strict=True)
    }
    seeds = np.random.RandomState(1).randint(2**31 - 1, size=2)
    expected = [slow_draws(MajorityVote(), votes, target, n, 3, seeds[n - 1]) for n in (1, 2)]
    x, y = ax.lines[0].get_data()
    assert_array_equal(x, [1, 2])
    assert_allclose(y, np.mean(expected, axis=1))
    assert "same label" in ax.get_ylabel()


def test_methods_share_their_draws(crowd):
    votes, truth = crowd
    fitted = MajorityVote().fit(votes)
    ax = plot_redundancy({"one": MajorityVote(), "two": fitted}, votes, truth, n_draws=2)
    one, two = (line.get_ydata() for line in ax.lines)
    assert_array_equal(one, two)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]


def test_a_method_alone_goes_by_its_class_and_more_labels_help(crowd):
    votes, truth = crowd
    axes = Figure().add_subplot()
    ax = plot_redundancy(DawidSkene(), votes, truth, n_draws=5, ax=axes)
    assert ax is axes
    assert ax.lines[0].get_label() == "DawidSkene"
    y = ax.lines[0].get_ydata()
    assert y[-1] > y[0] + 0.05


def test_mistakes_are_named(crowd):
    votes, truth = crowd
    with pytest.raises(ParameterError, match="net is not an aggregator, but a SpeeLFC"):
        plot_redundancy({"net": SpeeLFC()}, votes)
    with pytest.raises(ParameterError, match="n_labels"):
        plot_redundancy(MajorityVote(), votes, n_labels=[0, 1])
    with pytest.raises(ParameterError, match="n_draws=0"):
        plot_redundancy(MajorityVote(), votes, n_draws=0)
    with pytest.raises(AnnotationError, match="no truth"):
        plot_redundancy(MajorityVote(), votes, {})
    with pytest.raises(AnnotationError, match="No truth is for a task of the annotations"):
        plot_redundancy(MajorityVote(), votes, {"elsewhere": "cat"})
    with pytest.raises(AnnotationError, match="no annotations"):
        plot_redundancy(MajorityVote(), votes.filter(np.zeros(votes.n_annotations, bool)), truth)
