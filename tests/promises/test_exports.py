"""What is promised about exports: what is read, what is refused, and that nothing is lost."""

import gzip
import io
import json
import zipfile

import pandas as pd
import pytest

import crowdwise as cw
from crowdwise.aggregate import MajorityVote
from crowdwise.errors import FormatError
from crowdwise.io import as_annotations


class Named(io.BytesIO):
    """Bytes that pretend to be a file of some name."""

    def __init__(self, data, name):
        super().__init__(data if isinstance(data, bytes) else data.encode())
        self.name = name


def read(value, name="export.json", **options):
    """Read what a file with this content, JSON if it is not text, would give."""
    text = value if isinstance(value, str | bytes) else json.dumps(value)
    return cw.read(Named(text, name), **options)


def refusal(value, name="export.json", **options):
    """The message of the error that reading gives."""
    with pytest.raises(FormatError) as caught:
        read(value, name, **options)
    message = str(caught.value)
    assert "expected:" in message
    return message


# -- 3: names of files -----------------------------------------------------------------------

USERS = ["anna.smith", "anna.jones", "bob@x.org", "bob@x.com", "C.JSONL", "_dan", "readme-bot"]


def doccano(label):
    return json.dumps({"id": 1, "text": "Good.", "label": [label]})


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".JSONL"])
def test_promise_03_workers_are_whole_file_names(ending, tmp_path):
    for user in USERS:
        data = doccano(user).encode()
        packed = gzip.compress(data) if ending.endswith(".gz") else data
        (tmp_path / f"{user}{ending}").write_bytes(packed)
    assert sorted(cw.read(tmp_path).workers) == sorted(USERS)


def test_promise_03_workers_are_whole_file_names_in_an_archive(tmp_path):
    path = tmp_path / "project.v2.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for user in USERS:
            archive.writestr(f"data.v1/{user}.jsonl", doccano("a"))
    assert sorted(cw.read(path).workers) == sorted(USERS)


# -- 4: spans, regions and several results ---------------------------------------------------


def label_studio(*values, name="q", kind="choices"):
    """One annotation with a result for each value."""
    result = [{"id": "r", "from_name": name, "type": kind, "value": value} for value in values]
    return [{"id": 1, "data": {}, "annotations": [{"id": 7, "completed_by": 2, "result": result}]}]


SPAN = {"start": 0, "end": 4, "text": "John", "labels": ["PER"]}
BOX = {"x": 1.5, "y": 2, "width": 3, "height": 4, "rectanglelabels": ["car"]}


@pytest.mark.parametrize("value", [SPAN, BOX, {"labels": ["PER"]}, {"rle": [1], "brushlabels": []}])
def test_promise_04_spans_and_boxes_of_label_studio_are_refused(value):
    message = refusal(label_studio(value))
    assert "marks parts of a task in question 'q'" in message
    assert "task 1, annotation 7" in message
    assert "question=" in message


def test_promise_04_choices_for_each_region_are_refused():
    choice = {"start": 0, "end": 4, "text": "John", "choices": ["famous"]}
    assert "marks parts of a task" in refusal(label_studio(choice))


def test_promise_04_several_answers_to_one_question_are_refused():
    message = refusal(label_studio({"choices": ["a"]}, {"choices": ["b"]}))
    assert "an annotation with 2 answers to question 'q'" in message
    assert '{"choices": ["b"]}' in message


def test_promise_04_another_question_can_still_be_read(triples):
    export = label_studio({"choices": ["a"]})
    export[0]["annotations"][0]["result"] += [{"from_name": "ner", "value": SPAN}] * 2
    assert triples(read(export, question="q")) == [(1, 2, "a")]


@pytest.mark.parametrize("cell", [[SPAN], [SPAN, SPAN], [{"choices": ["a"]}, {"choices": ["b"]}]])
def test_promise_04_spans_in_the_short_exports_are_refused(cell):
    row = {"id": 1, "ner": cell, "annotator": 2, "annotation_id": 3, "lead_time": 1.0}
    assert "'ner'" in refusal([row])
    text = json.dumps(cell).replace('"', '""')
    message = refusal(f'id,ner,annotator,annotation_id,lead_time\n1,"{text}",2,3,1.0\n', "x.csv")
    assert "row 1" in message


