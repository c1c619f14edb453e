"""The same answers on a device as in memory: torch on the CPU runs the code of a GPU."""

import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crowdwise import Annotations, aggregate, persist
from crowdwise.errors import AnnotationError, MissingExtraError, ParameterError
from crowdwise.inference import engines
from crowdwise.inference.engines import blocks

torch = pytest.importorskip("torch")

from crowdwise.inference.engines import device, sorted_cells  # noqa: E402

METHODS = [getattr(aggregate, name) for name in aggregate.__all__]
ABLE = [method for method in METHODS if "device" in method().get_params()]
NAMES = {"ids": lambda method: method.__name__}
LEARNED = ("prior_", "confusion_", "accuracy_", "weights_", "knowing_counts_", "subtypes_")


@pytest.fixture(scope="module")
def votes(voters):
    """Tasks without a label, one with many, workers of any weight."""
    some = voters.annotations[:150]
    rng = np.random.default_rng(0)
    task = np.concatenate([some.task, np.full(300, 7)])
    worker = np.concatenate([some.worker, rng.integers(0, some.n_workers, 300)])
    label = np.concatenate([some.label, rng.integers(0, some.n_classes, 300)])
    return Annotations.from_codes(
        task, worker, label, tasks=some.tasks, workers=some.workers, classes=some.classes
    )


