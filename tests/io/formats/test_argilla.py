"""Argilla's records, flat and nested."""

import pandas as pd
import pytest

import crowdwise as cw
from crowdwise.errors import FormatError

MOOD = [("r1", "u-ann", "good"), ("r1", "u-bob", "bad"), ("r2", "u-bob", "bad")]


@pytest.mark.parametrize("name", ["argilla_flat.json", "argilla_nested.json", "argilla_v1.json"])
def test_reads_submitted_responses(name, export, triples):
    annotations = export(name, question="mood")
    assert triples(annotations) == MOOD
    assert "read as argilla" in annotations.notes
    assert "discarded responses left out: 1" in annotations.notes


def test_lists_the_questions_when_there_are_several(export):
    with pytest.raises(FormatError, match=r"2 questions(.|\n)*'mood', 'topic'"):
        export("argilla_flat.json")


def test_reads_another_question(export, triples):
    assert triples(export("argilla_flat.json", question="topic")) == [("r1", "u-ann", "news")]


def test_reads_a_parquet_data_set(exports, tmp_path, triples):
    path = tmp_path / "records.parquet"
    pd.read_json(exports / "argilla_flat.json").to_parquet(path)
    assert triples(cw.read(path, "argilla", question="mood")) == MOOD


def test_takes_a_field_for_the_task(export, triples):
    annotations = export("argilla_nested.json", task="text")
    assert triples(annotations)[0] == ("Great!", "u-ann", "good")


def test_responses_may_lack_users_and_status():
    rows = [{"id": 1, "q.responses": ["a", "b"], "q.responses.users": ["u"]}]
    with pytest.raises(ValueError, match="worker is missing in 1 of 2 annotations"):
        cw.read(rows, "argilla")
