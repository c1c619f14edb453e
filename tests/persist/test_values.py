"""Values to JSON and arrays and back, with their types."""

import json
import math
from datetime import UTC, date, datetime
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal, assert_series_equal
from sklearn.linear_model import LogisticRegression

from crowdwise.aggregate import DawidSkene
from crowdwise.aggregate.dawid_skene import WorkerHistory
from crowdwise.errors import FormatError, ParameterError
from crowdwise.learn import MLP, Training
from crowdwise.persist.registry import find_class, registered_name
from crowdwise.persist.values import from_json, to_json


def around(value):
    """The value after a trip through JSON."""
    arrays = {}
    tree = json.loads(json.dumps(to_json(value, "here", arrays), allow_nan=False))
    return from_json(tree, arrays)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        -(10**30),
        0.1,
        math.inf,
        -math.inf,
        "text with é, \ud800 and \0",
        [1, "1", True, None, 1.0],
        (1, (2.5, "x"), []),
        {"a": 1, 2: [3], (4, 5): {"b": ()}},
    ],
    ids=repr,
)
def test_plain_values_keep_their_types(value):
    found = around(value)
    assert found == value
    assert repr(found) == repr(value)  # 1, 1.0 and True are equal, but not the same


def test_not_a_number_stays_one():
    assert math.isnan(around(math.nan))
    assert math.isnan(around(np.float32("nan")))


@pytest.mark.parametrize("value", [np.float64(0.1), np.int32(3), np.bool_(True), np.float32(0.1)])
def test_numpy_scalars_keep_their_types(value):
    found = around(value)
    assert type(found) is type(value)
    assert found == value


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6.0).reshape(2, 3),
        np.arange(6.0).reshape(2, 3).T,
        np.arange(10)[::2],
        np.arange(3, dtype=">f8"),
        np.array(True),
        np.empty((0, 2), dtype=np.int32),
    ],
)
def test_arrays_of_numbers(value):
    found = around(value)
    assert_array_equal(found, value)
    assert found.shape == value.shape
    assert found.dtype == value.dtype.newbyteorder("=")


@pytest.mark.parametrize(
    "names",
    [
        ["b", "a", "é\n"],
        [1, "1", True, 2.5, None],
        [(1, "x"), (2, "y")],
        [np.int64(3), np.str_("z")],
        [date(2024, 5, 1), datetime(2024, 5, 1, 12, 30, 0, 7, UTC), datetime(2024, 5, 1)],
        [
            pd.Timestamp("2024-05-01 12:00:00.000000001"),
            pd.Timestamp("2024-05-01", tz="Asia/Tokyo"),
        ],
        [],
    ],
    ids=repr,
)
def test_names_of_every_type(names):
    array = np.empty(len(names), dtype=object)
    array[:] = names
    found = around(array)
    assert found.dtype == object
    assert found.tolist() == names
    plain = (int, bool, str, float, tuple, type(None), date, datetime, pd.Timestamp)
    assert all(type(b) is type(a) for a, b in zip(names, found, strict=True) if type(a) in plain)


def test_a_zone_keeps_its_name():
    names = np.array([pd.Timestamp("2024-05-01", tz="Asia/Tokyo")], dtype=object)
    assert str(around(names)[0].tz) == "Asia/Tokyo"


def test_a_zone_without_a_name_keeps_its_offset():
    names = np.array([pd.Timestamp("2024-05-01", tz="dateutil/Europe/Berlin")], dtype=object)
    assert around(names)[0] == names[0]


@pytest.mark.parametrize("unit", ["datetime64[ns]", "datetime64[D]", "timedelta64[s]", ">M8[us]"])
def test_times_keep_their_unit(unit):
    value = np.array([3, -5, 2**40 if "D" not in unit else 9], dtype=np.int64).astype(unit)
    found = around(value)
    assert found.dtype == value.dtype.newbyteorder("=")
    assert_array_equal(found, value)


def test_times_of_no_unit_are_refused():
    with pytest.raises(FormatError, match="not a type of time"):
        from_json({"kind": "times", "array": "a", "type": "object"}, {"a": np.zeros(1, np.int64)})


