"""The same answers on a device as in memory: torch on the CPU runs the code of a GPU."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crowdwise import Annotations, aggregate
from crowdwise.errors import AnnotationError, ParameterError

torch = pytest.importorskip("torch")

from crowdwise.inference.engines import device, sorted_cells  # noqa: E402

METHODS = [getattr(aggregate, name) for name in aggregate.__all__]
ABLE = [method for method in METHODS if "device" in method().get_params()]
NAMES = dict(ids=lambda method: method.__name__)
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
    few = {"random_state": 0, "max_iter": 12, "n_restarts": 2}
    model.set_params(**{name: few[name] for name in few.keys() & model.get_params().keys()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(votes, gold)


@pytest.fixture(params=["float64", "float32"])
def kind(request, monkeypatch):
    """P(truth) between the steps, as on the CPU and as on a GPU."""
    there = device.Device(torch.device("cpu"), getattr(torch, request.param))
    monkeypatch.setattr(device.Device, "find", lambda name: there)
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert_array_equal(found.fit(votes, gold).posterior_, fitted(method, votes, gold, device="cpu").posterior_)
