"""Names and numbers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdwise.annotations import names as names_module
from crowdwise.annotations.names import as_names, encode, locate, note_spaces, require_unique
from crowdwise.errors import AnnotationError


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "b"],
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], dtype="category"),
        np.array(["b", "a", "b"]),
        [20, 10, 20],
        np.array([20, 10, 20], dtype=np.uint8),
        [2_000_000_000, 10, 2_000_000_000],  # too far apart for a lookup table
        [-5, -7, -5],
        np.array([100, -100, 100], dtype=np.int8),  # further apart than the type can count
        np.array([2**63 + 5, 2**63, 2**63 + 5], dtype=np.uint64),
        [1, 0, 1],
        [0.5, 0.25, 0.5],
        [True, False, True],
        [("b", 1), ("a", 2), ("b", 1)],
    ],
    ids=str,
)
def test_names_are_sorted_and_numbered(values):
    if isinstance(values, list) and isinstance(values[0], tuple):
        values = pd.Series(values)
    names, codes = encode(values, "task")
    assert codes.tolist() == [1, 0, 1]
    assert names.tolist() == sorted(set(pd.Series(values).tolist()))


def test_missing_values_have_no_number():
    names, codes = encode(pd.Series(["b", None, "a"]), "label")
    assert names.tolist() == ["a", "b"]
    assert codes.tolist() == [1, -1, 0]
    names, codes = encode(pd.Series([2.0, np.nan, 1.0]), "label")
    assert names.tolist() == [1, 2]
    assert names.dtype == np.int64
    assert codes.tolist() == [1, -1, 0]


def test_a_dense_range_with_gaps():
    names, codes = encode(np.array([7, 3, 7, 4]), "task")
    assert names.tolist() == [3, 4, 7]
    assert codes.tolist() == [2, 0, 2, 1]


def test_names_of_several_types():
    names, codes = encode(pd.Series(["1", 1, "a", 1], dtype=object), "task")
    assert names.tolist() == [1, "1", "a"]
    assert codes.tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize("make", [pd.Series, lambda v: pd.Series(v, dtype="category")])
def test_known_names(make):
    names, codes = encode(make(["b", None, "a", "b"]), "worker", ["c", "b", "a"])
    assert names.tolist() == ["c", "b", "a"]
    assert codes.tolist() == [1, -1, 2, 1]
    with pytest.raises(AnnotationError, match=r"unknown worker(.|\n)*worker='z'(.|\n)*\['a'\]"):
        encode(make(["a", "z"]), "worker", ["a"])


def test_unknown_names_are_counted_and_found_by_row():
    column = pd.Series(pd.Categorical(["a", "z", "y", "z", None], categories=["z", "y", "a"]))
    for values in (column, column.astype(object)):
        with pytest.raises(AnnotationError, match=r"3 of 5 (.|\n)*row 2: label='z'"):
            encode(values, "label", ["a"])


def test_the_categories_of_an_ordered_label_are_a_scale():
    column = pd.Categorical(["high", None, "low"], ["low", "mid", "high"], ordered=True)
    names, codes = encode(column, "label")
    assert names.tolist() == ["low", "mid", "high"]
    assert codes.tolist() == [2, -1, 0]
    assert encode(column, "task")[0].tolist() == ["high", "low"]


def test_lists_are_no_names():
    lists = pd.Series([("a", 1), ["b"], ["c"]])
    for known in (None, ["a"]):
        with pytest.raises(
            AnnotationError, match=r"task is a list or a dict in 2 rows(.|\n)*row 2: task=\['b'\]"
        ):
            encode(lists, "task", known)
    with pytest.raises(AnnotationError, match=r"A str is not a list of names(.|\n)*'ab'"):
        as_names("ab")


def test_spaces_around_names_are_noted():
    names = np.array([" a ", "a", "b", "c ", 7, "c"], dtype=object)
    (note,) = note_spaces(names, "workers")
    assert note.startswith("4 workers differ only by surrounding spaces, such as ' a ' and 'a' (")
    assert note_spaces(np.array(["a b", " c"], dtype=object), "workers") == ()
    assert note_spaces(np.arange(3), "workers") == ()


def test_names_declared_twice_or_missing():
    with pytest.raises(AnnotationError, match="label name 'a' is declared twice"):
        encode(["a"], "label", ["a", "b", "a"])
    with pytest.raises(AnnotationError, match="name of 1 of 2 tasks is missing"):
        require_unique(np.array(["a", None], dtype=object), "task")
    mixed = np.array(["a", 1], dtype=object)
    assert require_unique(mixed, "task") is mixed


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([1.0, 2.0], [1, 2]),
        ([1.5, 2.0], [1.5, 2.0]),
        ([np.inf, 1.0], [np.inf, 1.0]),
        ([1e300], [1e300]),
        (["a", 1], ["a", 1]),
        (pd.Index(["a"]), ["a"]),
        (pd.array(["a"], dtype="str"), ["a"]),
        ([("a", 1), ("b", 2)], [("a", 1), ("b", 2)]),
        ([True, False], [True, False]),
    ],
)
def test_as_names(values, names):
    assert as_names(values).tolist() == names


def test_locate():
    assert locate(np.array(["a", "b"], dtype=object), ["b", "z", "a"]).tolist() == [1, -1, 0]


def test_many_names_are_fast_enough():
    values = pd.Series([f"task-{k * 7919 % 100_003}" for k in range(200_000)])
    names, codes = encode(values, "task")
    assert names.tolist() == sorted(set(values))
    assert names[codes[17]] == values[17]


parts = st.text("ab\0\xe9\U0001f600\uffff\ud800", max_size=12)
alike = parts.map(lambda end: "the same beginning/" * 2 + end)


@settings(max_examples=100)
@given(st.lists(parts | alike | st.sampled_from([7, None]), max_size=80, unique=True))
def test_many_texts_are_sorted_as_few_are(values):
    few = encode(np.array(values, dtype=object), "task")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names_module, "MOST_SORTED", 0)
        many = encode(np.array(values, dtype=object), "task")
    assert few[0].tolist() == many[0].tolist()
    assert few[1].tolist() == many[1].tolist()
