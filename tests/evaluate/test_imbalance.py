"""Rebalanced decisions have the least balanced error; thresholds separate known truths."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from crowdwise.aggregate import DawidSkene
from crowdwise.errors import ParameterError
from crowdwise.evaluate import balanced_accuracy, balanced_threshold, rebalance
from crowdwise.simulate import confused_crowd


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet([2.0, 1.0, 1.0], (6, 3))
    confusion = 0.5 * confusion + 0.5 * np.eye(3)
    return confused_crowd(confusion, 600, 3, prior=[0.85, 0.1, 0.05], random_state=0)


def test_equals_bayes_rule_by_hand():
    proba, prior, target = [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]], [0.7, 0.2, 0.1], [0.2, 0.2, 0.6]
    expected = []
    for row in proba:
        odds = [p * t / q for p, q, t in zip(row, prior, target, strict=True)]
        expected.append([one / sum(odds) for one in odds])
    assert_allclose(rebalance(proba, prior, target), expected)
    assert_allclose(rebalance(proba, np.multiply(prior, 10), np.multiply(target, 3)), expected)


def test_undoes_the_prior_that_was_learned(crowd):
    model = DawidSkene(max_iter=300).fit(crowd.annotations)
    fair = rebalance(model.probas_, model.prior_)
    log_even = np.log(model.posterior_) - np.log(model.prior_)
    even = np.exp(log_even) / np.exp(log_even).sum(axis=1, keepdims=True)
    assert_allclose(fair.to_numpy(), even)
    assert fair.index.equals(model.probas_.index)
    assert fair.columns.equals(model.probas_.columns)
    before = balanced_accuracy(model.posterior_, crowd.truth)
    assert balanced_accuracy(fair.to_numpy(), crowd.truth) > before + 0.02
    # By default the mean of the probabilities, which is where Dawid-Skene's prior settles.
    assert_allclose(rebalance(model.probas_), fair, atol=0.02)


def test_a_class_nobody_believes_in_stays_out():
    assert_allclose(rebalance([[1.0, 0.0], [1.0, 0.0]]), [[1.0, 0.0], [1.0, 0.0]])


def test_threshold_is_the_best_of_all():
    rng = np.random.default_rng(1)
    truth = rng.random(300) < 0.1
    score = np.clip(0.2 + 0.2 * truth + rng.normal(scale=0.1, size=300), 0, 1)
    frame = pd.DataFrame({"no": 1 - score, "yes": score})
    known = dict(enumerate(np.where(truth, "yes", "no")))
    at = balanced_threshold(frame, known)

    def balanced(threshold):
        chosen = score >= threshold
        return (chosen[truth].mean() + (~chosen[~truth]).mean()) / 2

    assert balanced(at) == max(balanced(t) for t in np.linspace(0, 1, 5001))
    assert balanced(at) > balanced(0.5) + 0.1
    other = balanced_threshold(frame, known, positive="no")
    assert other == pytest.approx(1 - at, abs=0.02)


def test_a_threshold_lies_between_two_tasks():
    two = pd.DataFrame({"no": [0.9, 0.8], "yes": [0.1, 0.2]})
    assert balanced_threshold(two, {0: "no", 1: "yes"}, positive="yes") == pytest.approx(0.15)
    assert balanced_threshold(two, {0: "no", 1: "yes"}, positive="no") == pytest.approx(0.85)


@pytest.mark.parametrize("prior", [[0.5], [0.5, 0.0], [[0.5, 0.5]]], ids=str)
def test_refuses_priors_that_do_not_fit(prior):
    with pytest.raises(ParameterError, match="prior"):
        rebalance([[0.5, 0.5]], prior)


def test_a_threshold_needs_two_classes_and_truths_of_both():
    three = pd.DataFrame([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]], columns=list("abc"))
    with pytest.raises(ParameterError, match="two classes"):
        balanced_threshold(three, {0: "a", 1: "b"})
    two = pd.DataFrame([[0.2, 0.8], [0.6, 0.4]], columns=list("ab"))
    with pytest.raises(ParameterError, match="truths of both"):
        balanced_threshold(two, {0: "a", 1: "a"})
