"""Indices that say which task a row is about."""

import numpy as np
import pandas as pd
import pytest

import crowdwise as cw
from crowdwise.errors import AnnotationError
from crowdwise.io import as_annotations
from crowdwise.io.frames import from_pandas

READERS = [as_annotations, cw.read]


@pytest.fixture
def long():
    return pd.DataFrame({"worker": ["a", "b", "a"], "label": ["x", "y", "y"]})


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("who", [["a", "b", "c"], pd.CategoricalIndex(["a", "b", "c"])])
def test_the_index_of_a_wide_frame_has_no_votes(read, who):
    wide = pd.DataFrame([[1, 2, 2], [3, 1, 3], [1, 1, 2]], columns=who)
    wide = wide.set_axis(pd.Index([1, 2, 3], name="q_no"))
    annotations = read(wide)
    assert annotations.workers.tolist() == ["a", "b", "c"]
    assert annotations.tasks.tolist() == [1, 2, 3]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("names", [["doc_no", "sent_no"], [None, None], ["doc", "sentence"]])
def test_several_levels_name_a_task_together(read, names):
    index = pd.MultiIndex.from_product([[1, 2], [1, 2]], names=names)
    annotations = read(pd.DataFrame({"a": [1, 2, 1, 1], "b": [1, 2, 2, 1]}, index=index))
    assert annotations.workers.tolist() == ["a", "b"]
    assert annotations.tasks.tolist() == [(1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("name", ["nr", None])
def test_an_index_that_repeats_names_the_tasks_of_a_long_frame(read, name, long, triples):
    annotations = read(long.set_axis(pd.Index([4, 4, 5], name=name)))
    assert triples(annotations) == [(4, "a", "x"), (4, "b", "y"), (5, "a", "y")]


def test_numbers_of_rows_are_no_tasks_of_a_long_frame(long, triples):
    with pytest.raises(AnnotationError, match="no column for the task"):
        as_annotations(long.set_axis([4, 7, 5]))
    inner = pd.MultiIndex.from_arrays([[4, 4, 5], [0, 1, 2]], names=["task", None])
    assert triples(as_annotations(long.set_axis(inner)))[1] == (4, "b", "y")


def test_levels_of_rows_become_columns_of_their_own(long):
    frame = long.assign(doc=[1, 1, 1], sentence=[1, 1, 2], time=[3, 2, 1])
    annotations = as_annotations(frame.set_index(["doc", "worker", "sentence", "time"]))
    assert annotations.tasks.tolist() == [(1, 1), (1, 2)]
    assert annotations.workers.tolist() == ["a", "b"]
    assert annotations.time.tolist() == [3, 2, 1]


@pytest.mark.parametrize("name", [None, "index", "b"])
def test_a_column_of_the_name_of_the_index_stays(name):
    wide = pd.DataFrame({"index": [1, 2, 1], "b": [1, 2, 2]}, index=list("xyz")).rename_axis(name)
    annotations = as_annotations(wide)
    assert annotations.workers.tolist() == ["index", "b"]
    assert annotations.tasks.tolist() == ["x", "y", "z"]


def test_a_first_column_is_a_worker_unless_its_name_says_task():
    labels = {"r2": [1, 2, 1], "r3": [1, 2, 2]}
    with pytest.warns(UserWarning, match="may not be workers: 'r1'"):
        annotations = as_annotations(pd.DataFrame({"r1": [10, 20, 30], **labels}))
    assert annotations.workers.tolist() == ["r1", "r2", "r3"]
    assert annotations.tasks.tolist() == [0, 1, 2]
    for name in ("id", "Unnamed: 0"):
        named = as_annotations(pd.DataFrame({name: [10, 20, 30], **labels}))
        assert named.tasks.tolist() == [10, 20, 30]


def test_an_index_beside_the_task_that_is_asked_for_has_no_votes():
    wide = pd.DataFrame({"q": [7, 8], "a": [1, 2], "b": [2, 2]}, index=[4, 9])
    annotations = cw.read(wide, "wide", task="q")
    assert annotations.workers.tolist() == ["a", "b"]
    assert annotations.tasks.tolist() == [7, 8]


def test_a_column_comes_before_an_index_of_its_name(long):
    frame = long.assign(task=[1, 1, 2]).set_axis(pd.Index([9, 8, 7], name="task"))
    assert as_annotations(frame).tasks.tolist() == [1, 2]


def test_what_tells_nothing_is_left_alone():
    frame = pd.DataFrame(np.eye(2), columns=["a", "b"])
    assert from_pandas(frame).whole is frame
    assert from_pandas(frame, always=True).columns == ["index", "a", "b"]
