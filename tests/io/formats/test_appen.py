"""Appen's full report."""

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.errors import AnnotationError, FormatError


def test_reads_judgments_and_test_questions(export, triples, gold):
    annotations = export("appen.csv")
    rows = [(701, 31, "good"), (701, 32, "bad"), (702, 31, "bad"), (703, 31, "good")]
    assert triples(annotations) == rows
    assert gold(annotations) == {702: "bad"}  # the test question with two right labels has none
    assert annotations.time[1] == np.datetime64("2024-05-01T10:05")
    assert annotations.weight is None
    assert "tainted judgments left out: 1" in annotations.notes


def test_takes_trust_as_weight_only_when_asked(export):
    assert export("appen.csv", weight="_trust").weight.tolist() == pytest.approx(
        [0.9, 0.6, 0.9, 0.9]
    )


def test_takes_tainted_judgments_when_asked(export, triples):
    assert (702, 33, "good") in triples(export("appen.csv", rejected=True))


def test_takes_any_column_that_is_asked_for(export, triples):
    assert triples(export("appen.csv", question="text"))[0] == (701, 31, "Great!")


def test_lists_the_fields_when_none_has_gold(tmp_path):
    path = tmp_path / "report.csv"
    path.write_text("_unit_id,_worker_id,mood,text\n1,2,good,x\n")
    with pytest.raises(FormatError, match=r"2 questions(.|\n)*'mood', 'text'"):
        cw.read(path)


def test_the_only_field_is_the_question(tmp_path, triples):
    path = tmp_path / "report.csv"
    path.write_text(
        "_unit_id,_worker_id,_golden,mood,mood_gold\n1,2,false,good,bad\n1,3,true,bad,bad\n"
    )
    annotations = cw.read(path, "appen")
    assert triples(annotations) == [(1, 2, "good"), (1, 3, "bad")]


def test_gold_can_be_another_column(export, gold):
    assert gold(export("appen.csv", gold="mood_gold")) == {702: "bad", 703: "good\nbad"}


def test_a_table_without_its_columns():
    rows = [{"mood": "good", "who": 1}]
    with pytest.raises(AnnotationError, match=r"no column for the task(.|\n)*mood, who"):
        cw.read(rows, "appen", question="mood")
