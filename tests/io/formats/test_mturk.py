"""Batches of Mechanical Turk."""

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.errors import FormatError


def test_reads_ticks_as_one_question(export, triples):
    annotations = export("mturk.csv", question="mood")
    assert triples(annotations) == [("H1", "W1", "good"), ("H1", "W2", "bad"), ("H2", "W3", "bad")]
    assert "rejected assignments left out: 1" in annotations.notes
    assert "label from answer 'mood'" in annotations.notes
    hours = annotations.time.astype("datetime64[m]")
    assert hours[0] == np.datetime64("2024-05-01T10:01")  # 03:01 PDT
    assert hours[2] == np.datetime64("2024-01-03T11:05")  # 03:05 PST


def test_takes_rejected_assignments_when_asked(export, triples):
    rows = triples(export("mturk.csv", question="mood", rejected=True))
    assert ("H2", "W1", "bad") in rows


def test_lists_the_answers_when_there_are_several(export):
    with pytest.raises(FormatError, match=r"2 questions(.|\n)*'comment', 'mood'"):
        export("mturk.csv")


@pytest.mark.parametrize("asked", ["Answer.comment", "comment"])
def test_reads_an_answer_by_either_name(asked, export, triples):
    annotations = export("mturk.csv", label=asked, task="Input.image_url")
    assert triples(annotations) == [("http://x/1.jpg", "W2", "hard")]


def test_reads_answers_written_as_json(export, triples):
    annotations = export("mturk_form.csv", question="mood")
    assert triples(annotations) == [("H1", "W1", "good"), ("H1", "W2", "bad"), ("H2", "W1", "bad")]
    spam = export("mturk_form.csv", question="spam")
    assert triples(spam) == [("H1", "W1", "no"), ("H1", "W2", "yes"), ("H2", "W1", "no")]


def test_reads_the_label_of_a_crowd_classifier(tmp_path, triples):
    path = tmp_path / "batch.csv"
    path.write_text("HITId,WorkerId,Answer.mood.label,Answer.note\nH1,W1,3,x\nH1,W2,4,\n")
    assert triples(cw.read(path, "mturk", question="mood")) == [
        ("H1", "W1", 3),
        ("H1", "W2", 4),
    ]


def test_without_a_hit_the_only_input_is_the_task(tmp_path, triples):
    path = tmp_path / "batch.csv"
    path.write_text("WorkerID,Input.song,Answer.genre\nW1,a.wav,rock\nW2,a.wav,jazz\n")
    rows = [("a.wav", "W1", "rock"), ("a.wav", "W2", "jazz")]
    assert triples(cw.read(path)) == rows
    path.write_text("WorkerID,Input.song,Input.truth,Answer.genre\nW1,a.wav,x,rock\n")
    with pytest.raises(FormatError, match=r"'Input.song', 'Input.truth'(.|\n)*task="):
        cw.read(path)
    annotations = cw.read(path, task="Input.song", gold="Input.truth")
    assert annotations.classes.tolist() == ["rock", "x"]


def test_passes_over_forms_that_are_no_json(tmp_path, triples):
    path = tmp_path / "batch.csv"
    path.write_text(
        'HITId,WorkerId,Answer.taskAnswers\nH1,W1,"[{""q"":""a""}]"\nH1,W2,oops\nH1,W3,[]\n'
    )
    annotations = cw.read(path)
    assert triples(annotations) == [("H1", "W1", "a")]
    assert "rows without a label left out: 2" in annotations.notes


def test_leaves_out_times_in_zones_that_are_not_known(tmp_path):
    path = tmp_path / "batch.csv"
    path.write_text("HITId,WorkerId,SubmitTime,Answer.q\nH1,W1,Wed May 01 03:00:00 XYZ 2024,a\n")
    annotations = cw.read(path)
    assert annotations.time is None
    assert "times left out: they cannot be read" in annotations.notes
