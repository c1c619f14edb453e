"""Difficulties are drawn in order, and each against how well workers agree on its task."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from scipy.stats import spearmanr

from crowdwise.aggregate import GLAD, MajorityVote
from crowdwise.errors import ParameterError
from crowdwise.learn import EM, LIA, SpeeLFCD, Training
from crowdwise.plot import plot_difficulty


def slow_agreement(votes):
    """Share of equal pairs of labels by task, as loops."""
    shares = {}
    for task, given in votes.to_dict().items():
        pairs = [one == other for one, other in combinations(given.values(), 2)]
        if pairs:
            shares[task] = sum(pairs) / len(pairs)
    return shares


def slow_entropy(votes):
    """Entropy of labels by task in bits, as loops."""
    found = {}
    for task, given in votes.to_dict().items():
        labels = list(given.values())
        shares = [labels.count(k) / len(labels) for k in set(labels)]
        found[task] = -sum(p * np.log2(p) for p in shares)
    return found


def is_drawn(pair, difficulty, agreement):
    curve, dots = pair[0].lines[0].get_xydata(), pair[1].collections[0].get_offsets()
    n = len(difficulty)
    assert_allclose(curve[:, 0], (np.arange(n) + 0.5) / n)
    assert_allclose(curve[:, 1], sorted(difficulty.values()), atol=1e-12)
    expected = np.array([(agreement[task], difficulty[task]) for task in agreement])
    assert_allclose(sorted(map(tuple, dots)), sorted(map(tuple, expected)), atol=1e-12)
    assert pair[0].get_title() == f"{n} tasks, median {np.median(list(difficulty.values())):.2f}"
    like = spearmanr(*expected.T).statistic
    assert pair[1].get_title() == f"rank correlation {like:.2f}"


@pytest.fixture(scope="module")
def thin(crowd):
    """Some tasks with fewer labels, one with one and one with none."""
    votes = crowd[0]
    kept = np.random.default_rng(1).random(votes.n_annotations) < 0.9
    kept[votes.task == 3] = False
    kept[np.flatnonzero(votes.task == 5)] = [True, False, False]
    return votes.filter(kept)


def test_annotations_are_as_hard_as_their_entropy(thin):
    told = {task: value for task, value in slow_entropy(thin).items() if thin.redundancy[task]}
    pair = plot_difficulty(thin)
    assert len(told) == 199
    is_drawn(pair, told, slow_agreement(thin))
    assert pair[0].get_ylabel() == pair[1].get_ylabel() == "entropy of labels (bits)"


def test_an_aggregators_difficulty(thin):
    model = GLAD().fit(thin)
    pair = plot_difficulty(model, thin[np.arange(200)[::-1]])  # in another order
    is_drawn(pair, model.difficulty_.to_dict(), slow_agreement(thin))
    assert pair[0].get_ylabel() == "difficulty by GLAD"


@pytest.mark.parametrize("method", [LIA, SpeeLFCD])
def test_a_learners_difficulty(thin, method):
    X = np.random.default_rng(0).normal(size=(thin.n_tasks, 2))
    quick = {"objective": EM(1, 1, marginal_epochs=1)} if method is LIA else {}
    training = Training(epochs=2, device="cpu")
    model = method(training=training, random_state=0, **quick).fit(X, thin)
    difficulty = dict(zip(model.tasks_, model.difficulty_, strict=True))
    is_drawn(plot_difficulty(model, thin), difficulty, slow_agreement(thin))


def test_tasks_that_the_model_never_saw_are_passed_over(thin):
    model = GLAD().fit(thin[np.arange(150)])
    dots = plot_difficulty(model, thin)[1].collections[0].get_offsets()
    assert len(dots) == sum(task < 150 for task in slow_agreement(thin))


def test_without_annotations_only_the_order(thin):
    model = GLAD().fit(thin)
    assert plot_difficulty(model).shape == (1,)


def test_where_all_agree_nothing_is_correlated():
    pair = plot_difficulty([[0, 0], [1, 1], [0, 0]])
    assert pair[1].get_title() == "rank correlation not defined"


def test_it_draws_on_the_given_axes(thin):
    axes = Figure().subplots(1, 2)
    assert (plot_difficulty(thin, axes=axes) == axes).all()
    with pytest.raises(ParameterError, match="2 axes for 1 x 1"):
        plot_difficulty(GLAD().fit(thin), axes=axes)


def test_models_without_difficulty_are_named(thin):
    with pytest.raises(ParameterError, match="This MajorityVote has no estimated difficulty"):
        plot_difficulty(MajorityVote().fit(thin), thin)
    with pytest.raises(ParameterError, match="This GLAD has no estimated difficulty"):
        plot_difficulty(GLAD, thin)
