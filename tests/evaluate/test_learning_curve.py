"""Fits to fewer labels, measured against all of them and against the truth."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.errors import ParameterError
from crowdwise.evaluate.learning_curve import fit_and_time, fit_with_fewer_labels, same_labels
from crowdwise.simulate import confused_crowd, one_coin_confusion


@pytest.fixture(scope="module")
def crowd():
    confusion = one_coin_confusion([0.95, 0.8, 0.7, 0.6, 0.55], n_classes=3)
    return confused_crowd(confusion, 120, 5, random_state=4)


def test_ties_count_their_share_of_sameness():
    one = np.array([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    two = np.array([[0.6, 0.4, 0.0], [0.9, 0.1, 0.0], [0.0, 0.5, 0.5]])
    assert same_labels(one, two) == pytest.approx((1 + 1 / 2 + 1 / 4) / 3)
    assert np.isnan(same_labels(one[:0], two[:0]))


def test_each_draw_is_a_fit_to_a_random_subset(crowd):
    data = crowd.annotations
    whole = MajorityVote().fit(data).posterior_
    truth = dict(zip(data.tasks[:80].tolist(), data.classes[crowd.truth[:80]], strict=True))
    kept, right = fit_with_fewer_labels(
        data, MajorityVote(), whole, 2, pd.Series(truth), n_draws=3, random_state=5
    )
    rng = np.random.RandomState(5)
    for draw in range(3):
        posterior = MajorityVote().fit(data.subsample(2, rng)).posterior_
        assert_allclose(kept[draw], same_labels(posterior, whole))
        best = posterior[:80] == posterior[:80].max(axis=1, keepdims=True)
        chance = best[np.arange(80), crowd.truth[:80]] / best.sum(axis=1)
        assert_allclose(right[draw], chance.mean())


def test_without_truth_nothing_is_right_or_wrong(crowd):
    whole = MajorityVote().fit(crowd.annotations).posterior_
    _, right = fit_with_fewer_labels(crowd.annotations, MajorityVote(), whole, 2, None, 2, 0)
    assert np.isnan(right).all()


def test_a_fit_says_whether_it_converged_without_a_warning(crowd):
    assert not fit_and_time(DawidSkene(max_iter=2), crowd.annotations).converged
    fit = fit_and_time(DawidSkene(), crowd.annotations)
    assert fit.converged
    assert fit.name == "DawidSkene"
    assert fit.seconds > 0


def test_a_refused_parameter_is_an_error_with_a_fix(crowd):
    with pytest.raises(ParameterError, match=r"smoothing(.|\n)*fix: +see DawidSkene"):
        fit_and_time(DawidSkene(smoothing=-1), crowd.annotations)
