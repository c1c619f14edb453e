"""SoftProb is scikit-learn's regression on every label as an example of its own."""

from dataclasses import replace

import feature_sets
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from crowdwise.errors import AnnotationError
from crowdwise.learn import SoftProb


@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_equals_a_regression_on_every_label(lopsided, options):
    annotations = lopsided.votes(**options)
    X = np.random.default_rng(1).normal(size=(lopsided.n_tasks, lopsided.n_in))
    X = X.astype(np.float32).astype(float)
    gold = np.where(np.arange(lopsided.n_tasks) % 6 == 5, 2, -1)
    model = SoftProb(ridge=0.4, scale=False).fit(X, annotations, gold=gold)
    examples, told = [], {5: 0.0, 11: 0.0}
    for task, _, share, weight in lopsided.rows_of(annotations):
        if task in told:
            told[task] += weight
        else:
            examples += [(task, label, weight * share[label]) for label in range(3)]
    # A known truth stands in for the labels of its task.
    examples += [(task, 2, max(weight, 1.0)) for task, weight in told.items()]
    task, label, weight = (np.array(column) for column in zip(*examples, strict=True))
    theirs = LogisticRegression(C=1 / 0.4, tol=1e-12, max_iter=10000)
    theirs.fit(X[task], label, sample_weight=weight)
    assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert_allclose(model.posterior_[[5, 11]], [[0, 0, 1]] * 2)


def test_labels_that_weigh_nothing_are_refused(crowd):
    nothing = replace(crowd.votes, weight=np.zeros(crowd.votes.n_annotations, np.float32))
    with pytest.raises(AnnotationError, match="to learn from"):
        SoftProb().fit(crowd.X, nothing)
    model = SoftProb().fit(crowd.X, crowd.votes)
    with pytest.raises(AnnotationError, match="to score by"):
        model.score(crowd.X, nothing)


def test_learns_from_a_crowd(crowd):
    model = SoftProb().fit(crowd.X, crowd.votes)
    assert model.score(crowd.new_X, crowd.new_truth) > 0.8
    assert (model.posterior_.argmax(axis=1) == crowd.truth).mean() > 0.85
    busy = np.bincount(crowd.votes.worker)
    right = np.bincount(crowd.votes.worker, crowd.votes.label == crowd.truth[crowd.votes.task])
    assert np.abs(model.worker_accuracy_ - right / busy).mean() < 0.08


def test_music_genres(real_crowd):
    real_crowd("mgc")
    music = feature_sets.load("mgc")
    model = SoftProb(ridge=10.0).fit(music.X, music.annotations)
    assert model.score(music.X_test, music.y_test) == pytest.approx(0.62, abs=0.03)
