"""Wide tables in memory: gaps of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_array

import crowdwise as cw
from crowdwise import Annotations
from crowdwise.annotations import wide
from crowdwise.errors import AnnotationError
from crowdwise.io import as_annotations

ROWS = [(0, 0, 1), (0, 2, 0), (1, 1, 2)]


def rows(annotations):
    parts = annotations.task, annotations.worker, annotations.classes[annotations.label]
    return list(zip(*(part.tolist() for part in parts), strict=True))


@pytest.mark.parametrize(
    "matrix",
    [
        [[1, -1, 0], [-1, 2, -1]],
        [[1, np.nan, 0], [np.nan, 2, np.nan]],
        [[1, None, 0], [None, 2, None]],
        np.array([[1.0, np.nan, 0.0], [np.nan, 2.0, np.nan]], dtype=np.float32),
        coo_array(([1, 0, 2], ([0, 0, 1], [0, 2, 1])), shape=(2, 3)),
        pd.DataFrame([[1, pd.NA, 0], [pd.NA, 2, pd.NA]], dtype="Int64"),
        pl.DataFrame({"a": [1, None], "b": [None, 2], "c": [0, None]}),
    ],
)
def test_gaps_of_every_kind(matrix):
    assert rows(Annotations.from_matrix(matrix)) == ROWS


def test_missing_values_can_be_named():
    grid = [[1, -1], [0, -1]]
    assert rows(Annotations.from_matrix(grid, missing=0)) == [(0, 0, 1), (0, 1, -1), (1, 1, -1)]
    assert rows(Annotations.from_matrix(grid, missing=[0, -1])) == [(0, 0, 1)]
    assert len(rows(Annotations.from_matrix(grid, missing=None))) == 4
    text = [["x", "?"], ["y", "x"]]
    assert rows(Annotations.from_matrix(text, missing="?")) == [
        (0, 0, "x"),
        (1, 0, "y"),
        (1, 1, "x"),
    ]


@pytest.mark.parametrize("grid", [[[1, -1], [1, -1]], [[1, -1], [0, np.nan]]])
def test_a_minus_one_that_may_be_either(grid):
    with pytest.raises(
        AnnotationError, match=r"-1 may be a label or a missing value(.|\n)*missing=-1"
    ):
        Annotations.from_matrix(grid)
    assert Annotations.from_matrix(grid, missing=-1).classes.min() >= 0


def test_names_of_a_frame_and_names_given():
    frame = pd.DataFrame([["x", "y"]], index=["q"], columns=["ann", "bob"])
    assert Annotations.from_matrix(frame).to_dict() == {"q": {"ann": "x", "bob": "y"}}
    given = Annotations.from_matrix(frame, tasks=["p"], workers=["a", "b"], classes=["y", "x", "z"])
    assert given.to_dict() == {"p": {"a": "x", "b": "y"}}
    assert given.classes.tolist() == ["y", "x", "z"]
    with pytest.raises(AnnotationError, match=r"shape \(1, 2\), but there are names for 3 tasks"):
        Annotations.from_matrix(frame, tasks=[1, 2, 3])


@pytest.mark.parametrize("matrix", [[1, 2], [[[1]]], [[1, 2], [3]]])
def test_not_two_dimensions(matrix):
    with pytest.raises(AnnotationError, match="is not a table of labels"):
        Annotations.from_matrix(matrix)


def test_snorkel():
    annotations = Annotations.from_snorkel([[1, -1], [1, -1]], cardinality=3)
    assert annotations.classes.tolist() == [0, 1, 2]
    assert rows(annotations) == [(0, 0, 1), (1, 0, 1)]
    assert Annotations.from_snorkel([[1, -1], [0, 1]]).classes.tolist() == [0, 1]


def test_dicts():
    annotations = Annotations.from_dict({"q2": {"b": 1}, "q1": {"a": 0, "b": None}, "q0": {}})
    assert annotations.tasks.tolist() == ["q2", "q1", "q0"]  # as given
    assert rows(annotations) == [(0, 1, 1), (1, 0, 0)]
    assert annotations.classes.tolist() == [0, 1]
    assert Annotations.from_dict({}).shape == (0, 0)
    with pytest.raises(AnnotationError, match=r"labels of task 'q' are str(.|\n)*worker: label"):
        Annotations.from_dict({"q": "x"})


def test_dicts_with_declared_names():
    annotations = Annotations.from_dict({1: {2: "x"}}, workers=[2, 3], classes=["y", "x"])
    assert annotations.workers.tolist() == [2, 3]
    assert annotations.classes.tolist() == ["y", "x"]


def test_what_a_mask_hides_is_no_label():
    masked = np.ma.array([[1, 5, 0], [5, 2, 5]], mask=[[0, 1, 0], [1, 0, 1]])
    assert rows(Annotations.from_matrix(masked)) == ROWS


def test_a_dict_needs_no_table(monkeypatch):
    annotations = Annotations.from_dict({"q": {"a": 1, "b": 0}, "p": {}, "r": {"a": 0}})
    monkeypatch.setattr(wide, "to_snorkel", None)  # tasks x workers
    assert annotations.to_dict() == {"q": {"a": 1, "b": 0}, "p": {}, "r": {"a": 0}}


def test_a_dict_without_a_worker():
    with pytest.raises(
        AnnotationError, match=r"worker is missing in 1 of 2 annotations(.|\n)*row 2"
    ):
        Annotations.from_dict({"b": {"a": 1, None: 2}})


@pytest.mark.parametrize("make", [np.array, list])
def test_one_label_a_task_is_no_crowd(make):
    with pytest.raises(AnnotationError, match=r"fix: +give every worker's label on each task"):
        Annotations.from_matrix(make([1, 2]))


def test_records_are_to_be_read():
    with pytest.raises(AnnotationError, match=r"fix: +read records with crowdwise\.read\(rows\)"):
        Annotations.from_matrix([{"task": 1, "worker": 2, "label": 3}])


@pytest.mark.parametrize("read", [Annotations.from_matrix, cw.read, as_annotations])
def test_an_ordered_categorical_is_a_scale(read):
    scale = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame({"a": ["low", "high", None], "b": ["high", "high", "low"]}, dtype=scale)
    assert read(frame).classes.tolist() == ["low", "mid", "high"]
    assert read(frame).label.tolist() == [0, 2, 2, 2, 0]
    assert read(frame.astype({"a": object})).classes.tolist() == ["high", "low"]


@pytest.mark.parametrize("read", [Annotations.from_matrix, cw.read])
def test_what_is_missing_is_no_part_of_a_scale(read):
    scale = pd.CategoricalDtype(["none", "low", "high"], ordered=True)
    frame = pd.DataFrame({"a": ["low", "none"], "b": ["low", "high"]}, dtype=scale)
    frame.loc[2] = "high"
    assert read(frame, missing="none").classes.tolist() == ["low", "high"]
