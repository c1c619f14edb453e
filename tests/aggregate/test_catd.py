"""CATD against plain loops, its care with small workers, and published accuracies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2

from crowdwise import Annotations
from crowdwise.aggregate import CATD, MajorityVote


def slow_fit(annotations, n_rounds, slow_vote, significance, smoothing, gold=None):
    """Vote, weigh by a quantile of chi-squared over the errors, vote again."""
    weights = np.ones(annotations.n_workers)
    for _ in range(n_rounds):
        agreed, given = slow_vote(annotations, weights, gold)
        for worker in range(annotations.n_workers):
            quantile = chi2.ppf(significance / 2, df=given[worker])
            weights[worker] = quantile / (given[worker] - agreed[worker] + smoothing)
    return weights


@pytest.mark.parametrize("n_rounds", [1, 3])
@pytest.mark.parametrize(("significance", "smoothing"), [(0.05, 0.5), (0.4, 0.01)])
def test_equals_the_plain_loops(voters, slow_vote, slow_shares, n_rounds, significance, smoothing):
    model = CATD(significance=significance, smoothing=smoothing, max_iter=n_rounds)
    model.fit(voters.annotations)
    weights = slow_fit(voters.annotations, n_rounds, slow_vote, significance, smoothing)
    assert_allclose(model.weights_, weights)
    assert_allclose(model.posterior_, slow_shares(voters.annotations, weights))


def test_equals_the_plain_loops_with_weights_and_gold(weighted_voters, voters, slow_vote):
    gold = np.where(np.arange(80) < 30, voters.truth[:80], -1)
    model = CATD(max_iter=2).fit(weighted_voters, gold=gold)
    weights = slow_fit(weighted_voters, 2, slow_vote, 0.05, 0.01, gold)
    assert_allclose(model.weights_, weights)
    assert_array_equal(model.labels_[:30], voters.truth[:30])


def test_of_two_who_never_err_the_one_with_more_labels_counts_more():
    labels = [[0, 0, -1], [1, 1, 1], [0, 0, -1], [1, 1, -1]]
    few, many = CATD().fit(labels).weights_[[2, 0]]
    assert few < many / 100


def test_a_higher_significance_is_less_careful():
    labels = [[0, 0, -1], [1, 1, 1], [0, 0, -1], [1, 1, -1]]
    careful, bold = (CATD(significance=a).fit(labels).weights_ for a in (0.01, 0.9))
    assert careful[2] / careful[0] < bold[2] / bold[0]


def test_without_any_trust_it_is_majority_vote(voters):
    model = CATD(significance=0.0).fit(voters.annotations)
    assert not model.weights_.any()
    assert_allclose(model.posterior_, MajorityVote().fit(voters.annotations).posterior_)


def test_a_worker_without_labels_weighs_nothing():
    votes = {"q": {"ann": 1, "bob": 1}, "r": {"ann": 0, "bob": 1}}
    annotations = Annotations.from_dict(votes, workers=["ann", "bob", "cid"])
    assert CATD().fit(annotations).weights_[2] == 0


def test_finds_who_is_right_and_settles(voters):
    model = CATD().fit(voters.annotations)
    assert model.n_iter_ < 30
    assert model.weights_[:4].min() > model.weights_[4:].max()
    assert np.mean(model.labels_ == voters.truth) > np.mean(
        MajorityVote().fit_predict(voters.annotations) == voters.truth
    )


@pytest.mark.parametrize("params", [{"significance": 1.5}, {"smoothing": 0.0}, {"max_iter": 0}])
def test_refuses_parameters_that_make_no_sense(params):
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter of CATD"):
        CATD(**params).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("product", 0.9266), ("sentiment_tweets", 0.9550), ("relevance", 0.4532)],
)
def test_reaches_the_published_accuracy(real_accuracy, name, accuracy):
    # Zheng et al. (2017), table 6, whose code adds next to nothing to the errors.
    assert real_accuracy(CATD(), name) == pytest.approx(accuracy, abs=0.005)
