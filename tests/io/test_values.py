"""Values without types, and of all types."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.annotations.frames import to_floats
from crowdwise.errors import FormatError
from crowdwise.io.values import encode_values, map_values, parse_names, parse_numbers


def listed(column):
    return column.astype(object).where(column.notna(), None).tolist()


@pytest.mark.parametrize("text", ["0", "7", "-7", "120", "7.0", "0.0", "1" * 18])
def test_whole_numbers(text):
    assert listed(parse_numbers(pd.Series([text], dtype=object))[0]) == [
        int(float(text)) if len(text) < 9 else int(text)
    ]


@pytest.mark.parametrize(
    "text", ["007", "-0", "1.5", "1e3", "", "+1", " 1", "1_0", "1" * 19, "\u0661", "1\n"]
)
def test_no_whole_numbers(text):
    assert listed(parse_numbers(pd.Series([text, "1"], dtype=object))[0]) == [text, "1"]


def test_one_that_is_none_keeps_all_as_text():
    first, second = parse_numbers(
        pd.Series(["1", None], dtype=object), pd.Series(["x"], dtype=object)
    )
    assert listed(first) == ["1", None]
    assert listed(second) == ["x"]


def test_two_ways_to_write_a_number_are_one_value():
    column = parse_numbers(pd.Series(["1", "1.0", "2"], dtype=object))[0]
    assert listed(column) == [1, 1, 2]
    assert column.cat.categories.tolist() == [1, 2]


def test_distinct_values_are_kept_once():
    column = encode_values(["b", None, "a", "b", float("nan")])
    assert column.categories.tolist() == ["b", "a"]
    assert column.codes.tolist() == [0, -1, 1, 0, -1]


@pytest.mark.parametrize("nested", [[1], {"a": 1}, ([1],), np.array([1])])
def test_nested_values_are_refused(nested):
    with pytest.raises(FormatError, match="where the label should be"):
        encode_values(["a", nested])


def test_integers_that_do_not_fit_stay_objects():
    assert encode_values([1, 2]).categories.dtype == np.int64
    assert encode_values([1, 2**63]).categories.dtype == object
    assert encode_values([True, 2]).categories.dtype == object


def test_values_can_be_renamed_away():
    column = map_values(pd.Series(["a", "b", "A", None]), lambda x: None if x == "b" else x.lower())
    assert listed(column) == ["a", None, "a", None]


def test_names_as_numbers():
    assert parse_names(["1", "2.0"]) == [1, 2]
    assert parse_names(["1", "x"]) == ["1", "x"]


@pytest.mark.parametrize("column", [pd.Series(["1", "2.5", None]), pd.Series([1, 2.5, np.nan])])
def test_numbers_from_text(column):
    assert to_floats(column).tolist()[:2] == [1, 2.5]
    assert to_floats(column.astype("category")).tolist()[:2] == [1, 2.5]
    assert np.isnan(to_floats(column.astype("category"))[2])


def test_what_is_no_number():
    assert to_floats(pd.Series(["1", "x"])) is None
    assert to_floats(pd.Series(["1", "x"]).astype("category")) is None


def test_an_order_outlives_new_names():
    column = pd.Series(pd.Categorical(["a", "b"], categories=["b", "a"], ordered=True))
    new = map_values(column, str.upper)
    assert new.cat.ordered
    assert new.cat.categories.tolist() == ["B", "A"]
