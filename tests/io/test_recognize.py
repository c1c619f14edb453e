"""Which column is which."""

import pytest

from crowdwise.errors import AnnotationError
from crowdwise.io.recognize import (
    SYNONYMS,
    list_candidates,
    normalize_name,
    recognize_columns,
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
