"""Label Studio: the JSON export, or JSON_MIN."""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdwise.io.content import Content, Long, Options, Records, Table
from crowdwise.io.formats._rows import Rows, choose, field, first_field

META = ("annotation_id", "annotator", "created_at", "updated_at", "lead_time")
VALUES = ("choices", "rating", "number", "selected", "taxonomy", "text", "datetime", "ranker")


def matches(content: Content) -> bool:
    """Whether tasks have a list of annotations, or rows the columns of JSON_MIN."""
    if {"annotation_id", "annotator", "lead_time"} <= set(content.columns):
        return True
    return isinstance(content, Records) and any(_annotations(row) for row in content.sample)


def parse(content: Table, options: Options) -> Long:
    """One row for each annotation that was not cancelled; ground truths become gold."""
    if "annotation_id" in content.columns:
        return _parse_min(content, options)
    records = content.records()
    results = (item for row in records for one in _annotations(row) for item in _results(one))
    question = choose(options.asked, (str(item.get("from_name")) for item in results), content.name)
    rows = Rows(content.name)
    for record in records:
        task = field(record, options.task or "id")
        if task is None and options.task:
            task = field(record, f"data.{options.task}")
        for annotation in _annotations(record):
            _take(rows, task, annotation, question, options)
    note = f"label from question {question!r}"
    return rows.long(note, f"task from {options.task or 'id'!r}", "worker from 'completed_by'")


def _take(
    rows: Rows, task: Any, annotation: Mapping[str, Any], question: str, options: Options
) -> None:
    label = [_value(item) for item in _results(annotation) if item.get("from_name") == question]
    if annotation.get("was_cancelled"):
        rows.leave_out("cancelled annotations")
    elif annotation.get("ground_truth"):
        if rows.know(task, label[0] if label else None):
            rows.count("ground-truth annotations taken as gold")
    else:
        worker = field(annotation, options.worker or "completed_by")
        if isinstance(worker, Mapping):
            worker = first_field(worker, ("email", "username", "id"))
        time = first_field(annotation, (options.time or "created_at", "updated_at"))
        rows.add(task, worker, label[0] if label else None, time)


def _annotations(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = record.get("annotations", record.get("completions"))
    if not isinstance(given, list) or not isinstance(record.get("data"), dict):
        return []
    return [one for one in given if isinstance(one, dict) and isinstance(one.get("result"), list)]


def _results(annotation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for item in annotation["result"]:
        if isinstance(item, dict) and isinstance(item.get("value"), dict) and "from_name" in item:
            yield item


def _value(item: Mapping[str, Any]) -> Any:
    """The label of one result: a choice, a rating, the path in a taxonomy."""
    value = first_field(item["value"], VALUES)
    if isinstance(value, list) and value and all(isinstance(part, list) for part in value):
        return [" / ".join(map(str, part)) for part in value]
    return value


def _parse_min(content: Table, options: Options) -> Long:
    """JSON_MIN and CSV: one row an annotation, the questions between id and annotator."""
    columns = list(content.columns)
    start = columns.index("id") + 1 if "id" in columns else 0
    between = [name for name in columns[start : columns.index("annotator")] if name not in META]
    known = columns if options.asked in columns else between
    question = choose(options.asked, known, content.name)
    rows = Rows(content.name)
    for record in content.records():
        value = record.get(question)
        if isinstance(value, Mapping):
            value = first_field(value, VALUES)
        worker, time = options.worker or "annotator", options.time or "created_at"
        task = field(record, options.task or "id")
        rows.add(task, field(record, worker), value, field(record, time))
    untyped = ("task", "worker", "label") if content.untyped else ()
    return rows.long(f"label from column {question!r}", untyped=untyped)
