"""Raykar against plain loops, its prior, its starts, and the real crowd it is known for."""

import feature_sets
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from crowdwise.errors import ParameterError
from crowdwise.learn import Raykar


def features(lopsided):
    table = np.random.default_rng(1).normal(size=(lopsided.n_tasks, lopsided.n_in))
    return table.astype(np.float32).astype(float)


def slow_fit(lopsided, X, annotations, gold, *, pseudo, ridge, start, n_steps):
    """EM one label at a time, with scikit-learn's regression: too slow to ship."""
    n_tasks, n_classes = lopsided.n_tasks, lopsided.n_classes
    rows = list(lopsided.rows_of(annotations))
    told = sorted({task for task, *_ in rows} | {i for i in range(n_tasks) if gold[i] >= 0})
    log_class = np.full((n_tasks, n_classes), -np.log(n_classes))
    confusion = np.full((lopsided.n_workers, n_classes, n_classes), 0.01) + np.eye(n_classes)
    confusion /= confusion.sum(axis=2, keepdims=True)
    objective = []

    def e_step():
        joint = log_class.copy()
        for task, worker, share, weight in rows:
            joint[task] += weight * np.log(confusion[worker]) @ share
        for i in np.flatnonzero(gold >= 0):
            joint[i, np.arange(n_classes) != gold[i]] = -np.inf
        evidence = np.log(np.exp(joint).sum(axis=1))
        return np.exp(joint - evidence[:, None]), evidence.sum()

    posterior, _ = e_step()
    if start == "shares":
        posterior = annotations.shares()
        for i in np.flatnonzero(gold >= 0):
            posterior[i] = np.eye(n_classes)[gold[i]]
    for _ in range(n_steps):
        counts = np.tile(pseudo, (lopsided.n_workers, 1, 1))
        for task, worker, share, weight in rows:
            counts[worker] += weight * np.outer(posterior[task], share)
        confusion = counts / counts.sum(axis=2, keepdims=True)
        model = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=10000)
        copies = np.repeat(told, n_classes)
        label = np.tile(np.arange(n_classes), len(told))
        model.fit(X[copies], label, sample_weight=posterior[told].ravel())
        log_class = log_softmax(model.decision_function(X), axis=1)
        posterior, evidence = e_step()
        log_prior = (pseudo * np.log(confusion)).sum() - 0.5 * ridge * (model.coef_**2).sum()
        objective.append(evidence + log_prior)
    return posterior, confusion, objective


@pytest.mark.parametrize("start", ["identity", "shares"])
@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_equals_the_plain_loops(lopsided, options, start):
    annotations, X = lopsided.votes(**options), features(lopsided)
    gold = np.where(np.arange(lopsided.n_tasks) % 6 == 5, 2, -1)
    smoothing = np.array([[0.8, 0.3, 0.1], [0.2, 0.5, 0.4], [0.1, 0.6, 0.9]])
    settings = {"ridge": 0.7, "start": start}
    model = Raykar(smoothing=smoothing, scale=False, max_iter=3, tol=0, **settings)
    model.fit(X, annotations, gold=gold)
    posterior, confusion, objective = slow_fit(
        lopsided, X, annotations, gold, pseudo=smoothing, n_steps=3, **settings
    )
    assert_allclose(model.posterior_, posterior, atol=1e-5)
    assert_allclose(model.confusion_, confusion, atol=1e-5)
    assert_allclose(model.objective_, objective, rtol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.01, (2.0, 0.5)], ids=str)
def test_the_objective_never_falls(crowd, smoothing):
    objective = np.array(Raykar(smoothing=smoothing).fit(crowd.X, crowd.votes).objective_)
    assert np.isfinite(objective).all()
    assert (np.diff(objective) > -1e-6 * np.abs(objective[:-1])).all()


def test_recovers_the_crowd_it_was_drawn_from(crowd):
    model = Raykar().fit(crowd.X, crowd.votes)
    assert model.score(crowd.new_X, crowd.new_truth) > 0.85
    assert (model.posterior_.argmax(axis=1) == crowd.truth).mean() > 0.9
    weight = np.bincount(crowd.truth) / len(crowd.truth)
    error = np.abs(model.confusion_ - crowd.confusion).mean(axis=(0, 2)) @ weight
    assert error < 0.05
    assert model.n_iter_ == len(model.objective_)


