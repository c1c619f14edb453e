"""The same bits from memory and from files, and on any number of threads."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from crowdwise import Annotations, aggregate
from crowdwise.errors import AnnotationError, FileError
from crowdwise.inference import bag_sum
from crowdwise.inference.engines import blocks
from crowdwise.io import stream_labels

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("few_draws")
METHODS = [getattr(aggregate, name) for name in aggregate.__all__]
BLOCKWISE = [method for method in METHODS if method.traits.blockwise]
FEW = {"max_iter": 10, "n_restarts": 2, "n_bags": 4}  # bits do not depend on how many there are
WHOLE = [method for method in METHODS if not method.traits.blockwise]


@pytest.fixture(scope="module")
def stored(tmp_path_factory, voters):
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    voters.annotations.to_frame().astype({"task": str}).to_parquet(path)
    return Annotations.open(path)


@pytest.fixture(scope="module")
def loaded(stored):
    """The same annotations in memory, tasks in the same order."""
    cells = stored.cells(0, stored.n_tasks)
    task = np.repeat(np.arange(stored.n_tasks), np.diff(cells.indptr))
    columns = task, stored.pairs.worker[cells.code], stored.pairs.label[cells.code]
    tasks = np.concatenate(list(stored.task_names()))
    return Annotations.from_codes(
        *columns, tasks=tasks, workers=stored.workers, classes=stored.classes
    )


def fitted(method, votes, gold=None, **params):
    model = method()
    fewer = FEW | {"random_state": 0} | params
    model.set_params(**{name: fewer[name] for name in fewer if name in model.get_params()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(votes, gold)


@pytest.mark.usefixtures("either_loop")
@pytest.mark.parametrize("method", BLOCKWISE, ids=lambda method: method.__name__)
def test_the_same_bits_from_files_and_on_any_number_of_threads(method, stored, loaded, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 64)
    expected = fitted(method, loaded)
    numbers = (1, 2, 4, 16) if "n_jobs" in expected.get_params() else (None,)
    for n_jobs in numbers:
        params = {} if n_jobs is None else {"n_jobs": n_jobs}
        found = fitted(method, stored, **params)
        assert len(found.posterior_.edges) == 16
        assert_array_equal(found.posterior_.toarray(), expected.posterior_)
        assert getattr(found, "objective_", None) == getattr(expected, "objective_", None)
        if hasattr(expected, "skills_"):
            assert_array_equal(found.skills_, expected.skills_)


@pytest.mark.parametrize("method", BLOCKWISE, ids=lambda method: method.__name__)
def test_weights_on_disk_give_the_same_bits(method, loaded, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 64)
    weight = np.random.default_rng(0).choice([0.25, 1.0, 1.7], loaded.n_annotations)
    votes = replace(loaded, weight=weight.astype(np.float32))
    votes.to_frame().to_parquet(tmp_path / "votes.parquet")
    expected = fitted(method, votes)
    found = fitted(method, Annotations.open(tmp_path / "votes.parquet"))
    assert_array_equal(found.posterior_.toarray(), expected.posterior_)
    plain = fitted(method, loaded)
    if method.traits.weighted:
        assert np.abs(expected.posterior_ - plain.posterior_).max() > 1e-6


@pytest.mark.usefixtures("either_loop")
@pytest.mark.parametrize("method", BLOCKWISE, ids=lambda method: method.__name__)
def test_gold_on_disk_gives_the_same_bits(method, stored, loaded, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 64)
    gold = dict(zip(loaded.tasks[5::7], np.resize(loaded.classes, 43), strict=False))
    gold["not a task"] = loaded.classes[0]
    expected = fitted(method, loaded, gold)
    found = fitted(method, stored, gold)
    assert_array_equal(found.posterior_.toarray(), expected.posterior_)
    assert (expected.posterior_[5::7].max(axis=1) == 1).all()


def test_bags_on_disk_end_when_those_in_memory_do(stored, loaded, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 64)
    monkeypatch.setattr(bag_sum, "STEADY", 0.02)
    gold = dict(zip(loaded.tasks[5::7], np.resize(loaded.classes, 43), strict=False))
    expected, found = (
        fitted(aggregate.BayesBag, votes, gold, n_bags=40) for votes in (loaded, stored)
    )
    assert len(found.bags_) - found.n_second_ == len(expected.bags_) - expected.n_second_ == 31
    assert (found.power_, found.shares_) == (expected.power_, expected.shares_)
    assert_array_equal(found.posterior_.toarray(), expected.posterior_)
    assert_array_equal(found.confusion_, expected.confusion_)


def test_bags_of_any_blockwise_base_may_be_on_disk(stored, loaded, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 64)
    gold = dict(zip(loaded.tasks[5::7], np.resize(loaded.classes, 43), strict=False))
    for base in (aggregate.GLAD(max_iter=5), aggregate.MajorityVote(), aggregate.Wawa()):
        expected, found = (
            fitted(aggregate.BayesBag, votes, gold, base=base, n_bags=3)
            for votes in (loaded, stored)
        )
        assert_array_equal(found.posterior_.toarray(), expected.posterior_)
    with pytest.raises(AnnotationError, match="needs all annotations at once"):
        fitted(aggregate.BayesBag, stored, base=aggregate.MMSR())


def test_gold_on_disk_must_name_tasks_and_classes(stored):
    method = aggregate.DawidSkene()
    with pytest.raises(AnnotationError, match=r"(?s)which tasks.*a list.*dict"):
        method.fit(stored, gold=[0, 1])
    with pytest.raises(AnnotationError, match=r"(?s)No truth is for a task.*tasks such as"):
        method.fit(stored, gold={"nobody": 0})
    with pytest.raises(AnnotationError, match=r"(?s)not known|unknown|gold label 'horse'"):
        method.fit(stored, gold={next(stored.task_names())[0]: "horse"})


@pytest.mark.parametrize("method", WHOLE, ids=lambda method: method.__name__)
def test_a_method_that_needs_all_annotations_says_so(method, stored):
    with pytest.raises(AnnotationError, match=f"{method.__name__} needs all annotations in mem"):
        method().fit(stored)


def test_labels_stream_to_parquet(stored, loaded, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 64)
    model, path = fitted(aggregate.DawidSkene, stored), tmp_path / "labels.parquet"
    stream_labels(model, path, probabilities=True)
    expected = fitted(aggregate.DawidSkene, loaded)
    found = pd.read_parquet(path)
    assert found["task"].tolist() == loaded.tasks.tolist()
    assert found["label"].tolist() == expected.labels_.tolist()
    assert_array_equal(found["confidence"], expected.posterior_.max(axis=1))
    assert_array_equal(found[[f"proba_{name}" for name in loaded.classes]], expected.posterior_)
    assert len(model.posterior_) == 300
    assert model.posterior_.shape == (300, 3)


def test_what_needs_all_tasks_says_what_to_do_instead(stored, loaded, tmp_path):
    model = aggregate.MajorityVote().fit(stored)
    for name in ("labels_", "probas_", "label_codes_"):
        with pytest.raises(AnnotationError, match="stream_labels"):
            getattr(model, name)
    with pytest.raises(AnnotationError, match="on disk"):
        stream_labels(aggregate.MajorityVote().fit(loaded), tmp_path / "labels.parquet")
    with pytest.raises(FileError, match=r"\.parquet"):
        stream_labels(model, tmp_path / "labels.csv")
