"""Softmax regression against scikit-learn's, and the verbs of learners without a network."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from crowdwise.base.fitting import in_task_order
from crowdwise.errors import AnnotationError
from crowdwise.learn import Raykar, SoftProb
from crowdwise.learn.softmax_regression import penalty, softmax_regression
from crowdwise.nets.features import take

RNG = np.random.default_rng(5)
FEATURES = RNG.normal(size=(60, 4)) * [1.0, 3.0, 0.2, 1.0] + [0.0, 5.0, 0.0, -1.0]
DESIGN = np.hstack([FEATURES, np.ones((60, 1))])
TARGET = RNG.dirichlet([0.4, 0.8, 1.5], 60) * RNG.uniform(0.0, 3.0, (60, 1))


@pytest.mark.parametrize("ridge", [0.1, 4.0])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_softmax_regression_equals_scikit_learns(ridge, kind):
    weights = softmax_regression(kind(DESIGN), TARGET, ridge, np.zeros((5, 3)))
    row, label = np.nonzero(TARGET)
    theirs = LogisticRegression(C=1.0 / ridge, tol=1e-10, max_iter=5000)
    theirs.fit(FEATURES[row], label, sample_weight=TARGET[row, label])
    found = softmax(DESIGN @ weights, axis=1)
    assert_allclose(found, theirs.predict_proba(FEATURES), atol=2e-5)


def test_the_intercept_is_not_penalized():
    weights = np.array([[1.0, -2.0], [3.0, 0.0], [100.0, -100.0]])
    assert penalty(weights, 0.5) == pytest.approx(0.25 * (1 + 4 + 9))
    lone = np.zeros((10, 2))
    lone[:, 0], lone[:, 1] = 0.9, 0.1
    found = softmax_regression(np.ones((10, 1)), lone, 1e6, np.zeros((1, 2)))
    assert_allclose(softmax(found), [[0.9, 0.1]], atol=1e-6)


def test_scaling_uses_the_training_rows(crowd):
    shifted = crowd.X * 100.0 + 7.0
    plain, moved = (SoftProb().fit(X, crowd.votes) for X in (crowd.X, shifted))
    assert_allclose(
        moved.predict_proba(crowd.new_X * 100.0 + 7.0), plain.predict_proba(crowd.new_X), atol=1e-3
    )
    raw = SoftProb(scale=False).fit(shifted, crowd.votes)
    assert np.abs(raw.weights_[:-1]).max() < np.abs(moved.weights_[:-1]).max() / 10


def test_sparse_features_stay_sparse(crowd):
    thin = np.where(np.abs(crowd.X) > 1.0, crowd.X, 0.0)
    dense, sparse = (SoftProb(scale=False).fit(X, crowd.votes) for X in (thin, csr_array(thin)))
    assert_allclose(sparse.weights_, dense.weights_, atol=1e-3)
    assert_allclose(sparse.predict_proba(csr_array(thin)), dense.predict_proba(thin), atol=1e-4)
    scaled = SoftProb().fit(csr_array(thin), crowd.votes)
    assert not scaled.scaler_.with_mean
    assert scaled.score(csr_array(thin), crowd.truth) > 0.6


def test_other_features_are_refused(crowd):
    model = SoftProb().fit(crowd.X, crowd.votes)
    with pytest.raises(AnnotationError, match="X has 9 features"):
        model.predict(crowd.X[:, :9])
    with pytest.raises(AnnotationError, match="not rows of numbers"):
        SoftProb().fit(np.zeros((400, 2, 2)), crowd.votes)
    with pytest.raises(AnnotationError, match="X has 399 rows"):
        SoftProb().fit(crowd.X[:399], crowd.votes)


@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_the_likelihood_of_labels_equals_the_plain_loops(lopsided, options):
    annotations = lopsided.votes(**options)
    X = np.random.default_rng(1).normal(size=(lopsided.n_tasks, lopsided.n_in))
    model = Raykar(smoothing=0.5, max_iter=3, tol=0).fit(X[:10], annotations[:10])
    strange = annotations.select_workers([0, 1, 2])
    names = np.array(["new", 1, 2, 3, 4], dtype=object)
    strange = type(annotations)(**{**vars_of(strange), "workers": names})
    truth, value, total = model.predict_proba(X), 0.0, 0.0
    for task, worker, share, weight in lopsided.rows_of(strange):
        table = model.confusion_.mean(axis=0) if worker == 0 else model.confusion_[worker]
        for label in range(lopsided.n_classes):
            value += weight * share[label] * np.log(truth[task] @ table[:, label])
        total += weight
    assert model.score(X, strange) == pytest.approx(value / total)


def vars_of(annotations):
    return {name: getattr(annotations, name) for name in annotations.__dataclass_fields__}


def test_labels_that_fit_never_saw_are_refused_in_scores(crowd):
    model = SoftProb().fit(crowd.X, crowd.votes)
    other = type(crowd.votes)(**{**vars_of(crowd.new_votes), "classes": np.array([0, 1, 7])})
    with pytest.raises(AnnotationError, match="unknown label"):
        model.score(crowd.new_X, other)


def test_workers_are_predicted_through_their_confusion(crowd):
    model = Raykar().fit(crowd.X, crowd.votes)
    truth = model.predict_proba(crowd.new_X[:5])
    found = model.predict_worker_proba(crowd.new_X[:5], [3, "nobody"])
    right = model.predict_worker_accuracy(crowd.new_X[:5], [3, "nobody"])
    for place, table in enumerate((model.confusion_[3], model.confusion_.mean(axis=0))):
        for row in range(5):
            assert_allclose(found[row, place], truth[row] @ table)
            assert_allclose(right[row, place], sum(truth[row, k] * table[k, k] for k in range(3)))
    expected = [np.diag(t) @ model.posterior_.mean(axis=0) for t in model.confusion_]
    assert_allclose(model.worker_accuracy_, expected)


@pytest.mark.parametrize(
    "table",
    [np.arange(8).reshape(4, 2), csr_array(np.arange(8).reshape(4, 2)), list("abcd")],
    ids=["array", "sparse", "list"],
)
def test_rows_are_taken_from_anything(table):
    found = take(table, np.array([2, 0, 2]))
    expected = ["c", "a", "c"] if isinstance(table, list) else [[4, 5], [0, 1], [4, 5]]
    assert (
        found.toarray() if hasattr(found, "toarray") else np.asarray(found)
    ).tolist() == expected


def test_frames_are_put_in_the_order_of_tasks():
    frame = pd.DataFrame({"x": [1, 2, 3]}, index=["a", "b", "c"])
    assert in_task_order(frame, np.array(["c", "a"], dtype=object))["x"].tolist() == [3, 1]
    other = pd.DataFrame({"x": [1, 2]}, index=["y", "z"])
    assert in_task_order(other, np.array(["a", "b"], dtype=object)) is other
