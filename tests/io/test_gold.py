"""Truths from a file of their own."""

import numpy as np
import pytest

from crowdwise import Annotations
from crowdwise.errors import AnnotationError, FormatError
from crowdwise.io.gold import add_gold_file


@pytest.fixture
def votes():
    return Annotations.from_dict({1: {"a": 0, "b": 1}, 2: {"a": 1}, 3: {"b": 0}})


@pytest.fixture
def file(tmp_path):
    def write(text, name="truth.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_names_are_compared_as_text(votes, file, gold):
    known = add_gold_file(votes, file("question,truth\n1,1\nx,0\n3,0\n2,\n"))
    assert gold(known) == {1: 1, 3: 0}
    assert known.label.tolist() == votes.label.tolist()
    assert known.notes[-1].startswith("gold of 2 tasks from ")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("task\tlabel\n1\t1\n", "t.tsv"),
        ('{"1": 1}', "t.json"),
        ('[{"id": 1, "gold": 1}]', "t.json"),
    ],
)
def test_any_kind_of_file(text, name, votes, file, gold):
    assert gold(add_gold_file(votes, file(text, name))) == {1: 1}


def test_columns_can_be_named(votes, file, gold):
    path = file("key,label,expert\n1,0,1\n")
    assert gold(add_gold_file(votes, path, task="key", label="expert")) == {1: 1}


def test_labels_that_no_worker_gave_are_new_classes(votes, file, gold):
    known = add_gold_file(votes, file("task,label\n1,7\n2,0\n"))
    assert known.classes.tolist() == [0, 1, 7]
    assert gold(known) == {1: 7, 2: 0}
    texts = add_gold_file(votes, file("task,label\n1,unsure\n"))
    assert texts.classes.tolist() == [0, 1, "unsure"]


def test_soft_labels_get_the_new_classes_too(file):
    soft = Annotations.from_codes([0], [0], [1], classes=["a", "b"], soft=[[0.25, 0.75]])
    known = add_gold_file(soft, file("task,label\n0,c\n"))
    assert np.allclose(known.soft, [[0.25, 0.75, 0.0]])


def test_truths_of_other_tasks_only(votes, file):
    with pytest.raises(AnnotationError, match=r"None of the 2 truths(.|\n)*'q1', 'q2'"):
        add_gold_file(votes, file("task,label\nq0,\nq1,0\nq2,1\n3,\n"))
    with pytest.raises(AnnotationError, match=r"None of the 0 truths(.|\n)*names no truth at all"):
        add_gold_file(votes, file("task,label\n1,\n2,\n"))


def test_a_label_stands_in_for_gold_that_is_empty(votes, file, gold):
    assert gold(add_gold_file(votes, file("task,label,gold\n1,1,\n2,0,\n"))) == {1: 1, 2: 0}
    assert gold(add_gold_file(votes, file("task,label,gold\n1,1,\n2,0,1\n"))) == {2: 1}


@pytest.mark.parametrize(("header", "role"), [("task,colour", "label"), ("colour,label", "task")])
def test_a_column_is_missing(header, role, votes, file):
    with pytest.raises(AnnotationError, match=f"no column for the {role}"):
        add_gold_file(votes, file(f"{header}\n1,0\n"))


def test_files_that_are_no_table(votes, file):
    with pytest.raises(FormatError, match="is no table"):
        add_gold_file(votes, file("[[1, 0]]", "t.json"))
    with pytest.raises(FormatError, match="has a list where the label should be"):
        add_gold_file(votes, file('{"1": [1], "2": 0}', "t.json"))


def test_whole_numbers_are_the_same_however_they_are_written(votes, file, gold):
    assert gold(add_gold_file(votes, file("task,label\n1.0,1.0\n3,0.0\n"))) == {1: 1, 3: 0}
    assert gold(add_gold_file(votes, file('{"1": true, "2": 0.0}', "t.json"))) == {1: 1, 2: 0}
    known = add_gold_file(votes, file("task,label\n1,7.0\n2,7\n"))
    assert known.classes.tolist() == [0, 1, 7]
    texts = Annotations.from_dict({"1": {"a": "1.0", "b": "1"}})
    assert gold(add_gold_file(texts, file("task,label\n1.0,1.0\n"))) == {"1": "1.0"}
    assert gold(add_gold_file(texts, file("task,label\n1,1\n"))) == {"1": "1"}


def test_one_truth_a_task(votes, file, gold):
    assert gold(add_gold_file(votes, file("task,label\n1,1\n1,1.0\n2,\n"))) == {1: 1}
    with pytest.raises(
        AnnotationError,
        match=r"truth\.csv has two different truths for 1 tasks(.|\n)*task=1: 1 and 0(.|\n)*keep",
    ):
        add_gold_file(votes, file("task,label\n1,1\n2,0\n1,0\n"))