def test_a_pair_of_pseudo_counts_is_for_right_and_wrong(crowd):
    matrix = np.where(np.eye(3, dtype=bool), 4.0, 0.5)
    pair, whole = (
        Raykar(smoothing=value).fit(crowd.X, crowd.votes) for value in ((4.0, 0.5), matrix)
    )
    assert_allclose(pair.confusion_, whole.confusion_)


def test_without_a_prior_an_empty_row_is_uniform():
    # The third worker never meets class 1: 0 / 0 for a row of theirs, if it is not minded.
    labels = [[0, 0, 0], [1, 1, -1], [0, 0, 0], [1, 1, -1], [0, 0, 0]]
    X = np.array([[-2.0], [2.0], [-1.0], [1.0], [-3.0]])
    model = Raykar(smoothing=0.0, start="shares", max_iter=2, tol=0).fit(X, labels)
    assert_allclose(model.confusion_[2], [[1.0, 0.0], [0.5, 0.5]])
    assert np.isfinite(model.posterior_).all()


def test_more_ridge_makes_a_plainer_classifier(crowd):
    weak, strong = (Raykar(ridge=r).fit(crowd.X, crowd.votes) for r in (0.1, 100.0))
    assert np.abs(strong.weights_[:-1]).mean() < np.abs(weak.weights_[:-1]).mean() / 2


def test_unlabeled_tasks_do_not_move_the_classifier(crowd):
    some = crowd.votes.filter(crowd.votes.task < 200)
    with_silent = Raykar(scale=False).fit(crowd.X, some)
    without = Raykar(scale=False).fit(crowd.X[:200], some[:200])
    assert_allclose(with_silent.weights_, without.weights_, atol=1e-6)
    assert_allclose(with_silent.posterior_[250], with_silent.predict_proba(crowd.X[[250]])[0])


def test_says_when_it_ran_out_of_steps(crowd):
    with pytest.warns(ConvergenceWarning, match="Raykar stopped after max_iter=2"):
        Raykar(max_iter=2).fit(crowd.X, crowd.votes)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"smoothing": -1.0}, ValueError),
        ({"smoothing": [1.0, 2.0, 3.0]}, ParameterError),
        ({"ridge": -1.0}, ValueError),
        ({"start": "random"}, ValueError),
        ({"max_iter": 0}, ValueError),
    ],
    ids=str,
)
def test_refuses_what_makes_no_sense(crowd, settings, error):
    with pytest.raises(error, match=next(iter(settings))):
        Raykar(**settings).fit(crowd.X, crowd.votes)


@pytest.mark.parametrize("smoothing", [0.01, 0.0])
def test_music_genres(real_crowd, smoothing):
    # Published: .6300 with prior and .1200 without, which is the share of one genre among the
    # test songs. EM in plain arithmetic ends in 0 / 0 here, by rows without labels, so a
    # constant answer is what it leaves; with uniform rows the prior hardly matters.
    real_crowd("mgc")
    music = feature_sets.load("mgc")
    model = Raykar(smoothing=smoothing, ridge=1.0, max_iter=10, tol=0)
    model.fit(music.X, music.annotations)
    assert model.score(music.X_test, music.y_test) == pytest.approx(0.67, abs=0.03)


def test_held_out_labels_choose_ridge_and_smoothing(real_crowd):
    real_crowd("mgc")
    music = feature_sets.load("mgc")
    model = Raykar(max_iter=10, tol=0).fit(music.X, music.annotations)
    assert len(model.search_.candidates) == 6
    assert model.search_.chosen in model.search_.candidates
    assert model.search_.chosen["ridge"] > 1.0
    assert model.score(music.X_test, music.y_test) > 0.66
    fixed = Raykar(ridge=2.0, smoothing=0.1, max_iter=3, tol=0).fit(music.X, music.annotations)
    assert not fixed.search_.candidates


def test_more_features_than_tasks_are_learned_from_as_if_there_were_few(monkeypatch):
    rng = np.random.default_rng(0)
    X, votes = rng.normal(size=(30, 80)), rng.integers(0, 3, (30, 4))
    fixed = {"ridge": 2.0, "smoothing": 0.1, "tol": 1e-9, "max_iter": 1000}
    turned = Raykar(**fixed).fit(X, votes)
    monkeypatch.setattr("crowdwise.learn.raykar.turn", lambda design: (design, np.eye(81)))
    plain = Raykar(**fixed).fit(X, votes)
    assert_allclose(turned.weights_, plain.weights_, atol=1e-4)
    assert_allclose(turned.predict_proba(X), plain.predict_proba(X), atol=1e-4)
