"""Which format a document has, and which column is which."""

import pytest

from crowdwise.errors import AnnotationError
from crowdwise.io.document import Matrix, RecordTable, Table, Tree
from crowdwise.io.recognize import (
    SYNONYMS,
    Format,
    holds_several,
    list_candidates,
    normalize_name,
    recognize_columns,
    recognize_format,
    require_columns,
)


def test_case_and_punctuation_do_not_matter():
    assert (
        normalize_name("Worker_ID")
        == normalize_name("workerId")
        == normalize_name(" worker.id ")
        == "workerid"
    )


def test_every_synonym_is_plain_and_belongs_to_one_role():
    words = [word for synonyms in SYNONYMS.values() for word in synonyms]
    assert len(set(words)) == len(words)
    assert all(word == normalize_name(word) for word in words)


def test_its_own_name_comes_before_a_synonym():
    found = recognize_columns(["item", "task", "user", "worker", "answer", "label"], {})
    assert found == {"task": "task", "worker": "worker", "label": "label"}


def test_ids_come_before_texts():
    assert list_candidates("task", ["text", "id", "comment_id"]) == ["comment_id", "id", "text"]


def test_what_is_given_is_not_taken_twice():
    found = recognize_columns(
        ["task", "text", "worker", "label"], {"label": "task", "worker": None}
    )
    assert found == {"label": "task", "task": "text", "worker": "worker"}


def test_says_what_is_missing():
    with pytest.raises(
        AnnotationError, match=r"The frame has no column for the label(.|\n)*--label"
    ):
        require_columns({"task": "a", "worker": "b"}, ["a", "b"], "The frame")
    with pytest.raises(AnnotationError, match=r"no columns(.|\n)*worker='rater_\*'"):
        require_columns({"task": "a"}, [], "The frame", needed=["worker"])
    with pytest.raises(AnnotationError, match=r"19, … 99 in all(.|\n)*the first line must name"):
        require_columns({}, range(99), "The file")
    require_columns({"task": "a"}, ["a"], "The frame", needed=[])


def records(**cells):
    return RecordTable([cells], "f", "f")


def never(*_):
    raise NotImplementedError


class TestFormat:
    def test_all_marks_of_one_set_are_there(self):
        form = Format("x", "", Table, never, marks=({"a", "b"}, {"c"}))
        assert form.recognizes(records(a=1, b=1))
        assert form.recognizes(records(c=1))
        assert not form.recognizes(records(a=1, d=1))
        assert not form.recognizes(records(A=1, B=1))

    def test_marks_may_be_patterns_in_any_case(self):
        form = Format("x", "", Table, never, marks=({"who", "answer.*"},), any_case=True)
        assert form.recognizes(records(WHO=1, **{"Answer.mood": 1}))
        assert not form.recognizes(records(WHO=1, Answer=1))

    def test_another_kind_of_document(self):
        form = Format("x", "", Tree, never)
        assert form.recognizes(Tree({"a": 1}, "f", "f"))
        assert not form.recognizes(records(a=1))

    def test_cells_of_several_values(self):
        form = Format("x", "", RecordTable, never, lists=("b", "many"))
        assert form.recognizes(records(a="x", b=["y", "z"]))
        assert form.recognizes(records(a="x", b="y,z"))
        assert form.recognizes(records(a="x", _Many=["y"]))
        assert not form.recognizes(records(a=["x"], b="y"))
        assert not form.recognizes(records(a="x", b=2))

    def test_what_trips_it_up_is_not_of_this_format(self):
        form = Format("x", "", RecordTable, never, matches=lambda own: own.rows[7])
        assert not form.recognizes(records(a=1))

    def test_the_first_that_matches(self):
        general = Format("general", "", Table, never)
        special = Format("special", "", Table, never, marks=({"a"},))
        assert recognize_format(records(a=1), (special, general)) is special
        assert recognize_format(records(b=1), (special, general)) is general
        assert recognize_format(Matrix([[1]], "f", "f"), (special, general)) is None


@pytest.mark.parametrize(
    ("cell", "several"),
    [("a", False), ("a,b", True), ("[1 2]", True), ("{", True), ([], True), ({}, True), (3, False)],
)
def test_cells_that_hold_several_values(cell, several):
    assert holds_several(cell) is several
