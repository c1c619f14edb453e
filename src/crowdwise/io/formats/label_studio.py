"""Label Studio: the JSON export, JSON_MIN or CSV, of answers about whole tasks."""

import json
from collections.abc import Iterator, Mapping
from typing import NoReturn

from crowdwise.errors import FormatError, explain
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Record, RecordTable, Table
from crowdwise.io.formats.collect import Collector, choose_question, get_field, get_first
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

MINIMAL = {"annotation_id", "annotator", "lead_time"}
META = ("annotation_id", "annotator", "created_at", "updated_at", "lead_time")
VALUES = ("choices", "rating", "number", "selected", "taxonomy", "text", "datetime", "ranker")
# A value with one of these is about a part of the task: a span, a box, a stretch of time.
PLACES = {"start", "end", "startOffset", "x", "y", "points", "vertices", "rle", "ranges",
          "sequence"}  # fmt: skip
OF_PARTS = {"parentID", "item_index"}  # about a region, or one of several items


def matches(document: Table) -> bool:
    """Return whether tasks have a list of annotations, or rows the columns of JSON_MIN."""
    if set(document.columns) >= MINIMAL:
        return True
    return isinstance(document, RecordTable) and any(
        isinstance(record.get("data"), Mapping) and _has_results(record)
        for record in document.sample
    )


def parse(document: Table, options: ReadOptions) -> LongTable:
    """Return one row for each annotation that was not canceled; ground truths become gold."""
    if "annotation_id" in document.columns:
        return _parse_min(document, options)
    records = document.records()
    annotations = (one for record in records for one in _list_annotations(record))
    names = (str(item.get("from_name")) for one in annotations for item in _list_results(one))
    question = choose_question(options.asked, names, document.name)
    rows = Collector(document.name)
    for record in records:
        task = get_field(record, options.task or "id")
        if task is None and options.task:
            task = get_field(record, f"data.{options.task}")
        for annotation in _list_annotations(record):
            _add_annotation(rows, task, annotation, question, options)
        for what in ("predictions", "drafts"):
            for _ in record[what] if isinstance(record.get(what), list) else ():
                rows.count_left_out(what)
    note = f"label from question {question!r}"
    return rows.to_long(note, f"task from {options.task or 'id'!r}", "worker from 'completed_by'")


def _add_annotation(
    rows: Collector, task: Cell, annotation: Cell, question: str, options: ReadOptions
) -> None:
    if not _is_annotation(annotation):
        return rows.count_left_out("annotations without a result")
    if annotation.get("was_cancelled"):
        return rows.count_left_out("canceled annotations")
    results = [item for item in _list_results(annotation) if str(item["from_name"]) == question]
    where = f"task {task!r}, annotation {annotation.get('id')!r}"
    values = [
        item["value"] | {key: item[key] for key in OF_PARTS & item.keys()} for item in results
    ]
    label = _take_one(values, question, rows.where, where)
    if annotation.get("ground_truth"):
        return rows.take_truth(task, label, "ground-truth annotations")
    worker = get_field(annotation, options.worker or "completed_by")
    if isinstance(worker, Mapping):
        worker = get_first(worker, ("email", "username", "id"))
    time = get_first(annotation, (options.time or "created_at", "updated_at"))
    return rows.add(task, worker, label, time)


def _has_results(record: Record) -> bool:
    return any(map(_is_annotation, _list_annotations(record)))


def _list_annotations(record: Record) -> list[Cell]:
    given = record.get("annotations", record.get("completions"))
    return given if isinstance(given, list) else []


def _is_annotation(one: Cell) -> bool:
    return isinstance(one, dict) and isinstance(one.get("result"), list)


def _list_results(annotation: Cell) -> Iterator[Record]:
    for item in annotation["result"] if _is_annotation(annotation) else []:
        if isinstance(item, dict) and isinstance(item.get("value"), dict) and "from_name" in item:
            yield item


def _take_one(values: list[Record], question: str, name: str, where: str) -> Cell:
    """Return the label in the results of a question: choice, rating, or taxonomy path."""
    placed = [value for value in values if _is_placed(value)]
    if placed:
        _refuse(f"{name} marks parts of a task in question {question!r}.", where, placed[0])
    if len(values) > 1:
        fact = f"{name} has an annotation with {len(values)} answers to question {question!r}."
        _refuse(fact, where, values[1])
    value = get_first(values[0], VALUES) if values else None
    if isinstance(value, list) and value and all(isinstance(part, list) for part in value):
        return [" / ".join(map(str, part)) for part in value]
    return value


def _is_placed(value: Record) -> bool:
    return bool((PLACES | OF_PARTS) & value.keys()) or any(
        key == "labels" or (key.endswith("labels") and isinstance(value[key], list))
        for key in value
    )


def _refuse(fact: str, where: str, value: Record) -> NoReturn:
    raise FormatError(
        explain(
            fact,
            first=f"{where}: {json.dumps(value, default=str)[:80]}",
            expected="one answer about the whole task: choices, a rating, a number, a taxonomy",
            fix="choose another question with question=, or make each part a task of its own"
            " and write rows of task, worker, label",
        )
    )


def _parse_min(document: Table, options: ReadOptions) -> LongTable:
    """Parse JSON_MIN and CSV: one row per annotation, questions between id and annotator."""
    columns = list(document.columns)
    start = columns.index("id") + 1 if "id" in columns else 0
    between = [name for name in columns[start : columns.index("annotator")] if name not in META]
    others = [name for name in columns if name not in ("id", "annotator", *META)]
    known = columns if options.asked in columns else between or others
    question = choose_question(options.asked, known, document.name)
    rows = Collector(document.name)
    for number, record in enumerate(document.records(), start=1):
        value = _parse_cell(record.get(question))
        parts = value if isinstance(value, list) else [value]
        if any(isinstance(part, Mapping) for part in parts):
            if not all(isinstance(part, Mapping) for part in parts):
                parts = [part if isinstance(part, Mapping) else {"text": part} for part in parts]
            value = _take_one(parts, question, document.name, f"row {number:,}")
        worker, time = options.worker or "annotator", options.time or "created_at"
        task = get_field(record, options.task or "id")
        rows.add(task, get_field(record, worker), value, get_field(record, time))
    untyped = ("task", "worker", "label") if document.untyped else ()
    return rows.to_long(f"label from column {question!r}", untyped=untyped)


def _parse_cell(cell: Cell) -> Cell:
    """Parse a cell of the CSV: text, or JSON for several choices."""
    if not isinstance(cell, str) or cell[:1] not in ("{", "["):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


MARKS = (MINIMAL, {"data", "annotations"}, {"data", "completions"})
FORMAT = Format("label_studio", __doc__, Table, parse, MARKS, matches=matches)
