"""Label Studio: the JSON export, or JSON_MIN."""

from collections.abc import Iterator, Mapping

from crowdwise.io.build import LongTable
from crowdwise.io.document import Cell, ReadOptions, Record, RecordTable, Table
from crowdwise.io.formats.collect import Collector, choose_question, get_field, get_first
from crowdwise.io.recognize import Format

MINIMAL = {"annotation_id", "annotator", "lead_time"}
META = ("annotation_id", "annotator", "created_at", "updated_at", "lead_time")
VALUES = ("choices", "rating", "number", "selected", "taxonomy", "text", "datetime", "ranker")


def matches(document: Table) -> bool:
    """Whether tasks have a list of annotations, or rows the columns of JSON_MIN."""
    if set(document.columns) >= MINIMAL:
        return True
    return isinstance(document, RecordTable) and any(map(_list_annotations, document.sample))


def parse(document: Table, options: ReadOptions) -> LongTable:
    """One row for each annotation that was not canceled; ground truths become gold."""
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
    note = f"label from question {question!r}"
    return rows.to_long(note, f"task from {options.task or 'id'!r}", "worker from 'completed_by'")


def _add_annotation(
    rows: Collector, task: Cell, annotation: Record, question: str, options: ReadOptions
) -> None:
    results = (item for item in _list_results(annotation) if item.get("from_name") == question)
    label = next(map(_extract_label, results), None)
    if annotation.get("was_cancelled"):
        rows.count_left_out("canceled annotations")
    elif annotation.get("ground_truth"):
        if rows.add_truth(task, label):
            rows.count("ground-truth annotations taken as gold")
    else:
        worker = get_field(annotation, options.worker or "completed_by")
        if isinstance(worker, Mapping):
            worker = get_first(worker, ("email", "username", "id"))
        time = get_first(annotation, (options.time or "created_at", "updated_at"))
        rows.add(task, worker, label, time)


def _list_annotations(record: Record) -> list[Record]:
    given = record.get("annotations", record.get("completions"))
    if not isinstance(given, list) or not isinstance(record.get("data"), dict):
        return []
    return [one for one in given if isinstance(one, dict) and isinstance(one.get("result"), list)]


def _list_results(annotation: Record) -> Iterator[Record]:
    for item in annotation["result"]:
        if isinstance(item, dict) and isinstance(item.get("value"), dict) and "from_name" in item:
            yield item


def _extract_label(item: Record) -> Cell:
    """The label of one result: a choice, a rating, the path in a taxonomy."""
    value = get_first(item["value"], VALUES)
    if isinstance(value, list) and value and all(isinstance(part, list) for part in value):
        return [" / ".join(map(str, part)) for part in value]
    return value


def _parse_min(document: Table, options: ReadOptions) -> LongTable:
    """JSON_MIN and CSV: one row per annotation, the questions between id and annotator."""
    columns = list(document.columns)
    start = columns.index("id") + 1 if "id" in columns else 0
    between = [name for name in columns[start : columns.index("annotator")] if name not in META]
    known = columns if options.asked in columns else between
    question = choose_question(options.asked, known, document.name)
    rows = Collector(document.name)
    for record in document.records():
        value = record.get(question)
        if isinstance(value, Mapping):
            value = get_first(value, VALUES)
        worker, time = options.worker or "annotator", options.time or "created_at"
        task = get_field(record, options.task or "id")
        rows.add(task, get_field(record, worker), value, get_field(record, time))
    untyped = ("task", "worker", "label") if document.untyped else ()
    return rows.to_long(f"label from column {question!r}", untyped=untyped)


MARKS = (MINIMAL, {"data", "annotations"}, {"data", "completions"})
FORMAT = Format("label_studio", __doc__, Table, parse, MARKS, matches=matches)
