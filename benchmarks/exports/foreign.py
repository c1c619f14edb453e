"""Exports that must be refused, by the name of their tool or by what is in them."""

from collections.abc import Callable
from typing import Any

from exports.pen import Export, Pen, Writer
from exports.tables import to_text

BOX = [1.0, 2.0, 3.0, 4.0]


def sized(pen: Pen, draw: Callable[[int], Any]) -> list[Any]:
    return [draw(number) for number in range(pen.random.randint(1, 4))]


def coco(pen: Pen) -> Any:
    marks = sized(pen, lambda k: {"id": k, "image_id": k, "category_id": 1, "bbox": BOX, "area": 2})
    kinds = sized(pen, lambda k: {"id": k, "name": f"c{k}"})
    return {"images": [{"id": 1}], "annotations": marks, "categories": kinds}


def label_studio_spans(pen: Pen) -> Any:
    value = pen.pick([{"start": 0, "end": 4, "text": "John", "labels": ["PER"]},
                      {"x": 1, "y": 2, "rectanglelabels": ["car"]},
                      {"start": 0, "end": 4, "choices": ["famous"]}])  # fmt: skip
    result = [{"id": "r", "from_name": "q", "type": "labels", "value": value}]
    one = {"id": 1, "completed_by": 2, "result": result}
    return sized(pen, lambda k: {"id": k, "data": {}, "annotations": [one]})


def prodigy_spans(pen: Pen) -> Any:
    spans = [{"start": 0, "end": 4, "label": "PER"}]
    own = {"_session_id": "s", "_view_id": "ner_manual", "answer": "accept", "spans": spans}
    return sized(pen, lambda k: {"_input_hash": k, "text": "x", **own})


def ground_truth_manifest(pen: Pen) -> Any:
    about = {"class-name": "dog", "job-name": "labeling-job/x", "human-annotated": "yes"}
    return sized(pen, lambda k: {"source-ref": f"s3://{k}", "sport": 0, "sport-metadata": about})


def unnamed(pen: Pen) -> Any:
    return sized(pen, lambda k: {"text": f"x{k}", "labels": ["neg", "neg", "pos"]})


def kili(pen: Pen) -> Any:
    own = {"author": {"email": "a@x.org"}, "jsonResponse": {"JOB": {"categories": []}}}
    return sized(pen, lambda k: {"id": k, "externalId": f"x{k}", "labels": [own]})


def argilla_legacy(pen: Pen) -> Any:
    own = {"annotation": "a", "annotation_agent": "me", "status": "Validated"}
    return sized(pen, lambda k: {"id": k, "text": "x", **own})


def scale(pen: Pen) -> Any:
    return sized(pen, lambda k: {"task_id": f"x{k}", "response": {"category": "red"}, "params": {}})


def labelbox_v1(pen: Pen) -> Any:
    return sized(pen, lambda k: {"ID": k, "DataRow ID": k, "Labeled Data": "x", "Label": {}})


def appen_json(pen: Pen) -> Any:
    return sized(pen, lambda k: {"id": k, "data": {}, "judgments_count": 3, "results": {}})


def doccano_spans(pen: Pen) -> Any:
    return sized(pen, lambda k: {"id": k, "text": "Ann sat", "entities": [{"start_offset": 0}]})


def doccano_old_spans(pen: Pen) -> Any:
    return sized(pen, lambda k: {"id": k, "text": "Ann sat", "label": [[0, 3, "PER"]]})


def pandas(pen: Pen) -> Any:
    rows = sized(pen, lambda k: [f"t{k}", "ann", "yes"])
    own = {"columns": ["task", "worker", "label"], "index": [*range(len(rows))], "data": rows}
    return pen.pick([own, {"schema": {"pandas_version": "1.4.0"}, "data": [{"task": "t1"}]}])


JSON: dict[str, tuple[Callable[[Pen], Any], str]] = {
    "appen_json": (appen_json, "Appen's JSON report"),
    "argilla_legacy": (argilla_legacy, "Argilla 1"),
    "coco": (coco, "a COCO file"),
    "doccano_old_spans": (doccano_old_spans, "marks parts of a text"),
    "doccano_spans": (doccano_spans, "doccano's export of spans"),
    "ground_truth_manifest": (ground_truth_manifest, "SageMaker Ground Truth"),
    "kili_parts": (kili, "Kili"),
    "label_studio_spans": (label_studio_spans, "marks parts of a task"),
    "labelbox_v1": (labelbox_v1, "Labelbox"),
    "labelme": (lambda _: {"version": "5", "shapes": [], "imagePath": "x"}, "a LabelMe file"),
    "pandas": (pandas, "a frame that pandas wrote"),
    "prodigy_spans": (prodigy_spans, "marks inside the tasks"),
    "scale": (scale, "Scale AI"),
    "unnamed": (unnamed, "votes without names"),
}


def as_json(tool: str) -> Writer:
    """A writer of a refused export in JSON, which must be refused by name."""
    make, says = JSON[tool]

    def write(pen: Pen) -> Export:
        return pen.export(tool, "export.json", pen.dump(make(pen)), says)

    return write


def appen_aggregated(pen: Pen) -> Export:
    rows = sized(pen, lambda k: [str(k), "3", pen.pick(pen.words), "0.9"])
    header = ["_unit_id", "_trusted_judgments", "mood", "mood:confidence"]
    return pen.export("appen_aggregated", "x.csv", to_text(header, rows), "Appen's aggregated")


def survey(pen: Pen) -> Export:
    rows = sized(pen, lambda k: ["x", "x", f"R_{k}", pen.pick(pen.words)])
    header = pen.pick(
        [
            ["StartDate", "EndDate", "ResponseId", "Q1"],
            ["Respondent ID", "Collector ID", "Email Address", "Q1"],
        ]
    )
    return pen.export("survey", "x.csv", to_text(header, rows), "a survey of Qualtrics")


def markup(pen: Pen) -> Export:
    text, says = pen.pick([("<?xml version='1.0'?><annotations/>", "XML"),
                           ("<!DOCTYPE html><html></html>", "a web page")])  # fmt: skip
    return pen.export("markup", pen.pick(["x", "x.csv", "x.json"]), text.encode(), says)


FOREIGN: dict[str, Writer] = {
    **{tool: as_json(tool) for tool in JSON},
    "appen_aggregated": appen_aggregated,
    "markup": markup,
    "survey": survey,
}