def fitted(method, votes, gold=None, **params):
    model = method(**params)
    few = {"random_state": 0, "max_iter": 12, "n_restarts": 2, "n_bags": 6}
    model.set_params(**{name: few[name] for name in few.keys() & model.get_params().keys()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(votes, gold)


@pytest.fixture(params=["float64", "float32"])
def kind(request, monkeypatch):
    """P(truth) between the steps, as on the CPU and as on a GPU."""
    there = device.Device(torch.device("cpu"), getattr(torch, request.param))
    monkeypatch.setattr(device.Device, "find", lambda _: there)
    return request.param


@pytest.mark.parametrize("gold", [None, {0: 1, 5: 0, 11: 2}], ids=["alone", "gold"])
@pytest.mark.parametrize("method", ABLE, **NAMES)
def test_a_device_gives_the_answers_of_memory(method, gold, votes, kind):
    exact = {"rtol": 1e-9, "atol": 1e-10} if kind == "float64" else {"rtol": 1e-5, "atol": 1e-6}
    expected, found = fitted(method, votes, gold), fitted(method, votes, gold, device="cpu")
    assert_allclose(found.posterior_, expected.posterior_, **exact)
    for name in LEARNED:
        if hasattr(expected, name):
            assert_allclose(getattr(found, name), getattr(expected, name), **exact)
    if hasattr(expected, "objective_"):
        assert_allclose(found.objective_, expected.objective_, rtol=1e-7)
    again = fitted(method, votes, gold, device="cpu")
    assert_array_equal(again.posterior_, found.posterior_)


@pytest.mark.parametrize("method", ABLE, **NAMES)
def test_any_cut_and_unequal_annotations(method, weighted_voters, monkeypatch):
    monkeypatch.setattr(sorted_cells, "PER_TILE", 5)
    monkeypatch.setattr(sorted_cells, "TASKS_AT_ONCE", 7)
    expected = fitted(method, weighted_voters)
    found = fitted(method, weighted_voters, device="cpu")
    assert_allclose(found.posterior_, expected.posterior_, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_labels_that_are_distributions(voters, voting):
    votes = voters.annotations[:50]
    soft = np.random.default_rng(0).dirichlet(np.ones(votes.n_classes), votes.n_annotations)
    votes = replace(votes, soft=soft, label=soft.argmax(axis=1).astype(votes.label.dtype))
    for method in (aggregate.MajorityVote(voting=voting), aggregate.DawidSkene()):
        expected, found = (clone(method).set_params(device=d).fit(votes) for d in (None, "cpu"))
        assert_allclose(found.posterior_, expected.posterior_, rtol=1e-9, atol=1e-10)


def test_other_tasks_are_judged_on_the_device(voters):
    first, rest = voters.annotations[:100], voters.annotations[100:]
    expected, found = (aggregate.IBCC(device=d).fit(first) for d in (None, "cpu"))
    assert_allclose(found.predict_proba(rest), expected.predict_proba(rest), rtol=1e-9)
    stranger = replace(rest, workers=np.array([f"new-{w}" for w in rest.workers], dtype=object))
    assert_allclose(found.predict_proba(stranger), expected.predict_proba(stranger), rtol=1e-9)


@pytest.mark.parametrize("method", [aggregate.DawidSkene, aggregate.MACE, aggregate.Wawa], **NAMES)
def test_annotations_on_disk_are_brought_to_the_device(method, voters, tmp_path, monkeypatch):
    monkeypatch.setattr(device, "TASKS_AT_ONCE", 77)
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 64)
    path = tmp_path / "votes.parquet"
    pytest.importorskip("pyarrow")
    voters.annotations.to_frame().astype({"task": str}).to_parquet(path)
    stored = Annotations.open(path)
    gold = {name: voters.annotations.classes[0] for name in next(stored.task_names())[:3]}
    expected, found = (fitted(method, stored, gold, device=d) for d in (None, "cpu"))
    posteriors = found.posterior_.toarray(), expected.posterior_.toarray()
    assert_allclose(*posteriors, rtol=1e-9, atol=1e-10)


def test_a_model_is_saved_with_its_device_and_loads_without_it(voters, tmp_path):
    model = aggregate.DawidSkene(device="cpu").fit(voters.annotations)
    model.save(tmp_path / "model")
    again = persist.load(tmp_path / "model")
    assert again.device == "cpu"
    again.set_params(device="cuda:7")
    with pytest.raises(ParameterError, match=r"(?s)no such GPU.*set_params\(device=None\)"):
        again.predict(voters.annotations)
    same = again.set_params(device=None).predict(voters.annotations)
    assert same.tolist() == model.labels_.tolist()


@pytest.mark.parametrize("name", ["mps", "gpu", "cuda:-1", ""])
def test_an_unknown_device_is_refused(name, voters):
    with pytest.raises(ParameterError, match=r"(?s)device=.*cpu, cuda"):
        aggregate.Wawa(device=name).fit(voters.annotations)


def test_without_torch_the_extra_is_named(voters, monkeypatch):
    monkeypatch.setitem(sys.modules, "crowdwise.inference.engines.device", None)
    monkeypatch.delattr(engines, "device", raising=False)
    with pytest.raises(MissingExtraError, match=r"PyTorch.*\n.*crowdwise\[torch\]"):
        aggregate.Wawa(device="cuda").fit(voters.annotations)


def test_what_does_not_fit_is_refused_with_what_it_would_take(monkeypatch):
    there = device.Device.find("cpu")
    monkeypatch.setattr(device.memory, "available_memory", lambda: 10_000_000)
    with pytest.raises(AnnotationError, match=r"(?s)device='cpu' would need about 72 MB.*10 MB"):
        there.refuse_too_large((200_000, 1_000_000, 4_000), 4)
    with pytest.raises(AnnotationError, match=r"(?s)too many for a device.*2,147,483,647"):
        there.refuse_too_large((10, 3_000_000_000, 4), 4)


def test_aggregate_does_not_import_torch():
    code = "import sys, crowdwise.aggregate; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("method", ABLE, **NAMES)
def test_a_gpu_gives_the_answers_of_memory(method, votes):
    expected, found = fitted(method, votes), fitted(method, votes, device="cuda")
    assert_allclose(found.posterior_, expected.posterior_, rtol=1e-5, atol=1e-6)
    again = fitted(method, votes, device="cuda")
    assert_array_equal(again.posterior_, found.posterior_)


def test_bags_of_another_base_are_refused(votes):
    with pytest.raises(ParameterError, match=r"(?s)GLAD cannot be fitted on another device"):
        aggregate.BayesBag(aggregate.GLAD(), device="cpu").fit(votes)


def test_a_device_without_memory_left_says_what_to_do(votes, monkeypatch):
    def sweep(*_, **__):
        raise torch.OutOfMemoryError("Tried to allocate 20 GiB. And more.")

    monkeypatch.setattr(sorted_cells.SortedCells, "sweep", sweep)
    with pytest.raises(AnnotationError, match=r"(?s)not enough memory on cpu.*20 GiB\n.*a part of"):
        aggregate.DawidSkene(device="cpu").fit(votes)