@pytest.mark.parametrize(
    "mark",
    [
        {"_view_id": "ner_manual", "spans": []},
        {"_view_id": "relations"},
        {"_view_id": "text_input", "user_input": "x"},
        {"spans": [{"start": 0, "end": 4, "label": "PER"}]},
    ],
)
def test_promise_04_marks_of_prodigy_are_refused(mark):
    rows = [{"_input_hash": 1, "_session_id": "s", "answer": "accept", **mark}]
    message = refusal(rows)
    assert "marks inside the tasks" in message
    assert "record 1: " in message


def test_promise_04_verdicts_of_prodigy_beside_marks_are_read(triples):
    spans = [{"start": 0, "end": 4, "pattern": 3}]
    row = {"_input_hash": 1, "_session_id": "s", "answer": "accept", "spans": spans}
    assert triples(read([{**row, "label": "NEWS"}])) == [(1, "s", "accept")]
    chosen = read([{**row, "accept": ["a"]}])
    assert triples(chosen) == [(1, "s", "a")]
    assert "records with marks beside the choice, which are not read: 1" in chosen.notes


@pytest.mark.parametrize("label", [[[0, 3, "PER"]], [{"start": 0, "end": 3, "label": "PER"}]])
def test_promise_04_spans_of_doccano_are_refused(label):
    message = refusal([{"id": 1, "text": "Ann sat", "label": label}])
    assert "marks parts of a text in 'label'" in message
    message = refusal([{"id": 1, "text": "Ann sat", "entities": [], "relations": []}])
    assert "doccano's export of spans" in message


# -- 5: COCO, votes without names, triples ---------------------------------------------------

