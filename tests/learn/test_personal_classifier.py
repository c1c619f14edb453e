"""Personal classifiers against plain loops: the loss, and that nothing near is better."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

from crowdwise.inference import pooled_confusion
from crowdwise.learn import PersonalClassifier
from crowdwise.simulate import label_by_crowd


def slow_loss(lopsided, X, annotations, gold, weights, closeness, ridge):
    """The penalized loss, one label at a time; the first classifier is the shared one."""
    design = np.hstack([X, np.ones((len(X), 1))])
    value = 0.5 * ridge * (weights[0] ** 2).sum()
    for own in weights[1:]:
        value += 0.5 * closeness * ((own - weights[0]) ** 2).sum()
    for task, worker, share, weight in lopsided.rows_of(annotations):
        value -= weight * share @ log_softmax(design[task] @ weights[1 + worker])
    for i in np.flatnonzero(gold >= 0):
        value -= log_softmax(design[i] @ weights[0])[gold[i]]
    return value


@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_minimizes_the_plain_loss(lopsided, options):
    annotations = lopsided.votes(**options)
    X = np.random.default_rng(1).normal(size=(lopsided.n_tasks, lopsided.n_in))
    X = X.astype(np.float32).astype(float)
    gold = np.where(np.arange(lopsided.n_tasks) % 6 == 5, 2, -1)
    model = PersonalClassifier(closeness=0.8, ridge=0.3, scale=False, tol=1e-8)
    model.fit(X, annotations, gold=gold)
    weights = np.concatenate([model.weights_[None], model.worker_weights_])

    def loss(flat):
        return slow_loss(lopsided, X, annotations, gold, flat.reshape(weights.shape), 0.8, 0.3)

    assert_allclose(-model.objective_[-1], loss(weights.ravel()))
    slope = approx_fprime(weights.ravel(), loss, 1e-6)
    assert np.abs(slope).max() < 1e-4


def test_the_objective_never_falls(crowd):
    model = PersonalClassifier().fit(crowd.X, crowd.votes)
    objective = np.array(model.objective_)
    assert (np.diff(objective) > -1e-9 * np.abs(objective[:-1])).all()
    assert model.n_iter_ == len(objective)


def test_learns_from_a_crowd(crowd):
    model = PersonalClassifier().fit(crowd.X, crowd.votes)
    assert model.score(crowd.new_X, crowd.new_truth) > 0.8
    assert (model.posterior_.argmax(axis=1) == crowd.truth).mean() > 0.88


def test_everyone_is_alike_when_drawn_together(crowd):
    far, close = (
        PersonalClassifier(closeness=c, tol=1e-4).fit(crowd.X, crowd.votes) for c in (0.1, 1e4)
    )
    spread = [np.abs(m.worker_weights_ - m.weights_).mean() for m in (far, close)]
    assert spread[1] < spread[0] / 100


def test_workers_have_classifiers_of_their_own(crowd):
    # One worker sees the truth, another names the next class: each has their own weights.
    shift = np.stack([np.eye(3), np.roll(np.eye(3), 1, axis=1)])
    votes = label_by_crowd(crowd.truth, shift, 2, random_state=0)
    model = PersonalClassifier(closeness=0.1, ridge=1.0).fit(crowd.X, votes)
    found = model.predict_worker_proba(crowd.new_X, [1, 0, "nobody"])
    assert (found[:, 0].argmax(axis=1) == (crowd.new_truth + 1) % 3).mean() > 0.85
    assert (found[:, 1].argmax(axis=1) == crowd.new_truth).mean() > 0.85
    assert_allclose(found[:, 2], model.predict_proba(crowd.new_X))
    design = np.hstack([model.scaler_.transform(crowd.new_X), np.ones((200, 1))])
    assert_allclose(found[:, 0], softmax(design @ model.worker_weights_[1], axis=1), atol=1e-5)
    right = model.predict_worker_accuracy(crowd.new_X, [1])
    assert_allclose(right[:, 0], (found[:, 0] * found[:, 2]).sum(axis=1))


def test_labels_are_scored_by_the_worker_who_gave_them(crowd):
    model = PersonalClassifier().fit(crowd.X, crowd.votes)
    votes, value = crowd.new_votes, 0.0
    proba = model.predict_worker_proba(crowd.new_X)
    for task, worker, label in zip(votes.task, votes.worker, votes.label, strict=True):
        value += np.log(proba[task, worker, label])
    assert model.score(crowd.new_X, votes) == pytest.approx(value / votes.n_annotations)


def test_the_posterior_is_one_step_from_the_classifier(lopsided):
    annotations = lopsided.votes()
    X = np.random.default_rng(1).normal(size=(lopsided.n_tasks, lopsided.n_in))
    model = PersonalClassifier().fit(X, annotations)
    proba = model.predict_proba(X)
    counts = np.zeros((5, 3, 3))
    for task, worker, share, _ in lopsided.rows_of(annotations):
        counts[worker] += np.outer(proba[task], share)
    pooled = counts.sum(axis=0) + 1 / 3
    confusion = counts + pooled / pooled.sum(axis=1, keepdims=True)
    confusion /= confusion.sum(axis=2, keepdims=True)
    joint = np.log(proba)
    for task, worker, share, _ in lopsided.rows_of(annotations):
        joint[task] += np.log(confusion[worker]) @ share
    posterior = softmax(joint, axis=1)
    assert_allclose(model.posterior_, posterior, rtol=1e-5)
    assert_allclose(model.confusion_, pooled_confusion(annotations, posterior), rtol=1e-5)


def test_says_when_it_ran_out_of_steps(crowd):
    with pytest.warns(ConvergenceWarning, match="max_iter=3 .* Raise max_iter"):
        PersonalClassifier(max_iter=3).fit(crowd.X, crowd.votes)


@pytest.mark.parametrize("settings", [{"closeness": 0.0}, {"ridge": -1.0}, {"tol": -1.0}], ids=str)
def test_refuses_what_makes_no_sense(crowd, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        PersonalClassifier(**settings).fit(crowd.X, crowd.votes)
