"""SageMaker Ground Truth's answers, in the three ways it writes them."""

import json
import zipfile

import pytest

import crowdwise as cw
from crowdwise.errors import FormatError


def answer(worker, form):
    return {"workerId": worker, "annotationData": {"content": json.dumps(form)}}


FORMS = [("w1", {"classifier": {"label": "dog"}}), ("w2", {"classifier": {"label": "cat"}})]
ANSWERS = [answer(worker, form) for worker, form in FORMS]
ROWS = [("w1", "dog"), ("w2", "cat")]


def test_reads_manifests_with_the_answers_of_all_workers(tmp_path, triples):
    line = {
        "source-ref": "s3://x/1.png",
        "animal": {"annotationsFromAllWorkers": [*ANSWERS, {"workerId": "w3"}]},
        "animal-metadata": {"type": "groundtruth/custom", "job-name": "animal"},
    }
    path = tmp_path / "output.manifest"
    path.write_text(json.dumps(line) + "\n")
    taken = cw.read(path)
    assert triples(taken) == [("s3://x/1.png", *row) for row in ROWS]
    assert "read as ground_truth" in taken.notes
    assert "answers that cannot be read left out: 1" in taken.notes


def test_reads_consolidation_requests(triples):
    one = {"datasetObjectId": "4", "dataObject": {"s3Uri": "s3://x"}, "annotations": ANSWERS}
    assert triples(cw.read([one])) == [("4", *row) for row in ROWS]


def test_reads_responses_in_the_folder_of_their_task(tmp_path, triples):
    time = {"submissionTime": "2024-05-01T10:00:00Z"}
    own = [{"workerId": worker, "answerContent": form, **time} for worker, form in FORMS]
    with zipfile.ZipFile(tmp_path / "job.zip", "w") as archive:
        for task in (0, 1):
            name = f"worker-response/iteration-1/{task}/x.json"
            archive.writestr(name, json.dumps({"answers": own}))
    taken = cw.read(tmp_path / "job.zip")
    assert triples(taken) == [(str(task), *row) for task in (0, 1) for row in ROWS]
    assert taken.time is not None


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("dog", "dog"),
        ({"labels": ["b", "a"]}, "a + b"),
        ({"good": {"on": True}, "bad": {"on": False}}, "good"),
        ({"good": False, "bad": True}, "bad"),
    ],
)
def test_reads_other_controls(value, label, triples):
    one = {"datasetObjectId": "1", "annotations": [answer("w", {"q": value})]}
    assert triples(cw.read([one])) == [("1", "w", label)]


def test_refuses_boxes():
    form = {"boxes": {"boundingBoxes": [], "inputImageProperties": {}}}
    with pytest.raises(FormatError, match=r"marks parts of a task in question 'boxes'"):
        cw.read([{"datasetObjectId": "1", "annotations": [answer("w", form)]}])


def test_asks_for_one_question(triples):
    one = {"datasetObjectId": "1", "annotations": [answer("w", {"a": "x", "b": "y"})]}
    with pytest.raises(FormatError, match=r"2 questions(.|\n)*'a', 'b'"):
        cw.read([one])
    assert triples(cw.read([one], question="b")) == [("1", "w", "y")]
