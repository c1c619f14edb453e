"""MA-LR against plain loops, both ways of weighing, and the real crowd it is known for."""

import feature_sets
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from crowdwise.learn import MALR
from crowdwise.simulate import label_by_crowd, one_coin_confusion


def slow_fit(lopsided, X, annotations, gold, *, use, smoothing, ridge, first, n_steps):
    """EM one label at a time, with scikit-learn's regression: too slow to ship."""
    n_classes = lopsided.n_classes
    rows = [
        (task, worker, label, weight * share[label])
        for task, worker, share, weight in lopsided.rows_of(annotations)
        for label in range(n_classes)
    ]
    known = [(i, int(gold[i]), 1.0) for i in np.flatnonzero(gold >= 0)]
    reliable = np.full(lopsided.n_workers, first if use else 0.5)
    chance, objective = [1.0] * len(rows), []
    for step in range(n_steps):
        examples = [(t, y, w * c) for (t, _, y, w), c in zip(rows, chance, strict=True)] + known
        task, label, weight = (np.array(column) for column in zip(*examples, strict=True))
        model = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=10000)
        model.fit(X[task], label, sample_weight=weight)
        if use and step:
            up, total = np.full(lopsided.n_workers, smoothing), np.zeros(lopsided.n_workers)
            for (_, worker, _, w), c in zip(rows, chance, strict=True):
                up[worker] += w * c
                total[worker] += w
            reliable = up / (total + 2 * smoothing)
        proba = softmax(model.decision_function(X), axis=1)
        value = smoothing * (np.log(reliable) + np.log(1 - reliable)).sum()
        value -= 0.5 * ridge * (model.coef_**2).sum()
        value += sum(np.log(proba[t, y]) for t, y, _ in known)
        chance = []
        for t, worker, y, w in rows:
            from_it, at_random = reliable[worker] * proba[t, y], (1 - reliable[worker]) / n_classes
            value += w * np.log(from_it + at_random)
            chance.append(from_it / (from_it + at_random))
        objective.append(value)
    return proba, reliable, objective


def joined(lopsided, annotations, proba, confusion, gold):
    """P(truth | features, labels), one label at a time."""
    joint = np.log(proba)
    for task, worker, share, weight in lopsided.rows_of(annotations):
        joint[task] += weight * np.log(confusion[worker]) @ share
    posterior = softmax(joint, axis=1)
    for i in np.flatnonzero(gold >= 0):
        posterior[i] = np.eye(lopsided.n_classes)[gold[i]]
    return posterior


@pytest.mark.parametrize("use", [True, False])
@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_equals_the_plain_loops(lopsided, options, use):
    annotations = lopsided.votes(**options)
    X = np.random.default_rng(1).normal(size=(lopsided.n_tasks, lopsided.n_in))
    X = X.astype(np.float32).astype(float)
    gold = np.where(np.arange(lopsided.n_tasks) % 6 == 5, 2, -1)
    model = MALR(
        use_reliability_prior=use,
        reliability=0.8,
        smoothing=0.3,
        ridge=0.7,
        scale=False,
        max_iter=4,
        tol=0,
    ).fit(X, annotations, gold=gold)
    proba, reliable, objective = slow_fit(
        lopsided,
        X,
        annotations,
        gold,
        use=use,
        smoothing=0.3,
        ridge=0.7,
        first=0.8,
        n_steps=4,
    )
    assert_allclose(model.predict_proba(X), proba, atol=1e-4)
    assert_allclose(model.objective_, objective, rtol=1e-5)
    accuracy = reliable + (1 - reliable) / 3
    if not use:
        up, total = np.full(5, 0.3), np.full(5, 0.6)
        for task, worker, share, weight in lopsided.rows_of(annotations):
            up[worker] += weight * share[proba[task].argmax()]
            total[worker] += weight
        reliable = accuracy = up / total
    assert_allclose(model.reliability_, reliable, atol=1e-5)
    confusion = one_coin_confusion(accuracy, 3)
    assert_allclose(model.confusion_, confusion, atol=1e-5)
    assert_allclose(
        model.posterior_, joined(lopsided, annotations, proba, confusion, gold), atol=1e-4
    )


@pytest.mark.parametrize("use", [True, False])
def test_the_objective_never_falls(crowd, use):
    model = MALR(use_reliability_prior=use).fit(crowd.X, crowd.votes)
    objective = np.array(model.objective_)
    assert (np.diff(objective) > -1e-6 * np.abs(objective[:-1])).all()
    assert model.n_iter_ == len(objective)


def test_recovers_reliabilities(crowd):
    reliable = np.array([0.95, 0.8, 0.6, 0.4, 0.2, 0.0])
    confusion = one_coin_confusion(reliable + (1 - reliable) / 3, 3)
    votes = label_by_crowd(crowd.truth, confusion, 5, random_state=0)
    model = MALR(ridge=0.1).fit(crowd.X, votes)
    assert_allclose(model.reliability_, reliable, atol=0.15)
    assert model.score(crowd.new_X, crowd.new_truth) > 0.85
    right = reliable + (1 - reliable) / 3
    assert_allclose(model.worker_accuracy_, right, atol=0.12)


@pytest.mark.parametrize(
    "settings",
    [{"smoothing": 0.0}, {"reliability": 1.5}, {"ridge": -1.0}, {"max_iter": 0}],
    ids=str,
)
def test_refuses_what_makes_no_sense(crowd, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        MALR(**settings).fit(crowd.X, crowd.votes)


def test_music_genres(real_crowd):
    real_crowd("mgc")
    music = feature_sets.load("mgc")
    code = MALR(use_reliability_prior=False, max_iter=10, tol=0).fit(music.X, music.annotations)
    assert code.score(music.X_test, music.y_test) == pytest.approx(0.64, abs=0.03)  # published
    paper = MALR(max_iter=10, tol=0).fit(music.X, music.annotations)
    assert paper.score(music.X_test, music.y_test) == pytest.approx(0.657, abs=0.03)
