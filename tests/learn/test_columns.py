"""Columns of frames are remembered, and others are refused, as in scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import crowdwise
from crowdwise import embed, learn
from crowdwise.errors import CrowdwiseError
from crowdwise.laws.quick import quick
from crowdwise.learn import LIA, LIAML, NetClassifier, ResponseModel, SoftProb, SpeeLFC, Training

MODELS = [getattr(learn, name) for name in learn.LEARNERS if name != "LIAML"]
MODELS += [getattr(embed, name) for name in embed.EMBEDDERS]
NAMES = list("abcdefghij")


@pytest.fixture(scope="module")
def small(crowd):
    """Sixty tasks with named features."""
    return pd.DataFrame(crowd.X[:60], columns=NAMES), crowd.votes[:60]


def ask(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.predict_proba(X)


def refuses_other_columns(model, frame):
    with pytest.raises(CrowdwiseError, match=r"(?s)in another order.*column 0 is 'j', .* was 'a'"):
        ask(model, frame[NAMES[::-1]])
    with pytest.raises(
        CrowdwiseError, match=r"(?s)differ from.*column 2 is 'z', in fit it was 'c'"
    ):
        ask(model, frame.rename(columns={"c": "z"}))
    with pytest.raises(
        CrowdwiseError, match=r"(?s)differ from.*column 9 is none, in fit it was 'j'"
    ):
        ask(model, frame[NAMES[:-1]])


@pytest.mark.parametrize("method", MODELS, ids=lambda method: method.__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_model_remembers_its_columns(method, small, tmp_path):
    frame, votes = small
    model = quick(method()).fit(frame, votes)
    assert model.n_features_in_ == 10
    assert_array_equal(model.feature_names_in_, NAMES)
    found = np.asarray(ask(model, frame))
    assert_array_equal(np.asarray(ask(model, frame.to_numpy())), found)
    refuses_other_columns(model, frame)
    model.save(tmp_path / "model")
    again = crowdwise.load(tmp_path / "model")
    assert_array_equal(again.feature_names_in_, NAMES)
    refuses_other_columns(again, frame)
    assert not hasattr(clone(model), "feature_names_in_")
    model.fit(frame.to_numpy(), votes)
    assert not hasattr(model, "feature_names_in_")
    ask(model, frame[NAMES[::-1]])  # nothing is known to compare with


@pytest.mark.parametrize("columns", [range(10), [0, *NAMES[1:]]], ids=["numbers", "mixed"])
def test_columns_are_remembered_if_all_are_text(small, columns):
    frame, votes = small
    for model in (SoftProb(), SpeeLFC(training=Training(epochs=1))):
        model.fit(frame.set_axis(list(columns), axis=1), votes)
        assert not hasattr(model, "feature_names_in_")
        assert model.n_features_in_ == 10


def test_annotations_are_scored_on_the_columns_of_fit(small):
    frame, votes = small
    for model in (SoftProb(), SpeeLFC(training=Training(epochs=1))):
        model.fit(frame, votes)
        assert model.score(frame, votes) < 0
        with pytest.raises(CrowdwiseError, match="column 0 is 'j'"):
            model.score(frame[NAMES[::-1]], votes)
        with pytest.raises(CrowdwiseError, match="X has 9 features"):
            model.score(frame.to_numpy()[:, :9], votes)


def test_columns_pass_through_a_pipeline(small):
    frame, votes = small
    steps = make_pipeline(StandardScaler(), SoftProb()).set_output(transform="pandas")
    steps.fit(frame, votes)
    assert_array_equal(steps[-1].feature_names_in_, NAMES)
    assert_array_equal(steps.feature_names_in_, NAMES)
    assert steps.predict(frame).shape == (60,)


def test_several_label_names_remember_one_row_of_columns(small):
    frame, votes = small
    yes = crowdwise.Annotations.from_codes(votes.task, votes.worker, votes.label % 2)
    model = quick(LIAML()).fit(frame, {"p": yes, "q": yes})
    assert model.n_features_in_ == 10
    assert_array_equal(model.feature_names_in_, NAMES)
    refuses_other_columns(model, frame)


def test_a_classifier_and_who_answers_remember_columns(small, crowd):
    frame, votes = small
    net = NetClassifier(training=Training(epochs=1)).fit(frame, crowd.truth[:60])
    response = ResponseModel(training=Training(epochs=1)).fit(frame, votes)
    for model in (net, response):
        assert model.n_features_in_ == 10
        refuses_other_columns(model, frame)


def test_columns_of_worker_features_are_those_of_fit(small, tmp_path):
    frame, votes = small
    known = pd.DataFrame(np.eye(12)[:, :3], index=votes.workers, columns=["x", "y", "z"])
    model = quick(LIA()).fit(frame, votes, worker_features=known)
    model.save(tmp_path / "model")
    for fitted in (model, crowdwise.load(tmp_path / "model")):
        with pytest.raises(CrowdwiseError, match="worker_features are in another order"):
            fitted.predict_worker_proba(frame, worker_features=known[["z", "y", "x"]])
        found = fitted.predict_worker_proba(frame, worker_features=known)
        assert_array_equal(
            fitted.predict_worker_proba(frame, worker_features=known.to_numpy()), found
        )
