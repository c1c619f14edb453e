"""PM against plain loops, the loss that it lowers, and published accuracies."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.aggregate import PM, MajorityVote


def slow_fit(annotations, n_rounds, slow_vote, loss, scale, smoothing, gold=None):
    """Vote, weigh by minus the log of each worker's part in the loss, vote again."""
    weights = np.ones(annotations.n_workers)
    for _ in range(n_rounds):
        agreed, given = slow_vote(annotations, weights, gold)
        losses = []
        for right, total in zip(agreed, given, strict=True):
            wrong = total - right + smoothing
            losses.append(wrong if loss == "count" else wrong / (total + 2 * smoothing))
        whole = max(losses) if scale == "max" else sum(losses)
        weights = np.array([-math.log(one / whole) for one in losses])
    return weights, np.array(losses)


@pytest.mark.parametrize("scale", ["max", "sum"])
@pytest.mark.parametrize("loss", ["rate", "count"])
def test_equals_the_plain_loops(voters, slow_vote, slow_shares, loss, scale):
    model = PM(loss=loss, scale=scale, smoothing=0.2, max_iter=3).fit(voters.annotations)
    weights, _ = slow_fit(voters.annotations, 3, slow_vote, loss, scale, 0.2)
    assert_allclose(model.weights_, weights, atol=1e-12)
    # The worst worker weighs nothing, and is alone on no task.
    assert_allclose(model.posterior_, slow_shares(voters.annotations, weights))


def test_equals_the_plain_loops_with_weights_and_gold(weighted_voters, voters, slow_vote):
    gold = np.where(np.arange(80) < 30, voters.truth[:80], -1)
    model = PM(max_iter=2).fit(weighted_voters, gold=gold)
    weights, _ = slow_fit(weighted_voters, 2, slow_vote, "count", "max", 0.5, gold)
    assert_allclose(model.weights_, weights, atol=1e-12)
    assert_array_equal(model.labels_[:30], voters.truth[:30])


def test_truths_and_weights_lower_one_loss_together(voters, slow_vote):
    """With counts and their sum, both turns minimize the sum of weight times loss."""
    sums = []
    for n_rounds in range(1, 8):
        weights, losses = slow_fit(voters.annotations, n_rounds, slow_vote, "count", "sum", 0.5)
        assert_allclose(np.exp(-weights).sum(), 1)  # the constraint of the paper
        sums.append(weights @ losses)
    assert np.diff(sums).max() <= 1e-9
    model = PM(loss="count", scale="sum").fit(voters.annotations)
    weights, _ = slow_fit(voters.annotations, model.n_iter_, slow_vote, "count", "sum", 0.5)
    assert_allclose(model.weights_, weights)


def test_a_rate_does_not_hold_many_labels_against_a_worker():
    labels = [[0, 0, 0], [1, 1, 1], [0, 0, -1], [1, 1, -1], [0, 0, 1], [1, 0, 1], [1, 1, -1]]
    rate, count = (PM(loss=kind).fit(labels).weights_ for kind in ("rate", "count"))
    assert rate[0] > rate[2] + 0.5
    assert count[0] < rate[0]


def test_one_worker_or_one_mind_is_believed():
    assert PM().fit_predict([[0], [1], [0]]).tolist() == [0, 1, 0]
    assert PM().fit_predict([[0, 0], [1, 1], [2, 2]]).tolist() == [0, 1, 2]


def test_finds_who_is_right_and_settles(voters):
    model = PM(loss="rate").fit(voters.annotations)
    assert model.n_iter_ < 30
    assert model.weights_[:4].min() > model.weights_[4:].max()
    assert np.mean(model.labels_ == voters.truth) > np.mean(
        MajorityVote().fit_predict(voters.annotations) == voters.truth
    )


@pytest.mark.parametrize(
    "params", [{"loss": "squared"}, {"scale": "mean"}, {"smoothing": 0.0}, {"max_iter": 0}]
)
def test_refuses_parameters_that_make_no_sense(params):
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter of PM"):
        PM(**params).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(("name", "accuracy"), [("product", 0.8981), ("sentiment_tweets", 0.9504)])
def test_reaches_the_published_accuracy(real_accuracy, name, accuracy):
    # Zheng et al. (2017), table 6, whose code counts errors and adds next to nothing.
    model = PM(loss="count", smoothing=1e-6, max_iter=10)
    assert real_accuracy(model, name) == pytest.approx(accuracy, abs=0.005)
