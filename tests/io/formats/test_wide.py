"""Wide tables."""

import pytest

import crowdwise as cw
from crowdwise.errors import AnnotationError


@pytest.fixture
def read(tmp_path):
    def from_text(text, **options):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return cw.read(path, **options)

    return from_text


def test_recognizes_workers_in_columns(export, triples):
    annotations = export("wide.csv")
    assert triples(annotations) == [
        ("q1", "ann", 1), ("q1", "bob", 0), ("q2", "bob", 0), ("q2", "cy", 1), ("q3", "ann", 1),
        ("q3", "cy", 0),
    ]  # fmt: skip
    assert annotations.notes == (
        "read as wide",
        "task from column 'task'",
        "workers from 3 columns: 'ann', 'bob', 'cy'",
    )


def test_takes_floats_and_a_nameless_index_as_pandas_writes_them(read, triples):
    annotations = read(",0,1\n5,1.0,\n7,0.0,1.0\n")
    assert triples(annotations) == [(5, "0", 1), (7, "0", 0), (7, "1", 1)]


def test_takes_the_first_column_for_the_task_if_nothing_in_it_repeats(read, triples):
    assert triples(read("who,a,b\nx,1,0\ny,1,1\n"))[0] == ("x", "a", 1)


def test_a_first_column_that_shares_its_values_is_a_worker(read, triples):
    assert triples(read("a,b\n1,2\n2,1\n"))[0] == (0, "a", 1)


def test_numbers_the_rows_if_every_column_has_labels(read, triples):
    annotations = read("a,b\n1,0\n1,1\n")
    assert triples(annotations) == [(0, "a", 1), (0, "b", 0), (1, "a", 1), (1, "b", 1)]
    assert "task from row number" in annotations.notes


def test_sets_texts_and_gold_aside(read, triples, gold):
    annotations = read("id,text,ann,bob,truth\n1,Great!,good,bad,good\n2,Meh.,bad,bad,\n")
    assert triples(annotations)[:2] == [(1, "ann", "good"), (1, "bob", "bad")]
    assert gold(annotations) == {1: "good"}
    assert "gold from column 'truth'" in annotations.notes


def test_a_minus_one_is_no_label(read, triples):
    assert triples(read("task,a,b\n1,-1,0\n2,1,-1\n3,0,2\n")) == [
        (1, "b", 0), (2, "a", 1), (3, "a", 0), (3, "b", 2),
    ]  # fmt: skip


def test_a_label_column_without_workers_is_no_wide_table(read):
    with pytest.raises(AnnotationError, match="no column for the worker"):
        read("id,text,label\n1,x,a\n2,y,b\n")


def test_columns_that_share_nothing_are_no_workers(read):
    with pytest.raises(AnnotationError, match="no column for the worker"):
        read("id,color,shape\n1,red,round\n2,blue,square\n")


def test_a_pattern_names_the_workers(read, triples):
    text = "guid,note,rater_1,rater_2,label\n7,x,a,b,c\n8,y,,b,c\n"
    annotations = read(text, worker="rater_*", task="guid")
    assert triples(annotations) == [(7, "rater_1", "a"), (7, "rater_2", "b"), (8, "rater_2", "b")]
    with pytest.raises(AnnotationError, match=r"no column 'judge_\*' for the worker"):
        read(text, worker="judge_*")
    with pytest.raises(AnnotationError, match="no column 'key' for the task"):
        read(text, worker="rater_*", task="key")


def test_can_be_forced(read, triples):
    rows = triples(read("key,color,shape\n1,red,round\n", format="wide", task="key"))
    assert rows == [(1, "color", "red"), (1, "shape", "round")]


def test_refuses_a_task_on_two_rows(read):
    with pytest.raises(AnnotationError, match="'q1' is declared twice"):
        read("task,a,b\nq1,1,0\nq1,1,1\n")
