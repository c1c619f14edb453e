"""What tasks look like: what is taken, what is refused, and how much of it at a time."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.sparse import csr_array, csr_matrix, random_array
from torch.utils.data import Dataset, TensorDataset

from crowdwise.embed import RLL
from crowdwise.errors import AnnotationError
from crowdwise.laws.quick import quick
from crowdwise.learn import (
    ICED,
    LIA,
    MALR,
    MBEM,
    ClusteredPersonalClassifier,
    CoNAL,
    CrowdAR,
    CrowdLab,
    PersonalClassifier,
    Raykar,
    SoftProb,
    SpeeLFC,
    SpeeLFCD,
    Training,
    TwoStage,
)
from crowdwise.nets import features as _features
from crowdwise.nets.features import Features, as_features, rows_at_once
from crowdwise.nets.modules import Standardize

PLAIN = [SoftProb, Raykar, MALR, PersonalClassifier, ClusteredPersonalClassifier]
PLAIN += [TwoStage, CrowdLab]


class Rows(Dataset):
    """A dataset that is never seen as a whole, and remembers what was asked."""

    def __init__(self, X):
        self.X = torch.as_tensor(np.asarray(X), dtype=torch.float32)

    def __len__(self):
        return len(self.X)

    def __getitem__(self, row):
        return self.X[row]


@pytest.mark.parametrize("method", [*PLAIN, SpeeLFC], ids=lambda method: method.__name__)
@pytest.mark.parametrize("kind", [csr_array, csr_matrix, Rows, np.asarray, torch.as_tensor])
def test_missing_values_are_found_in_any_kind_of_features(method, kind, crowd):
    X = crowd.X[:60].copy()
    X[7, 2], X[9, 0] = np.nan, np.inf
    with pytest.raises(
        AnnotationError, match=r"(?s)missing or infinite.*first:    row 7, column 2"
    ):
        quick(method()).fit(kind(X), crowd.votes[:60])


def test_missing_values_are_found_in_what_is_predicted(crowd):
    X = crowd.X[:60].copy()
    X[7, 2] = np.nan
    for model in (SoftProb(), SpeeLFC(training=Training(epochs=1))):
        model.fit(crowd.X[:60], crowd.votes[:60])
        for kind in (csr_array, Rows):
            with pytest.raises(AnnotationError, match=r"1 values .*missing"):
                model.predict(kind(X))


WRONG = {
    "complex": (np.ones((60, 2)) * 1j, "complex numbers"),
    "complex tensor": (torch.ones(60, 2) * 1j, "complex numbers"),
    "complex sparse": (csr_array(np.ones((60, 2)) * 1j), "complex numbers"),
    "complex frame": (pd.DataFrame({"x": np.ones(60) * 1j}), "complex numbers"),
    "no columns": (np.ones((60, 0)), r"shape \(60, 0\)"),
    "no columns, sparse": (csr_array((60, 0)), r"shape \(60, 0\)"),
    "flat": (np.ones(60), r"shape \(60,\)"),
    "flat tensor": (torch.ones(60), r"shape \(60,\)"),
    "number": (5.0, r"shape \(\)"),
    "array of no dimension": (np.array(5.0), r"shape \(\)"),
}


@pytest.mark.parametrize(("X", "message"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("method", [SoftProb, TwoStage, SpeeLFC, LIA, ICED, RLL])
def test_features_are_rows_of_real_numbers(method, X, message, crowd):
    with pytest.raises(AnnotationError, match=message):
        quick(method()).fit(X, crowd.votes[:60])


@pytest.mark.parametrize("X", [None, torch.arange(60)], ids=["none", "numbers of tasks"])
@pytest.mark.parametrize("method", [SoftProb, TwoStage, SpeeLFC, ICED, RLL])
def test_tasks_without_features_are_for_methods_that_embed_them(method, X, crowd):
    with pytest.raises(ValueError, match="rows of numbers"):
        quick(method()).fit(X, crowd.votes[:60])
    assert quick(LIA()).fit(X, crowd.votes[:60]).posterior_.shape == (60, 3)


def test_without_features_a_task_has_one_embedding(crowd):
    model = quick(LIA()).fit(None, crowd.votes[:60])
    tables = [part for part in model.net_.modules() if isinstance(part, torch.nn.Embedding)]
    assert len(tables) == 1
    assert tables[0].weight.shape[0] == 60
    tasks = torch.arange(60)
    truth, able = model.predict_proba(tasks), model.predict_worker_accuracy(tasks)
    with torch.no_grad():
        tables[0].weight += 1.0
    assert not np.allclose(model.predict_proba(tasks), truth)
    assert not np.allclose(model.predict_worker_accuracy(tasks), able)


def test_a_tensor_with_a_gradient_is_taken_without_it(crowd):
    X = torch.as_tensor(crowd.X[:60], dtype=torch.float32).requires_grad_()
    for model in (SoftProb(), SpeeLFC(training=Training(epochs=1), random_state=0)):
        model.fit(X, crowd.votes[:60])
        expected = model.fit(X.detach(), crowd.votes[:60]).predict_proba(X.detach())
        assert_allclose(model.predict_proba(X), expected)


@pytest.mark.parametrize("method", [SoftProb, SpeeLFC])
def test_as_many_rows_as_tasks(method, crowd):
    for X in (crowd.X[:59], csr_array(crowd.X[:59]), Rows(crowd.X[:59])):
        with pytest.raises(AnnotationError, match="59 rows, but there are 60 tasks"):
            quick(method()).fit(X, crowd.votes[:60])


@pytest.mark.parametrize("kind", [csr_array, csr_matrix, Rows])
def test_scales_are_measured_without_a_whole_table(kind, monkeypatch):
    X = random_array((500, 7), density=0.3, random_state=0).toarray() * 100 + [0, 1e4, *[0] * 5]
    X[:, 3] = 0.25  # constant
    features = as_features(kind(X))
    monkeypatch.setattr(_features, "CELLS_AT_ONCE", 70)
    largest = watched(monkeypatch)
    found = Standardize.by(*features.spread(torch.device("cpu")))
    assert max(largest, default=0) <= 10
    deviation = X.std(axis=0)
    deviation[3] = 1.0
    assert_allclose(found.mean, X.mean(axis=0), rtol=1e-5)
    assert_allclose(found.scale, deviation, rtol=1e-4)


def watched(monkeypatch):
    """How many rows were fetched together, each time."""
    sizes, rows = [], Features.rows

    def counted(self, chosen):
        sizes.append(len(chosen))
        return rows(self, chosen)

    monkeypatch.setattr(Features, "rows", counted)
    return sizes


@pytest.mark.parametrize("kind", [csr_array, Rows, np.asarray])
@pytest.mark.parametrize("method", [SpeeLFC, SpeeLFCD, CoNAL, CrowdAR])
def test_no_step_of_a_fit_in_batches_takes_all_rows(method, kind, crowd, monkeypatch):
    X, votes = crowd.X[:200], crowd.votes[:200]
    training = Training(epochs=2, batch_size=16, device="cpu")
    model = method(training=training, scale=kind is csr_array, random_state=0)
    whole = model.fit(kind(X), votes)
    learned = {name: value for name, value in vars(whole).items() if name.endswith("_")}
    found = whole.predict_worker_accuracy(X)
    monkeypatch.setattr(_features, "CELLS_AT_ONCE", 320)
    sizes = watched(monkeypatch)
    again = model.fit(kind(X), votes)
    assert max(sizes) <= 32
    for name in ("posterior_", "confusion_", "difficulty_", "common_share_"):
        if name in learned:
            assert_allclose(getattr(again, name), learned[name], atol=1e-5)
    sizes.clear()
    assert_allclose(again.predict_worker_accuracy(X), found, atol=1e-5)
    assert max(sizes) == 1  # twelve workers with a matrix each are more than enough


def test_difficulty_is_computed_in_pieces(crowd, monkeypatch):
    model = quick(LIA())
    whole = model.fit(crowd.X, crowd.votes).difficulty_
    monkeypatch.setattr(_features, "CELLS_AT_ONCE", 320)
    assert_allclose(model.fit(crowd.X, crowd.votes).difficulty_, whole, atol=1e-5)


def test_a_posterior_that_rests_on_all_tasks_is_computed_at_once(crowd, monkeypatch):
    model = quick(MBEM())
    whole = model.fit(crowd.X, crowd.votes).posterior_
    monkeypatch.setattr(_features, "CELLS_AT_ONCE", 320)
    assert_allclose(model.fit(crowd.X, crowd.votes).posterior_, whole, atol=1e-5)


@pytest.mark.parametrize(
    ("cells", "rows"), [(1, 8192), (0, 8192), (512, 8192), (1024, 4096), (1 << 22, 1), (1 << 30, 1)]
)
def test_rows_that_need_more_are_taken_fewer_at_a_time(cells, rows):
    assert rows_at_once(cells) == rows


def test_an_item_of_a_dataset_may_have_a_label(crowd):
    X = torch.as_tensor(crowd.X[:60], dtype=torch.float32)
    features = as_features(TensorDataset(X, torch.zeros(60)))
    assert_allclose(features.rows(torch.tensor([3, 5])), X[[3, 5]])
