"""Features on disk: the same answers, and never all rows in memory."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from torch.utils.data import Subset

from crowdwise import learn, memory
from crowdwise.errors import AnnotationError, FormatError
from crowdwise.laws.quick import quick
from crowdwise.learn import (
    EM,
    ICED,
    LEARNERS,
    LIA,
    MBEM,
    CrowdClassifier,
    SpeeLFC,
    map_features,
    search,
)
from crowdwise.nets import batches, features
from crowdwise.nets.mapped import MappedRows
from crowdwise.nets.training import Training
from crowdwise.simulate import label_by_crowd, one_coin_confusion

BATCHES = Training(epochs=3, batch_size=20, batch_of="tasks", patience=2)


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    X = (rng.normal(size=(3, 5))[truth] + rng.normal(size=(200, 5))).astype(np.float32)
    confusion = one_coin_confusion(rng.uniform(0.5, 0.95, 12), n_classes=3)
    return X, label_by_crowd(truth, confusion, per_task=3, random_state=0)


@pytest.fixture
def mapped(crowd, tmp_path):
    np.save(tmp_path / "X.npy", crowd[0])
    return map_features(tmp_path / "X.npy")


@pytest.fixture
def short_of_memory(monkeypatch):
    """Let 64 rows fit into memory at once; count how many are taken."""
    taken, rows = [0], MappedRows.rows

    def spy(self, at):
        taken[0] = max(taken[0], len(at))
        return rows(self, at)

    monkeypatch.setattr(MappedRows, "rows", spy)
    monkeypatch.setattr(features, "ROWS_AT_ONCE", 64)
    monkeypatch.setattr(features, "LARGE", 64 * 5 * 4)
    monkeypatch.setattr(memory, "available_memory", lambda: 0)
    for module in (batches, search):
        monkeypatch.setattr(module, "PART", 64 * 5)
    return taken


@pytest.mark.parametrize(
    "learner",
    [
        SpeeLFC(random_state=0),
        SpeeLFC(training=BATCHES, random_state=0),
        LIA(objective=EM(2, 2, marginal_epochs=2), training=Training(epochs=2), random_state=0),
        CrowdClassifier(training=BATCHES, random_state=0),
        ICED(training=BATCHES, rounds=2, random_state=0),
        ICED.recipe("network", training=BATCHES, rounds=2, random_state=0),
        MBEM(training=BATCHES, random_state=0),
        MBEM(random_state=0),
    ],
    ids=["search", "batches", "em", "parts", "iced", "iced network", "mbem", "mbem search"],
)
def test_features_on_disk_are_fetched_some_at_a_time(learner, crowd, mapped, short_of_memory):
    X, votes = crowd
    expected = learner.fit(X, votes)
    answers = expected.posterior_, expected.predict_proba(X), expected.confusion_
    found = learner.fit(mapped, votes)
    assert 0 < short_of_memory[0] <= 64
    own = found.posterior_, found.predict_proba(X), found.confusion_
    for value, again in zip(answers, own, strict=True):
        assert_allclose(again, value, atol=1e-5)


def test_iced_tries_no_table_that_would_not_fit(crowd, mapped, short_of_memory):
    X, votes = crowd
    found = ICED(rounds=2, random_state=0).fit(mapped, votes)
    assert 0 < short_of_memory[0] <= 64
    assert "do not fit into memory" in found.search_.why
    assert found.search_.chosen == {"rounds": 2}
    assert found.score(X, votes) > SpeeLFC(penalty=100.0, random_state=0).fit(X, votes).score(
        X, votes
    )


TABLES = {"AutoClassifier", "CrowdLab", "MALR", "Raykar", "SoftProb", "TwoStage"}
AT_ONCE = TABLES | {"PersonalClassifier", "ClusteredPersonalClassifier"}


@pytest.mark.parametrize("name", LEARNERS)
def test_no_learner_takes_more_rows_than_fit_into_memory(name, crowd, mapped, short_of_memory):
    learner = quick(getattr(learn, name)())
    if "training" in learner.get_params():
        learner.set_params(training=BATCHES)
    refused = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            learner.fit(mapped, crowd[1]).predict_proba(mapped)
        except AnnotationError as error:
            refused = "many tasks at once" in str(error)
    assert short_of_memory[0] <= 64
    assert refused == (name in AT_ONCE)


@pytest.mark.usefixtures("short_of_memory")
def test_a_dataset_is_not_taken_as_a_whole_either(mapped):
    rows = features.as_features(Subset(mapped, range(200)))
    assert len(rows.rows(torch.arange(64))) == 64
    for take in (lambda: rows.rows(torch.arange(65)), rows.table):
        with pytest.raises(AnnotationError, match=r"(?s)many tasks at once.*tasks x 5.*batches"):
            take()


def test_a_memory_mapped_array_is_left_on_disk(crowd, tmp_path):
    X, votes = crowd
    np.save(tmp_path / "X.npy", X)
    found = SpeeLFC(training=BATCHES, random_state=0).fit(
        np.load(tmp_path / "X.npy", mmap_mode="r"), votes
    )
    assert_allclose(found.posterior_, found.fit(X, votes).posterior_, atol=1e-6)


def test_a_parquet_file_goes_by_names(crowd, tmp_path):
    pytest.importorskip("pyarrow")
    X, votes = crowd
    order = np.random.default_rng(1).permutation(len(X))
    frame = pd.DataFrame(X, columns=list("abcde")).iloc[order].assign(photo=order, more="text")
    frame.to_parquet(tmp_path / "X.parquet", row_group_size=30)
    rows = map_features(tmp_path / "X.parquet", id="photo", columns=list("abcde"))
    found = SpeeLFC(training=BATCHES, random_state=0).fit(rows, votes)
    assert found.feature_names_in_.tolist() == list("abcde")
    assert_allclose(found.posterior_, found.fit(X, votes).posterior_, atol=1e-6)
    assert_array_equal(rows.rows(np.array([3, 0])), X[order[[3, 0]]])
    with pytest.raises(FormatError, match=r"(?s)'more'.*not a number.*columns="):
        map_features(tmp_path / "X.parquet", id="photo")
    with pytest.raises(FormatError, match="no column 'z'"):
        map_features(tmp_path / "X.parquet", columns=["z"])


def test_what_is_wrong_with_features_on_disk_is_reported(crowd, tmp_path):
    X, votes = crowd
    np.save(tmp_path / "X.npy", np.where(np.arange(len(X))[:, None] == 7, np.nan, X))
    with pytest.raises(AnnotationError, match=r"(?s)missing or infinite.*row 7"):
        SpeeLFC(random_state=0).fit(map_features(tmp_path / "X.npy"), votes)
    with pytest.raises(FormatError, match=r"(?s)X\.csv.*\.npy or a \.parquet"):
        map_features("X.csv")
    np.save(tmp_path / "short.npy", X[:50])
    with pytest.raises(AnnotationError, match="50"):
        SpeeLFC(random_state=0).fit(map_features(tmp_path / "short.npy"), votes)


def test_rows_may_be_asked_for_in_any_order(mapped, crowd):
    at = np.array([5, 2, 2, 190])
    assert torch.equal(mapped.rows(at), torch.from_numpy(crowd[0][at]))
    assert len(mapped) == 200
    assert torch.equal(mapped[3], torch.from_numpy(crowd[0][3]))
