"""Label Studio's JSON and JSON_MIN."""

import json

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.errors import FormatError


def test_reads_one_question_of_the_export(export, triples, gold):
    annotations = export("label_studio.json", question="animal")
    assert triples(annotations) == [
        (11, 5, "cat"),
        (11, "bob@example.org", "cat + dog"),
        (12, 5, "cat"),
    ]
    assert gold(annotations) == {12: "dog"}
    assert annotations.time.astype("datetime64[h]")[0] == np.datetime64("2024-05-01T10")
    assert set(annotations.notes) >= {
        "read as label_studio",
        "label from question 'animal'",
        "canceled annotations left out: 1",
        "ground-truth annotations taken as gold: 1",
        "annotations of several labels, joined with ' + ': 1",
    }


def test_reads_ratings(export, triples):
    annotations = export("label_studio.json", question="quality")
    assert triples(annotations) == [(11, 5, 4)]
    assert "rows without a label left out: 2" in annotations.notes


def test_lists_the_questions_when_there_are_several(export):
    with pytest.raises(FormatError, match=r"2 questions(.|\n)*'animal', 'quality'(.|\n)*question="):
        export("label_studio.json")


def test_says_which_questions_there_are(export):
    with pytest.raises(FormatError, match=r"no question 'mood'(.|\n)*'animal', 'quality'"):
        export("label_studio.json", question="mood")


def test_takes_another_field_for_the_task_and_worker(export, triples):
    annotations = export(
        "label_studio.json", question="animal", task="image", worker="id", time="lead_time"
    )
    assert triples(annotations)[0] == ("/data/cat-1.jpg", 1, "cat")
    assert annotations.time[0] == 4.2


def test_takes_the_loaded_export(exports, export):
    loaded = json.loads((exports / "label_studio.json").read_text())
    built = cw.read(loaded, "label_studio", question="animal")
    assert built.equals(export("label_studio.json", question="animal"))


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ({"taxonomy": [["animal", "cat"]]}, "animal / cat"),
        ({"number": 3}, 3),
        ({"selected": "left"}, "left"),
        ({"text": ["free"]}, "free"),
    ],
)
def test_reads_other_controls(value, label, triples):
    result = [{"from_name": "q", "to_name": "x", "type": "any", "value": value}]
    task = {"id": 1, "data": {}, "annotations": [{"completed_by": 2, "result": result}]}
    assert triples(cw.read([task], "label_studio")) == [(1, 2, label)]


def test_reads_old_exports_with_completions(triples):
    result = [{"from_name": "q", "to_name": "x", "type": "choices", "value": {"choices": ["a"]}}]
    task = {"id": 1, "data": {}, "completions": [{"completed_by": 2, "result": result}]}
    assert triples(cw.read([task], "label_studio")) == [(1, 2, "a")]


def test_reads_json_min(export, triples):
    annotations = export("label_studio_min.json")
    assert triples(annotations) == [(11, 5, "cat"), (11, 7, "cat + dog"), (12, 5, "cat")]
    assert "label from column 'animal'" in annotations.notes
    assert annotations.time is not None


def test_reads_the_csv_of_the_same_shape(tmp_path, triples):
    path = tmp_path / "export.csv"
    path.write_text(
        "image,id,animal,annotator,annotation_id,created_at,lead_time\nx,11,cat,5,1,,2\n"
    )
    assert triples(cw.read(path)) == [(11, 5, "cat")]


def test_json_min_takes_any_column_that_is_asked_for(export, triples):
    annotations = export("label_studio_min.json", question="image", task="annotation_id")
    assert triples(annotations)[0] == (1, 5, "/data/cat-1.jpg")


def annotation(worker, choice, **more):
    given = [{"from_name": "q", "value": {"choices": [choice]}}] if choice else []
    return {"completed_by": worker, "result": given, **more}


def test_a_truth_of_a_task_without_annotations_is_kept(gold):
    given = [[annotation(7, "cat")], [annotation(8, "dog", ground_truth=True)]]
    export = [{"id": k + 1, "data": {}, "annotations": own} for k, own in enumerate(given)]
    annotations = cw.read(export)
    assert annotations.tasks.tolist() == [1, 2]
    assert annotations.workers.tolist() == [7]
    assert gold(annotations) == {2: "dog"}
    assert "tasks with a truth and no annotation: 1" in annotations.notes
    assert not any("without a label" in note for note in annotations.notes)


def test_truths_that_say_nothing_are_left_out(gold):
    truths = [annotation(8, one, ground_truth=True) for one in ("dog", "cat", "dog")]
    given = {
        None: [annotation(1, None), truths[0]],
        1: [annotation(7, "cat"), *truths[:2]],
        2: [annotation(7, "cat"), annotation(8, None, ground_truth=True)],
        3: [annotation(7, "cat"), truths[0], truths[2]],
    }
    annotations = cw.read(
        [{"id": task, "data": {}, "annotations": own} for task, own in given.items()]
    )
    assert gold(annotations) == {3: "dog"}
    assert set(annotations.notes) >= {
        "ground-truth annotations taken as gold: 4",
        "ground-truth annotations without a task or a label left out: 2",
        "tasks with two different truths, left without one: 1",
    }


def test_nothing_but_a_truth_of_no_task():
    own = [annotation(1, None), annotation(2, "dog", ground_truth=True)]
    export = [{"id": None, "data": {}, "annotations": own}]
    assert cw.read(export).shape == (0, 1)
