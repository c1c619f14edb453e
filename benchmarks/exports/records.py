"""Exports that are records: JSON and JSONL of labeling tools."""

import json
from collections.abc import Iterator
from typing import Any

from exports.pen import JUNK, Export, Pen, Vote, Writer, empty_rows, pack


def by_task(pen: Pen, *, twice: bool = True) -> Iterator[tuple[Any, list[Vote]]]:
    """The votes of each task."""
    votes = pen.draw_votes(twice=twice)
    for task in dict.fromkeys(task for task, *_ in votes):
        yield task, [vote for vote in votes if vote[0] == task]


def label_studio(pen: Pen) -> Export:
    rows = []
    for task, votes in by_task(pen):
        given: list[Any] = []
        for _, worker, label in votes:
            status = pen.pick(["", "", "", "was_cancelled", "ground_truth"])
            value = pen.record(choices=[label])
            result = pen.record(
                id="r", from_name="mood", to_name="text", type="choices", value=value
            )
            one = pen.record(id=1, completed_by=worker, result=[result], **{status or "x": True})
            given.append(pen.spoil(one))
            pen.write(task, worker, label, aside=bool(status))
        rows.append({"id": task, "data": {"text": "x"}, "annotations": given, "predictions": []})
    pen.options = {"question": "mood"}
    rows = empty_rows(pen, rows, {}, {"id": 5}, {"id": 6, "data": None, "annotations": None})
    return pen.export("label_studio", "export.json", pen.dump(rows))


def label_studio_min(pen: Pen) -> Export:
    rows = []
    for number, (task, worker, label) in enumerate(pen.draw_votes()):
        value = pen.pick([label, {"choices": [label]}, [label]])
        rows.append(
            pen.record(id=task, mood=value, annotator=worker, annotation_id=number, lead_time=2.5)
        )
        pen.write(task, worker, label)
    pen.options = {"question": "mood"}
    return pen.export("label_studio", "export.json", pen.dump(rows))


def prodigy(pen: Pen) -> Export:
    choices = pen.chance(0.5)
    rows = []
    for number, (_, worker, label) in enumerate(pen.draw_votes()):
        answer = pen.pick(["accept", "reject", "ignore"])
        own = {"accept": [label]} if choices else {"label": "SPAM"}
        rows.append(
            pen.record(
                _input_hash=number, _session_id=worker, _view_id="choice", answer=answer, **own
            )
        )
        aside = answer != "accept" if choices else answer == "ignore"
        pen.write(number, worker, label if choices else answer, aside=aside)
    pen.options = {} if choices else {"question": "SPAM"}
    return pen.export("prodigy", "news.jsonl", pen.dump_lines(rows))


def argilla(pen: Pen) -> Export:
    kind = pen.pick(["nested", "flat", "first"])
    rows = []
    for task, votes in by_task(pen):
        record: dict[str, Any] = {"id": task, "fields": {"text": "x"}}
        given = []
        for _, worker, label in votes:
            status = pen.pick(["submitted", "submitted", "discarded", "draft"])
            own = {"user_id": worker, "status": status}
            if kind == "first":
                given.append(pen.record(values={"mood": {"value": label}}, **own))
            else:
                given.append({"value": label, **own})
            pen.write(task, worker, label, aside=status != "submitted")
        if kind == "nested":
            record["responses"] = {"mood": given}
        elif kind == "first":
            record["responses"] = given
        else:
            record["mood.responses"] = [one["value"] for one in given]
            record["mood.responses.users"] = [one["user_id"] for one in given]
            record["mood.responses.status"] = [one["status"] for one in given]
        rows.append(record)
    pen.options = {"question": "mood"}
    rows = empty_rows(pen, rows, {}, {"id": 5}, {"id": 6, "fields": {}, "responses": None})
    return pen.export("argilla", "records.json", pen.dump(rows))


def hugging_face(pen: Pen) -> Export:
    kind = pen.pick(["lists", "dict", "objects"])
    rows: list[Any] = []
    for task, votes in by_task(pen, twice=kind != "dict"):
        workers, labels = [one[1] for one in votes], [pen.spoil(one[2]) for one in votes]
        own: dict[str, Any] = {
            "lists": {"annotators": workers, "labels": labels},
            "dict": {"annotations": dict(zip(map(str, workers), labels, strict=True))},
            "objects": {
                "annotators": [
                    {"annotator_id": worker, "label": label}
                    for worker, label in zip(workers, labels, strict=True)
                ]
            },
        }[kind]
        spoiled = pen.spoiled
        for _, worker, label in votes:
            pen.spoiled = spoiled
            pen.write(task, worker, label)
        rows.append({"id": task, **own})
    rows = empty_rows(pen, rows, {"id": 5})
    return pen.export("hugging_face", "data.jsonl", pen.dump_lines(rows))


def doccano(pen: Pen) -> Export:
    files: dict[str, list[Any]] = {}
    for task, worker, label in pen.draw_votes():
        who = str(worker)
        record = pen.record(id=task, text="x", label=[label])
        pen.write(task, who, label)
        files.setdefault(who, []).append(record)
    packed = {f"{who}.jsonl": pen.dump_lines(rows) for who, rows in files.items()}
    return pen.export("doccano", "project.zip", pack(packed))


