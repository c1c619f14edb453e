"""A fit that fails leaves the model as it was: whole, or unfitted."""

from functools import wraps

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from crowdwise import Annotations, embed, learn
from crowdwise.base import Embedder
from crowdwise.laws.quick import quick
from crowdwise.learn import LIA, LIAML, CrowdClassifier, CrowdLab, ResponseModel, SpeeLFC, Training
from crowdwise.nets.loop import TrainingError

MODELS = [getattr(learn, name) for name in learn.LEARNERS if name not in ("LIAML", "Committee")]
MODELS += [getattr(embed, name) for name in embed.EMBEDDERS]


def breaks_late(method, monkeypatch):
    """Let the last of what a fit does be an interruption."""
    last = "_describe" if issubclass(method, CrowdClassifier) else "_fit"
    last = "_review" if issubclass(method, Embedder) else last
    whole = getattr(method, last)

    @wraps(whole)
    def broken(*args, **kwargs):
        whole(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(method, last, broken)


def other_labels(votes):
    return Annotations.from_codes(votes.task, votes.worker, votes.label % 2, classes=["no", "yes"])


@pytest.mark.parametrize("method", MODELS, ids=lambda method: method.__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_failed_fit_changes_nothing(method, crowd, monkeypatch):
    X, votes = crowd.X[:60], crowd.votes[:60]
    model, fresh = quick(method()).fit(X, votes), quick(method())
    before, ask = dict(vars(model)), "transform" if hasattr(model, "transform") else "predict"
    found = getattr(model, ask)(X)
    breaks_late(method, monkeypatch)
    for one in (model, fresh):
        with pytest.raises(KeyboardInterrupt):
            one.fit(X[:, :5], other_labels(votes))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    assert_array_equal(getattr(model, ask)(X), found)
    with pytest.raises(NotFittedError):
        getattr(fresh, ask)(X)


def test_a_fit_that_diverges_changes_nothing(crowd):
    model = SpeeLFC(training=Training(epochs=5), random_state=0).fit(crowd.X, crowd.votes)
    found = model.predict(crowd.X)
    model.set_params(training=Training(epochs=9, learning_rate=1e38, optimizer="sgd"))
    with pytest.raises(TrainingError):
        model.fit(crowd.X, other_labels(crowd.votes))
    assert_array_equal(model.predict(crowd.X), found)


def test_parts_fitted_around_a_learner_belong_to_it(crowd, monkeypatch):
    X, votes = crowd.X[:60], crowd.votes[:60]
    model = quick(LIA(response=ResponseModel(training=Training(epochs=1)))).fit(X, votes)
    before = dict(vars(model))
    monkeypatch.setattr(ResponseModel, "_member", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, other_labels(votes))
    assert all(vars(model)[name] is value for name, value in before.items())


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_label_names_belong_to_the_model_that_was_fitted(crowd, monkeypatch):
    X, votes = crowd.X[:60], crowd.votes[:60]
    yes = Annotations.from_codes(votes.task, votes.worker, votes.label % 2)
    model = quick(LIAML()).fit(X, {"p": yes, "q": yes})
    monkeypatch.setattr(LIAML, "_describe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, {"r": yes})
    assert model.label_names_.tolist() == ["p", "q"]
    assert model.predict_proba(X).shape == (60, 2)


def test_a_classifier_of_an_earlier_fit_is_forgotten(crowd):
    model = CrowdLab(random_state=0).fit(crowd.X, crowd.votes)
    proba = np.full((400, 3), 1 / 3)
    model.fit(None, crowd.votes, pred_probs=proba)
    assert not hasattr(model, "classifier_")
    assert not hasattr(model, "n_features_in_")
