"""Prodigy's choices, and its accepted and rejected labels."""

import pytest

import crowdwise as cw
from crowdwise.errors import FormatError


def test_reads_choices(export, triples):
    annotations = export("prodigy_choice.jsonl")
    assert triples(annotations) == [
        (101, "news-ann", "good"),
        (101, "news-bob", "bad"),
        (102, "news-cy", "bad"),
    ]
    assert annotations.time.tolist() == [1714557600, 1714557700, 1714557900]
    assert "records with answer 'ignore' left out: 1" in annotations.notes


def test_reads_verdicts_on_one_label(export, triples):
    annotations = export("prodigy_binary.jsonl", question="POSITIVE")
    assert triples(annotations) == [(101, "news-ann", "accept"), (101, "news-bob", "reject")]
    assert "label from 'answer' to 'POSITIVE'" in annotations.notes
    assert "records with answer 'ignore' left out: 1" in annotations.notes


def test_lists_the_labels_when_there_are_several(export):
    with pytest.raises(FormatError, match=r"2 labels(.|\n)*'POSITIVE', 'URGENT'"):
        export("prodigy_binary.jsonl")


def test_reads_verdicts_without_a_label(triples):
    rows = [
        {"_task_hash": 1, "_annotator_id": 1, "answer": "accept"},
        {"_task_hash": 1, "_annotator_id": 2, "answer": "reject"},
    ]
    assert triples(cw.read(rows, "prodigy")) == [(1, 1, "accept"), (1, 2, "reject")]


def test_takes_fields_by_their_path(triples):
    rows = [
        {
            "meta": {"id": "m1"},
            "who": "ann",
            "_view_id": "choice",
            "accept": ["a"],
            "answer": "accept",
        }
    ]
    annotations = cw.read(rows, "prodigy", task="meta.id", worker="who")
    assert triples(annotations) == [("m1", "ann", "a")]


def test_a_rejected_choice_is_no_label(triples):
    rows = [
        {"_input_hash": 1, "_session_id": "s", "accept": ["a"], "answer": "reject"},
        {"_input_hash": 1, "_session_id": "t", "accept": ["a", "b"], "answer": "accept"},
    ]
    assert triples(cw.read(rows, "prodigy")) == [(1, "t", "a + b")]
