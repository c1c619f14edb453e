"""Objects of objects, as peerannot keeps them."""

import pytest

import crowdwise as cw
from crowdwise.errors import FormatError


def test_reads_pairs_and_keeps_empty_tasks(export, triples):
    annotations = export("nested.json")
    assert triples(annotations) == [(0, 3, 1), (0, 4, 0), (2, 3, 0)]
    assert annotations.tasks.tolist() == [0, 2, 1]  # as in the file
    assert annotations.redundancy.tolist() == [2, 1, 0]


def test_names_stay_text_if_one_is_no_number():
    annotations = cw.read({"1": {"a": "x"}, "b": {}})
    assert annotations.tasks.tolist() == ["1", "b"]


def test_refuses_a_task_without_workers():
    with pytest.raises(FormatError, match=r"no labels by worker for task 'q2'"):
        cw.read({"q1": {"a": "x"}, "q2": 3}, "nested")


def test_an_object_of_anything_else_is_of_no_known_format():
    with pytest.raises(FormatError, match="not of a known format"):
        cw.read({"q1": {"a": "x"}, "q2": 3})
