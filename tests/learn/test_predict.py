"""What is asked of learners: before a fit, with annotations in a frame, of workers by name."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from torch import nn

import crowdwise
from crowdwise import learn
from crowdwise.embed import RLL
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.laws.quick import quick
from crowdwise.learn import ICED, SoftProb, SpeeLFC, Training

MODELS = [getattr(learn, name) for name in learn.LEARNERS]
BRIEF = Training(epochs=2)


@pytest.mark.parametrize("method", MODELS, ids=lambda method: method.__name__)
@pytest.mark.parametrize("verb", ["predict", "predict_proba", "predict_worker_proba"])
def test_a_model_that_is_not_fitted_says_so(method, verb, crowd):
    if hasattr(method, verb):
        with pytest.raises(NotFittedError):
            getattr(method(), verb)(crowd.X)


@pytest.mark.parametrize("model", [SoftProb(), SpeeLFC(training=BRIEF)], ids=["plain", "network"])
def test_annotations_are_scored_in_every_shape_that_fit_takes(model, crowd):
    table = crowd.votes.to_frame()
    model.fit(crowd.X, table)
    expected = model.score(crowd.X, crowd.votes)
    wide = crowd.votes.to_matrix()
    for given in (table, wide, wide.to_numpy(), crowd.votes.to_dict()):
        assert model.score(crowd.X, given) == pytest.approx(expected)
    assert model.score(crowd.X, crowd.truth) > 0


@pytest.mark.parametrize("model", [SoftProb(), SpeeLFC(training=BRIEF)], ids=["plain", "network"])
def test_workers_are_a_list_or_one_name(model, crowd):
    model.fit(crowd.X, crowd.votes)
    assert model.predict_worker_proba(crowd.X, workers=3).shape == (400, 1, 3)
    assert model.predict_worker_proba(crowd.X, workers=np.array(3)).shape == (400, 1, 3)
    with pytest.raises(AnnotationError, match="A set is not a list of names"):
        model.predict_worker_proba(crowd.X, workers={0, 1})


MISFITS = {
    "one logit": (nn.Linear(10, 1), r"first:    \(2, 1\)"),
    "too many": (nn.Linear(10, 4), r"first:    \(2, 4\)"),
    "other features": (nn.Linear(9, 3), "first:    RuntimeError: mat1 and mat2"),
    "two tensors": (nn.LSTM(10, 3), r"first:    \(tensor"),
    "one row": (nn.Sequential(nn.Linear(10, 3), nn.Flatten(0)), r"first:    \(6,\)"),
}


@pytest.mark.parametrize(("truth", "message"), MISFITS.values(), ids=MISFITS)
@pytest.mark.parametrize("method", [SpeeLFC, ICED])
def test_a_truth_model_makes_a_logit_for_each_class(method, truth, message, crowd):
    with pytest.raises(ParameterError, match=f"(?s)into logits.*{message}.*into .2, 3."):
        quick(method(truth=truth)).fit(crowd.X, crowd.votes)


def test_a_function_makes_a_module(crowd):
    with pytest.raises(ParameterError, match="3 is not a network"):
        SpeeLFC(truth=lambda *_: 3).fit(crowd.X, crowd.votes)


def test_a_truth_model_is_tried_without_a_trace(crowd):
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm, self.calls = nn.Linear(10, 3), nn.BatchNorm1d(3), []

        def forward(self, x):
            self.calls.append((self.training, len(x), int(self.norm.num_batches_tracked)))
            return self.norm(nn.functional.dropout(self.linear(x), training=True))

    model = SpeeLFC(truth=Noisy(), training=BRIEF, random_state=0).fit(crowd.X, crowd.votes)
    first, second = model.net_.truth.calls[:2]
    assert first == (False, 2, 0)
    assert second == (True, 400, 0)


def test_an_encoder_makes_vectors(crowd):
    for encoder in (nn.Linear(9, 3), lambda _: 3):
        with pytest.raises(ParameterError, match="encoder does not turn these features"):
            quick(RLL(encoder=encoder)).fit(crowd.X, crowd.votes)


def test_a_saved_model_still_knows_its_shape(crowd, tmp_path):
    SpeeLFC(training=BRIEF).fit(crowd.X, crowd.votes).save(tmp_path / "model")
    with pytest.raises(AnnotationError, match="X has 9 features"):
        crowdwise.load(tmp_path / "model").predict(crowd.X[:, :9])
