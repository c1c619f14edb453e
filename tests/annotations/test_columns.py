"""Which column is which."""

import pytest

from crowdwise.annotations.columns import SYNONYMS, candidates, plain, recognise, require
from crowdwise.errors import AnnotationError


def test_case_and_punctuation_do_not_matter():
    assert plain("Worker_ID") == plain("workerId") == plain(" worker.id ") == "workerid"


def test_every_synonym_is_plain_and_belongs_to_one_role():
    words = [word for synonyms in SYNONYMS.values() for word in synonyms]
    assert len(set(words)) == len(words)
    assert all(word == plain(word) for word in words)


def test_its_own_name_comes_before_a_synonym():
    found = recognise(["item", "task", "user", "worker", "answer", "label"], {})
    assert found == {"task": "task", "worker": "worker", "label": "label"}


def test_ids_come_before_texts():
    assert candidates("task", ["text", "id", "comment_id"]) == ["comment_id", "id", "text"]


def test_what_is_given_is_not_taken_twice():
    found = recognise(["task", "text", "worker", "label"], {"label": "task", "worker": None})
    assert found == {"label": "task", "task": "text", "worker": "worker"}


def test_says_what_is_missing():
    with pytest.raises(
        AnnotationError, match=r"The frame has no column for the label(.|\n)*--label"
    ):
        require({"task": "a", "worker": "b"}, ["a", "b"], "The frame")
    with pytest.raises(AnnotationError, match=r"no columns(.|\n)*worker='rater_\*'"):
        require({"task": "a"}, [], "The frame", needed=["worker"])
    with pytest.raises(AnnotationError, match=r"19, … 99 in all(.|\n)*the first line must name"):
        require({}, range(99), "The file")
    require({"task": "a"}, ["a"], "The frame", needed=[])
