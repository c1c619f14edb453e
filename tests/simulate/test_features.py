"""Features tell classes apart as much as they should, and difficulty follows them."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from crowdwise.errors import ParameterError
from crowdwise.simulate import class_features, margin_difficulty

TRUTH = np.random.RandomState(1).randint(2, size=3000)


def accuracy(model, X):
    return model.fit(X[::2], TRUTH[::2]).score(X[1::2], TRUTH[1::2])


@pytest.mark.parametrize("separation", [0.0, 1.0, 3.0])
def test_the_best_linear_classifier_is_right_as_often_as_computed(separation):
    X = class_features(TRUTH, 40, separation=separation, noise=0.01, random_state=0)
    best = 0.5 * (1 + math.erf(separation / 2 / math.sqrt(2)))
    assert accuracy(LogisticRegression(max_iter=500), X) == pytest.approx(best, abs=0.03)


def test_a_bend_is_seen_by_other_classifiers_only():
    X = class_features(TRUTH, 40, separation=1.0, bend=3.0, noise=0.1, random_state=0)
    linear, curved = accuracy(LogisticRegression(max_iter=500), X), accuracy(SVC(), X)
    assert linear < 0.73
    assert curved > linear + 0.1


def test_noise_hides_the_factors():
    quiet, loud = (class_features(TRUTH, 12, noise=noise, random_state=0) for noise in (0.1, 3.0))
    model = LogisticRegression(max_iter=500)
    assert accuracy(model, quiet) > accuracy(model, loud) + 0.1


def test_features_are_few_factors_mixed():
    X = class_features(TRUTH, 60, n_factors=7, noise=0.0, random_state=0)
    assert np.linalg.matrix_rank(X) == 7


def test_a_seed_repeats_them():
    one, same, other = (class_features([0, 1, 2], random_state=seed) for seed in (0, 0, 1))
    assert (one == same).all()
    assert (one != other).any()


def test_difficulty_equals_a_plain_loop():
    rng = np.random.RandomState(0)
    X, truth = rng.randn(30, 4), rng.randint(3, size=30)
    centers = [X[truth == k].mean(axis=0) for k in range(3)]
    margin = []
    for row, own in zip(X, truth, strict=True):
        away = [math.dist(row, center) for center in centers]
        margin.append(min(away[k] for k in range(3) if k != own) - away[own])
    standard = (np.array(margin) - np.mean(margin)) / np.std(margin)
    found = margin_difficulty(X, truth, spread=0.6)
    assert found == pytest.approx(np.exp(-0.6 * standard))
    assert np.log(found).std() == pytest.approx(0.6)


def test_no_spread_is_no_difficulty():
    assert margin_difficulty([[0.0], [1.0]], [0, 1], spread=0.0).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: class_features([0, 1], 0), "1 or more features"),
        (lambda: class_features([0, 1, 2], n_factors=5), "6 or more factors"),
        (lambda: margin_difficulty([[0.0], [1.0]], [1, 1]), "one class"),
        (lambda: margin_difficulty([[0.0], [1.0]], [0, 1], spread=-1), "0 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
