"""Known truths, in memory and in a file."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from crowdwise import Annotations
from crowdwise.errors import AnnotationError, FormatError
from crowdwise.io.gold import add_gold_file, as_gold
from crowdwise.io.truths import collect_truths


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
    assert known.notes[-2].startswith("gold of 2 tasks from ")
    assert known.notes[-1] == "truths of other tasks not used: 1"


def test_promise_09_truths_that_are_not_used_are_counted(votes, file):
    known = add_gold_file(votes, file("task,label\n1,1\n,0\n,1\n,\nx,0\ntask,label\n9,\n"))
    assert known.notes[-2:] == (
        "truths without a task not used: 2",
        "truths of other tasks not used: 2",
    )


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


def test_what_is_known_beside_labels_stays(file):
    votes = Annotations.from_matrix([[1, 9, 4], [2, 8, "?"]], missing=None).with_scores()
    votes = votes.with_workers({"worker": [0, 1, 2], "family": ["a", "a", "b"]})
    known = add_gold_file(votes, file("task,label\n0,1\n"))
    assert known.score.tolist() == votes.score.tolist()
    assert known.declined.tolist() == [[1, 2]]
    assert known.about_workers.equals(votes.about_workers)
    many = Annotations.from_codes(np.arange(128), np.zeros(128, dtype=int), np.arange(128))
    assert add_gold_file(many, file("task,label\n0,200\n")).label.dtype == np.int16


def test_truths_of_other_tasks_only(votes, file):
    with pytest.raises(AnnotationError, match=r"No truth in (.|\n)*2 truths, for 'q1', 'q2'"):
        add_gold_file(votes, file("task,label\nq0,\nq1,0\nq2,1\n3,\n"))
    with pytest.raises(AnnotationError, match=r"has no truths(.|\n)*found: +2 rows"):
        add_gold_file(votes, file("task,label\n1,\n2,\n"))


def test_a_file_without_truths(votes, file):
    for rows in ("", "a,\nb,NA\n"):
        with pytest.raises(AnnotationError, match=r"has no truths[\s\S]*leave this file out"):
            add_gold_file(votes, file(f"task,gold\n{rows}"))


def test_a_label_stands_in_for_gold_that_is_empty(votes, file, gold):
    assert gold(add_gold_file(votes, file("task,label,gold\n1,1,\n2,0,\n"))) == {1: 1, 2: 0}
    assert gold(add_gold_file(votes, file("task,label,gold\n1,1,\n2,0,1\n"))) == {2: 1}


@pytest.mark.parametrize(("header", "role"), [("task,color", "label"), ("color,label", "task")])
def test_a_column_is_missing(header, role, votes, file):
    with pytest.raises(AnnotationError, match=f"no column for the {role}"):
        add_gold_file(votes, file(f"{header}\n1,0\n"))


def test_files_that_are_no_table(votes, file):
    with pytest.raises(FormatError, match="is not a table"):
        add_gold_file(votes, file("[[1, 0]]", "t.json"))
    with pytest.raises(FormatError, match="has a list where the label should be"):
        add_gold_file(votes, file('{"1": [1], "2": 0}', "t.json"))


def test_whole_numbers_are_the_same_however_they_are_written(votes, file, gold):
    assert gold(add_gold_file(votes, file("task,label\n1.0,1.0\n3,0.0\n"))) == {1: 1, 3: 0}
    assert gold(add_gold_file(votes, file('{"1": true, "2": false}', "t.json"))) == {1: 1, 2: 0}
    assert gold(add_gold_file(votes, file('{"1": 1.0, "2": 0}', "t.json"))) == {1: 1, 2: 0}
    known = add_gold_file(votes, file("task,label\n1,7.0\n2,7\n"))
    assert known.classes.tolist() == [0, 1, 7]
    texts = Annotations.from_dict({"1": {"a": "1.0", "b": "1"}})
    assert gold(add_gold_file(texts, file("task,label\n1.0,1.0\n"))) == {"1": "1.0"}
    assert gold(add_gold_file(texts, file("task,label\n1,1\n"))) == {"1": "1"}


def test_one_truth_a_task(votes, file, gold):
    assert gold(add_gold_file(votes, file("task,label\n1,1\n1,1.0\n2,\n"))) == {1: 1}
    with pytest.raises(
        AnnotationError,
        match=r"truth\.csv has two different truths for 1 task\.(.|\n)*task=1: 1 and 0(.|\n)*keep",
    ):
        add_gold_file(votes, file("task,label\n1,1\n2,0\n1,0\n"))


@pytest.mark.parametrize(
    "truth",
    [
        {"a": 1, "b": 2, "c": None},
        pd.Series({"a": 1, "b": 2}),
        pd.Series([1, 2, 1], index=["a", "b", "a"]),
        pd.DataFrame({"task": ["a", "b"], "label": [7, 7], "gold": [1, 2]}),
        pl.DataFrame({"item": ["a", "b", "b"], "truth": [1, 2, None]}),
        pl.LazyFrame({"task": ["a", "b"], "label": [1, 2]}),
    ],
    ids=["dict", "series", "repeated", "pandas", "polars", "lazy"],
)
def test_takes_any_shape(truth):
    assert collect_truths(truth).to_dict() == {"a": 1, "b": 2}


def test_two_truths_of_a_task():
    truth = pd.Series([1, 2, 3, 3], index=[("q", 1), ("q", 1), "c", "c"])
    with pytest.raises(
        AnnotationError, match=r"two different truths for 1 task\.(.|\n)*\('q', 1\): 1 and 2"
    ):
        collect_truths(truth)


def test_values_without_tasks():
    with pytest.raises(AnnotationError, match=r"A list does not say which task"):
        collect_truths([1, 2])


class TestAsGold:
    @pytest.fixture
    def votes(self):
        return Annotations.from_dict({"q1": {"ann": "x", "bob": "y"}, "q2": {"bob": "y"}})

    @pytest.mark.parametrize(
        "gold",
        [
            {"q2": "y", "q9": "x"},
            pd.Series({"q2": "y", "q1": None}),
            pd.DataFrame({"question": ["q2"], "truth": ["y"]}),
            pl.DataFrame({"task": ["q2"], "label": ["y"]}),
            [None, "y"],
            np.array([None, "y"], dtype=object),
        ],
        ids=["dict", "series", "pandas", "polars", "list", "array"],
    )
    def test_takes_any_shape(self, gold, votes):
        assert as_gold(gold, votes).tolist() == [-1, 1]

    @pytest.mark.parametrize("make", [np.array, pd.Series, lambda gold: dict(enumerate(gold))])
    def test_a_minus_one_is_unknown(self, make):
        numbers = Annotations.from_matrix([[0, 1], [1, 1], [0, 0]])
        assert as_gold(make([1, -1, 0]), numbers).tolist() == [1, -1, 0]
        signs = Annotations.from_matrix([[-1, 1], [1, 1], [1, 1]], missing=None)
        assert as_gold(make([1, -1, 1]), signs).tolist() == [1, 0, 1]

    def test_a_mask_is_unknown(self, votes):
        gold = np.ma.array(["x", "y"], mask=[True, False])
        assert as_gold(gold, votes).tolist() == [-1, 1]

    def test_the_gold_of_annotations_holds_numbers(self):
        frame = pd.DataFrame(
            {"task": [10, 20, 30], "worker": 1, "label": [1, 2, 3], "gold": [2, 3, None]}
        )
        known = Annotations.from_frame(frame, gold="gold")
        assert as_gold(known.gold, known).tolist() == known.gold.tolist() == [1, 2, -1]
        assert as_gold(known.gold_labels, known).tolist() == [1, 2, -1]
        assert known.gold_labels.to_dict() == {10: 2, 20: 3}
        assert Annotations.from_frame(frame).gold_labels is None

    @pytest.mark.parametrize("names", [[1, 2, 3], ["a", "b", "c"]])
    def test_a_copy_of_those_numbers_is_refused(self, names):
        known = Annotations.from_codes(
            [0, 1, 2], [0, 0, 0], [0, 1, 2], classes=names, gold=[1, 2, -1]
        )
        for gold in (known.gold.copy(), list(known.gold), known.gold.tolist()):
            with pytest.raises(
                AnnotationError, match=r"first: +1, which stands for (2|'b')(.|\n)*gold_labels"
            ):
                as_gold(gold, known)
        with pytest.raises(AnnotationError, match=r"class numbers in annotations\.gold"):
            as_gold(known.gold[:2], known[[0, 1]])
        assert as_gold([names[1], names[2], None], known).tolist() == [1, 2, -1]

    def test_numbers_that_are_the_names_are_taken(self):
        known = Annotations.from_codes([0, 1], [0, 0], [0, 1], classes=[0, 1, 5], gold=[1, -1])
        assert as_gold(known.gold.copy(), known).tolist() == [1, -1]

    def test_gold_comes_before_label(self, votes):
        frame = pd.DataFrame({"task": ["q1"], "label": ["x"], "gold": ["y"]})
        assert as_gold(frame, votes).tolist() == [1, -1]
        assert as_gold(frame.assign(gold=None), votes).tolist() == [0, -1]

    @pytest.mark.parametrize("make", [pd.DataFrame, lambda frame: frame.set_index("task")["label"]])
    def test_two_truths_of_a_task(self, make, votes):
        frame = pd.DataFrame({"task": ["q2", "q1", "q1", "q1"], "label": ["y", "x", "y", "x"]})
        with pytest.raises(
            AnnotationError, match=r"two different truths for 1 task\.(.|\n)*'q1': 'x' and 'y'"
        ):
            as_gold(make(frame), votes)
        assert as_gold(make(frame.drop(index=2)), votes).tolist() == [0, 1]

    def test_other_tasks_only(self, votes):
        with pytest.raises(
            AnnotationError,
            match=r"a task of the annotations(.|\n)*1 truth, for(.|\n)*same ids",
        ):
            as_gold({"Q1": "x"}, votes)

    def test_unknown_labels(self, votes):
        with pytest.raises(AnnotationError, match=r"unknown label(.|\n)*'z'(.|\n)*classes="):
            as_gold({"q1": "z"}, votes)

    @pytest.mark.parametrize(
        ("columns", "role"), [(["task", "x"], "label"), (["x", "label"], "task")]
    )
    def test_a_column_is_missing(self, columns, role, votes):
        with pytest.raises(AnnotationError, match=f"no column for the {role}"):
            as_gold(pd.DataFrame([["q1", "x"]], columns=columns), votes)

    def test_wrong_length(self, votes):
        with pytest.raises(AnnotationError, match=r"shape \(3,\)(.|\n)*one per task \(2\)"):
            as_gold(["x", "y", "x"], votes)

    def test_no_gold_at_all(self, votes):
        assert as_gold({}, votes).tolist() == [-1, -1]
