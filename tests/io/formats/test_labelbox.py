"""Labelbox's NDJSON."""

import pytest

import crowdwise as cw
from crowdwise.errors import FormatError


def answer(name, kind, value):
    return {"feature_id": "f", "name": name, "value": name.lower(), kind: value}


def radio(choice, name="Mood"):
    return answer(name, "radio_answer", {"name": choice, "value": choice.lower()})


def label(worker, *answers, **more):
    details = {"created_by": worker, "created_at": "2024-04-08T16:21:26.000+00:00", "reviews": []}
    own = {"objects": [], "classifications": list(answers), "relationships": []}
    return {"id": "l1", "label_details": details, "annotations": own, **more}


def row(task, *labels, project="p1"):
    return {
        "data_row": {"id": task, "global_key": f"key-{task}", "row_data": "https://x"},
        "projects": {project: {"name": "Moods", "labels": list(labels)}},
    }


def test_reads_the_answers_of_each_labeler(triples):
    skipped = label("c@x.org", radio("Good"), performance_details={"skipped": True})
    taken = cw.read(
        [row("r1", label("a@x.org", radio("Good")), label("b@x.org", radio("Bad"))),
         row("r2", label("a@x.org"), skipped, "junk")]
    )  # fmt: skip
    assert triples(taken) == [("r1", "a@x.org", "Good"), ("r1", "b@x.org", "Bad")]
    assert taken.time is not None
    assert set(taken.notes) >= {
        "read as labelbox",
        "label from question 'Mood'",
        "skipped labels left out: 1",
        "labels without annotations left out: 1",
        "rows without a label left out: 1",
    }


def test_reads_lists_and_texts(triples):
    several = answer("Topics", "checklist_answers", [{"name": "b"}, {"name": "a"}])
    text = answer("Why", "text_answer", {"content": "because"})
    export = [row("r1", label("a", several, text, radio("Good")))]
    assert triples(cw.read(export, question="Topics")) == [("r1", "a", "a + b")]
    assert triples(cw.read(export, question="Why")) == [("r1", "a", "because")]
    with pytest.raises(FormatError, match=r"3 questions(.|\n)*'Topics', 'Why', 'Mood'"):
        cw.read(export)


def test_takes_another_field_for_the_task(triples):
    taken = cw.read([row("r1", label("a", radio("Good")))], task="data_row.global_key")
    assert triples(taken) == [("key-r1", "a", "Good")]


def test_refuses_boxes_and_frames():
    for part in ("objects", "frames"):
        own = label("a")
        own["annotations"][part] = [{"name": "car", "bounding_box": {}}]
        with pytest.raises(FormatError, match=rf"Labelbox(.|\n)*label 'l1': {part}"):
            cw.read([row("r1", own)])


def test_refuses_labels_without_names():
    own = label("a", radio("Good"))
    del own["label_details"]
    with pytest.raises(FormatError, match=r"Labelbox(.|\n)*label_details=True"):
        cw.read([row("r1", own)])


def test_refuses_two_answers_to_one_question():
    with pytest.raises(FormatError, match=r"several answers in one label(.|\n)*'r1'"):
        cw.read([row("r1", label("a", radio("Good"), radio("Bad")))])