def test_text_arrays_keep_their_type():
    found = around(np.array(["ab", "c"]))
    assert found.dtype == np.dtype("<U2")
    assert found.tolist() == ["ab", "c"]


def test_series_and_frames():
    series = pd.Series([0.5, 1.0], index=pd.Index(["ann", "bob"], name="worker"), name="skill")
    assert_series_equal(around(series), series)
    frame = pd.DataFrame(
        [[1.0, 2.0]], index=pd.Index([7], name="task"), columns=pd.Index(["x", "y"])
    )
    assert_frame_equal(around(frame), frame)


def test_a_random_state_goes_on_where_it_was():
    generator = np.random.RandomState(5)
    generator.normal(size=3)
    again = around(generator)
    assert_array_equal(again.normal(size=700), generator.normal(size=700))


def test_tensors_keep_their_numbers():
    tensor = torch.randn(3, 2, requires_grad=True)
    assert torch.equal(around(tensor), tensor.detach())
    half = torch.tensor([0.5, 1.25], dtype=torch.bfloat16)
    assert torch.equal(around(half).bfloat16(), half)


def test_parts_of_ours():
    mlp = around(MLP((8, 4), dropout=0.5))
    assert (mlp.hidden, mlp.activation, mlp.dropout) == ((8, 4), "relu", 0.5)
    rates = {"truth": 0.1, "noise": 0.2}
    assert around(Training(learning_rate=rates)).get_params() == (
        Training(learning_rate=rates).get_params()
    )
    past = WorkerHistory(np.array(["a"], dtype=object), np.arange(2), np.ones((1, 2, 2)))
    found = around(DawidSkene(history=past, smoothing=np.full((2, 2), 0.5)))
    assert found.history.workers.tolist() == ["a"]
    assert_array_equal(found.smoothing, np.full((2, 2), 0.5))


def test_a_fitted_logistic_regression():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = LogisticRegression(C=0.3).fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    found = around(model)
    assert found.C == 0.3
    assert found.predict(X).tolist() == model.predict(X).tolist()
    assert_array_equal(found.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        object(),
        len,
        partial(print),
        b"bytes",
        np.array([1j]),
        np.array([[1, "a"]], dtype=object),
        np.array([object()], dtype=object),
        [{"deep": {1, 2}}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_file_cannot_hold_is_refused_by_its_place(value):
    with pytest.raises(ParameterError, match=r"here.* which cannot be stored without pickle"):
        to_json(value, "here", {})


def test_two_arrays_of_one_name_are_refused():
    with pytest.raises(ParameterError, match=r"Two arrays would be saved as here\.1"):
        to_json({1: np.ones(2), "1": np.zeros(2)}, "here", {})


class DawidSkeneOfMine(DawidSkene):
    pass


class LogisticRegressionOfMine(LogisticRegression):
    pass


LogisticRegressionOfMine.__name__ = "LogisticRegression"


def test_only_classes_on_the_list_have_names():
    assert registered_name(DawidSkene) == "DawidSkene"
    assert registered_name(MLP) == "MLP"
    for cls in (DawidSkeneOfMine, LogisticRegressionOfMine, dict, type(DawidSkene)):
        assert registered_name(cls) is None


@pytest.mark.parametrize(
    "name", ["os", "os.system", "Aggregator", "Learner", "_base", "LEARNERS", "", None, 3]
)
def test_other_names_are_refused(name):
    with pytest.raises(FormatError, match="no model or part named"):
        find_class(name)


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"kind": "code", "value": "1"},
        {"kind": None},
        {"kind": "record", "name": "DawidSkene", "fields": {"kind": "dict", "items": []}},
        {"kind": "scalar", "type": "O", "value": 1},
        {"kind": "scalar", "type": "M8[s]", "value": 1},
        {"kind": "estimator", "name": "History", "params": {}, "learned": {}},
    ],
    ids=str,
)
def test_forged_trees_are_refused(tree):
    with pytest.raises(FormatError):
        from_json(tree, {})