def labelbox(pen: Pen) -> Export:
    rows = []
    for task, votes in by_task(pen):
        labels = []
        for _, worker, label in votes:
            skipped = pen.chance(0.2)
            answer = pen.record(name="mood", radio_answer=pen.record(name=label, value=label))
            own = pen.record(
                id="l",
                label_details=pen.record(created_by=worker, created_at="2024-04-08T16:21:26+00:00"),
                annotations=pen.record(objects=[], classifications=[answer]),
                performance_details={"skipped": skipped},
            )
            labels.append(pen.spoil(own))
            pen.write(task, worker, label, aside=skipped)
        rows.append({"data_row": {"id": task}, "projects": {"p": {"labels": labels}}})
    pen.options = {"question": "mood"}
    rows = empty_rows(pen, rows, {}, {"data_row": {"id": 1}, "projects": {}}, {"projects": None})
    return pen.export("labelbox", "export.ndjson", pen.dump_lines(rows))


def kili(pen: Pen) -> Export:
    rows = []
    for task, votes in by_task(pen):
        labels = []
        for _, worker, label in votes:
            kind = pen.pick(["DEFAULT", "DEFAULT", "DEFAULT", "PREDICTION", "REVIEW"])
            answer = {"JOB_0": {"categories": [{"name": label, "confidence": 100}]}}
            own = pen.record(
                author=pen.record(email=worker),
                jsonResponse=pen.pick([answer, json.dumps(answer)]),
                labelType=kind,
                createdAt="2024-04-08T16:21:26Z",
            )
            labels.append(pen.spoil(own))
            pen.write(task, worker, label, aside=kind != "DEFAULT")
        rows.append({"id": "a", "externalId": task, "labels": labels})
    pen.options = {"question": "JOB_0"}
    rows = empty_rows(pen, rows, {}, {"externalId": 5, "labels": []}, {"labels": None})
    return pen.export("kili", "export.json", pen.dump(rows))


def ground_truth(pen: Pen) -> Export:
    request = pen.chance(0.5)
    rows = []
    for task, votes in by_task(pen):
        given = []
        for _, worker, label in votes:
            form = pen.pick([{"q": label}, {"q": {"label": label}}, {"q": {"labels": [label]}}])
            content = pen.record(content=json.dumps(pen.spoil(form)))
            given.append(pen.spoil(pen.record(workerId=worker, annotationData=content)))
            pen.write(task, worker, label)
        if request:
            rows.append({"datasetObjectId": task, "dataObject": {}, "annotations": given})
        else:
            own = {"annotationsFromAllWorkers": given}
            rows.append({"source-ref": task, "job": own, "job-metadata": {"job-name": "x"}})
    pen.options = {"question": "q"}
    rows = empty_rows(pen, rows, {}, {"datasetObjectId": 5}, {"source-ref": "x"})
    if request:
        return pen.export("ground_truth", "request.json", pen.dump(rows))
    return pen.export("ground_truth", "output.manifest", pen.dump_lines(rows))


def nested(pen: Pen) -> Export:
    tree: dict[str, dict[str, Any]] = {}
    for task, worker, label in pen.draw_votes(twice=False):
        tree.setdefault(str(task), {})[str(worker)] = pen.spoil(label)
        pen.write(task, worker, label)
    return pen.export("nested", "answers.json", pen.dump(tree))


def wrench(pen: Pen) -> Export:
    tree: dict[str, Any] = {}
    for number in range(pen.random.randint(1, 6)):
        labels = [pen.random.randint(-1, 2) for _ in range(3)]
        if pen.chance(pen.dirt):
            tree[str(number)] = pen.pick([{"weak_labels": pen.pick(JUNK)}, pen.pick(JUNK)])
            if isinstance(tree[str(number)], dict) and isinstance(
                tree[str(number)].get("weak_labels"), list
            ):
                labels = tree[str(number)]["weak_labels"]
            else:
                labels = [None]
            pen.spoiled = True
        else:
            tree[str(number)] = {"label": 1, "weak_labels": labels, "data": {"text": "x"}}
        spoiled = pen.spoiled
        for worker, label in enumerate(labels):
            pen.spoiled = spoiled
            pen.write(number, worker, label, aside=label == -1)
    export = pen.export("wrench", "train.json", pen.dump(tree))
    if not any(isinstance(own, dict) and "data" in own for own in tree.values()):
        export.records = None  # nothing is left that tells it from {task: {worker: label}}
    return export


RECORDS: dict[str, Writer] = {
    "argilla": argilla,
    "doccano": doccano,
    "ground_truth": ground_truth,
    "hugging_face": hugging_face,
    "label_studio": label_studio,
    "label_studio_min": label_studio_min,
    "labelbox": labelbox,
    "kili": kili,
    "nested": nested,
    "prodigy": prodigy,
    "wrench": wrench,
}