BOXES = [{"id": 1, "image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "area": 12}]


@pytest.mark.parametrize(
    "value",
    [
        {"info": {}, "images": [{"id": 1}], "annotations": BOXES, "categories": [{"id": 2}] * 2},
        {"images": [{"id": 1}], "annotations": BOXES, "categories": [{"id": 2}]},
        BOXES,
        {"images": [{"id": 1}], "annotations": [{"image_id": 1, "caption": "a cat"}]},
        {"images": [{"id": 1}], "annotations": [{"image_id": 1, "caption": "a"}] * 2},
        [{"id": 5, "image_id": 1, "caption": "a cat"}],
    ],
)
def test_promise_05_coco_is_refused_by_name(value):
    message = refusal(value)
    assert "is a COCO file" in message
    assert "fix:" in message


@pytest.mark.parametrize("key", ["label", "labels"])
def test_promise_05_votes_without_names_are_refused(key):
    rows = [{"text": "a", key: ["neg", "pos"]}, {"text": "b", key: ["neg", "neg", "pos"]}]
    message = refusal(rows)
    assert "votes without names" in message
    assert "['neg', 'neg', 'pos']" in message
    assert "annotators" in message


TRIPLES = [("t1", "ann", "yes"), ("t1", "bob", "no"), ("t2", "ann", "no")]


def test_promise_05_triples_are_triples(triples):
    for taken in (
        as_annotations(TRIPLES),
        as_annotations([list(row) for row in TRIPLES]),
        cw.read(TRIPLES),
        read(TRIPLES),
        read([["task", "worker", "label"], *TRIPLES]),
        read([["answer", "item", "rater"], *([row[2], *row[:2]] for row in TRIPLES)]),
    ):
        assert sorted(triples(taken)) == sorted(TRIPLES)
    assert MajorityVote().fit(TRIPLES).labels_["t2"] == "no"


def test_promise_05_tuples_of_numbers_are_triples(triples):
    rows = [(0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 1, 1)]
    assert triples(as_annotations(rows)) == rows


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_promise_05_numbers_in_order_are_triples(order, triples):
    rows = sorted([[k // 2, k % 2, k % 2] for k in range(8)], key=lambda r: [r[i] for i in order])
    assert sorted(triples(read(rows))) == sorted(map(tuple, rows))
    assert "each row read as a task, a worker and a label" in read(rows).notes


@pytest.mark.parametrize(
    "rows", [[["a", "b", "a"], ["b", "b", "a"]], [[0, 1, -1], [1, 0, 1]], [[1, None, 2]]]
)
def test_promise_05_labels_of_three_workers_stay_a_matrix(rows):
    assert as_annotations(rows).shape == (len(rows), 3)
    assert read(rows).shape == (len(rows), 3)
    assert "each row read as a task, with 3 labels" in read(rows).notes


@pytest.mark.parametrize(
    "rows",
    [
        [["a", "b", "c"]],
        [[k // 2, k % 2, k % 2] for k in (3, 0, 2, 1, 5, 7)],
        [*[[k // 2, k % 2, k % 2] for k in range(8)], [0, 0, 1]],
        [(0, 1, 1), (0, 1, 0)],
    ],
)
def test_promise_05_rows_that_may_be_either_are_refused(rows):
    with pytest.raises(FormatError, match=r"may hold \(task, worker, label\)(.|\n)*first row"):
        as_annotations(rows)


# -- 9: choices in CSV, booleans, keys that occur twice --------------------------------------


def test_promise_09_several_choices_in_the_csv_of_label_studio(triples):
    cells = ["cat", '"{""choices"": [""dog"", ""cat""]}"', '"[""dog""]"', '"{""rating"": 4}"']
    lines = [f"{k},{cell},5,{k},2.0" for k, cell in enumerate(cells)]
    text = "\n".join(["id,animal,annotator,annotation_id,lead_time", *lines])
    labels = [row[2] for row in triples(read(text, "export.csv"))]
    assert labels == ["cat", "cat + dog", "dog", 4]


def long(*labels):
    return [{"task": 1, "worker": k, "label": label} for k, label in enumerate(labels)]


def test_promise_09_true_is_not_one():
    for taken in (read(long(True, 1)), read({"1": {"0": True, "1": 1}}), read([[True, 1, None]])):
        assert {str(name) for name in taken.classes} == {"true", "1"}
    assert as_annotations({1: {0: True, 1: 1}}).n_classes == 2
    assert read(long(True, False)).classes.tolist() == [False, True]
    assert read(long(1, 1.0)).classes.tolist() == [1]
    assert read(long(True, "x")).classes.tolist() == [True, "x"]


def test_promise_09_true_is_not_one_in_truths():
    rows = [
        {**row, "gold": gold} for row, gold in zip(long(False, "yes", 1), [True] * 3, strict=True)
    ]
    taken = read(rows, gold="gold")
    assert {str(name) for name in taken.classes} == {"false", "true", "yes", "1"}
    assert taken.gold_labels.tolist() == ["true"]
    assert taken.n_annotations == 3
    bits = read([{"task": 1, "worker": 2, "label": 1, "gold": True}], gold="gold")
    assert bits.classes.tolist() == [1]


def test_promise_09_true_among_labels_is_not_one_among_truths():
    labels, truths = ["no", True, "yes"], ["yes", 0, 1]
    rows = [
        {"task": k, "worker": "ann", "label": label, "gold": gold}
        for k, (label, gold) in enumerate(zip(labels, truths, strict=True))
    ]
    taken = read(rows, gold="gold")
    assert [str(label) for label in taken.to_frame()["label"]] == ["no", "true", "yes"]
    assert taken.gold_labels.tolist() == truths


def test_promise_09_a_null_character_ends_no_name():
    rows = [
        {"task": k, "worker": "ann", "label": name, "gold": "b"} for k, name in enumerate("a\0")
    ]
    taken = read(rows, gold="gold")
    assert taken.to_frame()["label"].tolist() == ["a", "\0"]
    assert cw.Annotations.from_dict({1: {"ann": "a\0", "bob": "a"}}).n_classes == 2


def test_promise_09_true_one_and_text_cannot_be_distinguished():
    with pytest.raises(cw.errors.AnnotationError, match="occur together"):
        read(long(True, 1, "true"))


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ('{"t1": {"ann": "yes", "ann": "no"}}', "x.json", "'ann': 'yes' and 'no'"),
        ('{"t1": {"ann": "yes"}, "t1": {"bob": "no"}}', "x.json", "'t1'"),
        ('{"task": 1, "worker": 2, "label": 3}\n{"task": 1, "task": 2}', "x.jsonl", "line 2"),
    ],
)
def test_promise_09_keys_that_occur_twice_are_refused(text, name, place):
    message = refusal(text, name)
    assert "the same key twice" in message
    assert place in message


# -- 21: other tools -------------------------------------------------------------------------


def test_promise_21_labels_of_kili_are_read(triples):
    def label(who, name, **more):
        answer = {"MOOD": {"categories": [{"name": name}]}}
        return {"author": {"email": who}, "jsonResponse": answer, **more}

    labels = [
        label("ann", "good", labelType="DEFAULT", isLatestLabelForUser=True),
        label("ann", "bad", labelType="DEFAULT", isLatestLabelForUser=False),
        {**label("bob", ""), "jsonResponse": '{"MOOD": {"categories": [{"name": "bad"}]}}'},
        label("model", "bad", labelType="PREDICTION"),
        label("eve", "bad", labelType="REVIEW"),
    ]
    rows = [{"id": "x", "externalId": "t1", "labels": labels}]
    votes = read(rows)
    assert triples(votes) == [("t1", "ann", "good"), ("t1", "bob", "bad")]
    assert votes.notes[0] == "read as kili"
    for what in ("predictions", "reviews of others' labels", "labels that their author replaced"):
        assert f"{what} left out: 1" in votes.notes
    labels[0]["jsonResponse"]["BOX"] = {"annotations": [{"boundingPoly": []}]}
    assert read(rows).n_annotations == 2
    labels[0]["jsonResponse"]["MOOD"]["annotations"] = [{"categories": [{"name": "PER"}]}]
    assert "Kili that marks parts of the assets" in refusal(rows)


METADATA = {"class-name": "dog", "job-name": "labeling-job/x", "human-annotated": "yes"}
KILI = {"author": {"email": "a@x.org"}, "jsonResponse": {"JOB": {"categories": [{"name": "A"}]}}}
FOREIGN = {
    "Appen's aggregated report": "_unit_id,_trusted_judgments,mood,mood:confidence\n1,3,good,1\n",
    "Appen's JSON report": [{"id": 1, "data": {}, "judgments_count": 3, "results": {}}],
    "an old export of Labelbox": [{"ID": "x", "DataRow ID": "y", "Labeled Data": "z", "Label": {}}],
    "SageMaker Ground Truth": [{"source-ref": "s3://x", "sport": 0, "sport-metadata": METADATA}],
    "a LabelMe file": {"version": "5", "shapes": [], "imagePath": "x.png"},
    "Argilla 1": [
        {"text": "x", "annotation": "a", "annotation_agent": "me", "status": "Validated"}
    ],
    "Scale AI": [{"task_id": "x", "response": {}, "params": {}, "status": "completed"}],
    "Kili": [{"id": "x", "externalId": "y", "latestLabel": KILI}],
}


@pytest.mark.parametrize("tool", FOREIGN)
def test_promise_21_refusals_name_the_tool_and_the_reason(tool):
    value = FOREIGN[tool]
    message = refusal(value, "x.csv" if isinstance(value, str) else "x.json")
    assert tool in message.splitlines()[0]
    assert "found:" in message
    assert "fix:" in message


def test_promise_21_columns_that_are_named_overrule_a_refusal(triples):
    text = "_unit_id,_trusted_judgments,who,mood\n1,3,ann,good\n"
    taken = read(text, "x.csv", task="_unit_id", worker="who", label="mood")
    assert triples(taken) == [(1, "ann", "good")]


def test_promise_21_labelbox_is_read(triples):
    own = {"classifications": [{"name": "q", "radio_answer": {"name": "yes"}}]}
    labels = [{"label_details": {"created_by": who}, "annotations": own} for who in ("ann", "bob")]
    line = json.dumps({"data_row": {"id": "r"}, "projects": {"p": {"labels": labels}}})
    assert triples(read(line + "\n", "x.ndjson")) == [("r", "ann", "yes"), ("r", "bob", "yes")]


def test_promise_21_answers_in_ground_truth_are_read(triples):
    content = {"content": json.dumps({"q": {"label": "yes"}})}
    own = {"annotationsFromAllWorkers": [{"workerId": "ann", "annotationData": content}]}
    line = json.dumps({"source-ref": "s3://x", "job": own, "job-metadata": METADATA})
    assert triples(read(line, "output.manifest")) == [("s3://x", "ann", "yes")]


def test_promise_21_google_forms_are_read(triples):
    text = "Timestamp,Email Address,Image 1\n2024/05/31 3:07:14 PM GMT+2,ann,yes\n"
    assert triples(read(text, "x.csv")) == [("Image 1", "ann", "yes")]


def test_promise_21_excel_is_read(triples, tmp_path):
    rows = [{"task": 1, "worker": "ann", "label": "yes"}]
    pd.DataFrame(rows).to_excel(tmp_path / "x.xlsx", index=False)
    assert triples(cw.read(tmp_path / "x.xlsx")) == [(1, "ann", "yes")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("name", ["x.csv", "x.json", "x"])
def test_promise_21_other_encodings_are_read(encoding, name, triples):
    text = "task,worker,label\n1,Jörg,yes\n1,李,no\n"
    if name == "x.json":
        text = json.dumps([{"task": 1, "worker": "Jörg", "label": "yes"}], ensure_ascii=False)
    taken = read(text.encode(encoding), name)
    assert triples(taken)[0] == (1, "Jörg", "yes")


@pytest.mark.parametrize("orient", ["columns", "index", "records", "values"])
def test_promise_05_a_frame_in_json_is_a_table(tmp_path, orient):
    frame = pd.DataFrame(
        [["t1", "w1", "pos"], ["t1", "w2", "neg"], ["t2", "w1", "pos"]],
        columns=["task", "worker", "label"],
    )
    path = tmp_path / "votes.json"
    frame.to_json(path, orient=orient)
    assert cw.read(path).to_dict() == {"t1": {"w1": "pos", "w2": "neg"}, "t2": {"w1": "pos"}}


WIDE = pd.DataFrame({"ann": list("xyxy"), "bob": list("xxxy")})


@pytest.mark.parametrize("orient", ["columns", "index"])
@pytest.mark.parametrize(
    "frame",
    [
        WIDE,
        WIDE.set_axis(["rater_1", "rater_2"], axis=1).set_axis(list("pqrs")),
        WIDE.set_axis(["item1", "item2", "item3", "item4"]),
    ],
)
def test_promise_05_a_wide_frame_in_json_has_its_tasks(frame, orient):
    value = json.loads(frame.to_json(orient=orient))
    taken = read(value)
    assert list(map(str, taken.tasks)) == list(map(str, frame.index))
    assert taken.workers.tolist() == list(frame.columns)
    assert any(f"{'work' if orient == 'columns' else 'task'}" in n[:4] for n in taken.notes)
    if orient == "columns":
        with pytest.warns(UserWarning, match="Workers from the outer names"):
            assert as_annotations(value).shape == (4, 2)


def test_promise_05_a_wide_frame_that_may_be_either_way_is_refused():
    frame = pd.DataFrame({name: list("xyzxyzxyzxyz") for name in "ab"}, list("cdefghijklmn"))
    value = json.loads(frame.to_json())
    for use in (read, as_annotations):
        with pytest.raises(FormatError, match=r"may hold \{task(.|\n)*orient='records'"):
            use(value)
    assert read(json.loads(frame.to_json(orient="index"))).shape == (12, 2)
    assert cw.read(value, "nested").shape == (2, 12)
    del value["a"]["c"]  # pandas would write a gap as null
    assert read(value).shape == (2, 12)


@pytest.mark.parametrize("orient", ["split", "table"])
@pytest.mark.parametrize("size", [3, 4])
def test_promise_05_other_frames_in_json_are_refused_by_name(orient, size):
    rows = [["t1", "w1", "pos"], ["t1", "w2", "neg"], ["t2", "w1", "pos"], ["t3", "w1", "pos"]]
    frame = pd.DataFrame(rows[:size], columns=["task", "worker", "label"])
    message = refusal(json.loads(frame.to_json(orient=orient)))
    assert "a frame that pandas wrote with orient='split' or 'table'" in message
    assert "orient='records'" in message


@pytest.mark.parametrize("orient", ["dict", "index"])
def test_promise_05_a_frame_in_a_dict_is_a_table(orient):
    frame = pd.DataFrame({"task": [1, 2], "worker": ["a", "b"], "label": ["x", "y"]})
    assert as_annotations(frame.to_dict(orient)).to_dict() == {1: {"a": "x"}, 2: {"b": "y"}}


def test_promise_06_words_in_dicts_and_arrays_are_missing():
    for data in ({0: {0: "NA", 1: "pos"}}, [["NA", "pos"]], pd.DataFrame([["NA", "pos"]])):
        with pytest.warns(UserWarning, match="Labels taken as missing: 'NA' 1"):
            assert as_annotations(data).to_dict() == {0: {1: "pos"}}


def test_promise_08_columns_of_an_array_that_share_no_class_are_doubted():
    with pytest.warns(UserWarning, match="labels that no other column has"):
        cw.read([["t1", "pos"], ["t1", "neg"], ["t2", "pos"]])
