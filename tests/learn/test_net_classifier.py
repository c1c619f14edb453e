"""A network as a plain classifier."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from crowdwise.learn import MLP, NetClassifier, Training


def test_equals_a_logistic_regression(crowd):
    ours = NetClassifier(training=Training(learning_rate=0.05, epochs=800), random_state=0)
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], 400)
    ours.fit(crowd.X, crowd.truth, sample_weight=weight)
    theirs = LogisticRegression(C=np.inf, max_iter=2000)
    theirs.fit(crowd.X, crowd.truth, sample_weight=weight)
    least = log_loss(crowd.truth, theirs.predict_proba(crowd.X), sample_weight=weight)
    assert ours.learner_.history_.loss[-1] == pytest.approx([least], abs=2e-3)
    found = log_loss(crowd.truth, ours.predict_proba(crowd.X), sample_weight=weight)
    assert found == pytest.approx(least, abs=2e-3)
    assert np.isfinite(ours.learner_.posterior_).all()


def test_classes_keep_their_names(crowd):
    names = np.array(["x", "y", "z"])[crowd.truth]
    model = NetClassifier(truth=MLP((8,)), random_state=0).fit(crowd.X, names)
    assert model.classes_.tolist() == ["x", "y", "z"]
    assert model.score(crowd.new_X, np.array(["x", "y", "z"])[crowd.new_truth]) > 0.85


def test_rows_are_found_by_their_place(crowd):
    # An index that looks like other rows' numbers must not move them.
    frame = pd.DataFrame(crowd.X, index=np.random.default_rng(0).permutation(400))
    settings = {"training": Training(epochs=50), "random_state": 0}
    named, plain = (NetClassifier(**settings).fit(X, crowd.truth) for X in (frame, crowd.X))
    assert_allclose(named.predict_proba(frame), plain.predict_proba(crowd.X))


def test_restarts_and_images(crowd):
    images = torch.as_tensor(crowd.X, dtype=torch.float32).reshape(400, 1, 2, 5)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(10, 3))
    training = Training(epochs=60, n_restarts=2, learning_rate=0.05)
    model = NetClassifier(truth=net, training=training, random_state=0).fit(images, crowd.truth)
    assert model.score(images, crowd.truth) > 0.85


def test_scikit_learn_takes_it(crowd):
    model = NetClassifier(training=Training(epochs=50), random_state=0)
    assert cross_val_score(model, crowd.X, crowd.truth, cv=3).mean() > 0.85


def test_refuses_what_makes_no_sense(crowd):
    with pytest.raises(ValueError, match="scale"):
        NetClassifier(scale="yes").fit(crowd.X, crowd.truth)
