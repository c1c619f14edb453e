"""doccano: JSONL, one file per user."""

from crowdwise.errors import FormatError, explain
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, RecordTable
from crowdwise.io.formats.collect import Collector, get_field, get_first
from crowdwise.io.recognize import Format, recognize_columns
from crowdwise.io.values import Cell

TEXT = ("text", "data", "filename", "image")
LABEL = ("label", "labels")


def matches(document: RecordTable) -> bool:
    """Return whether records have a text and a list of labels, and no list of annotators."""
    columns = set(document.columns)
    if "annotators" in columns or not columns & set(TEXT):
        return False
    return any(isinstance(row.get(name), list) for row in document.sample for name in LABEL)


def parse(document: RecordTable, options: ReadOptions) -> LongTable:
    """Return one row per record; the worker is one of its fields, or the file name."""
    label = options.asked or next((name for name in LABEL if name in document.columns), LABEL[0])
    worker = options.worker or recognize_columns(document.columns, {}).get("worker")
    rows = Collector(document.name)
    for record in document.records():
        who = document.stem if worker is None else get_field(record, worker)
        task = get_first(record, (options.task,) if options.task else ("id", *TEXT))
        time = get_field(record, options.time or "updated_at")
        given = get_field(record, label)
        _refuse_spans(given, label, task, document.name)
        rows.add(task, who, given, time)
    return rows.to_long(f"worker from {'the file name' if worker is None else repr(worker)}")


def _refuse_spans(given: Cell, label: str, task: Cell, where: str) -> None:
    """Refuse lists that are not one user's labels of one text."""
    parts = given if isinstance(given, list) else []
    if any(isinstance(part, list | dict) for part in parts):
        raise FormatError(
            explain(
                f"{where} marks parts of a text in {label!r}.",
                first=f"task {task!r}: {parts[0]!r}",
                expected="labels of whole texts",
                fix="make each part a task of its own, and write rows of task, worker, label",
            )
        )
    if len(set(map(str, parts))) < len(parts):
        raise FormatError(
            explain(
                f"{where} has the same label twice for one text, as votes without names have.",
                first=f"task {task!r}: {label}={given!r}",
                expected="different labels by one user (doccano), or the names of those who voted",
                fix="put the workers' names in a list of their own, 'annotators', beside the votes",
            )
        )


FORMAT = Format("doccano", __doc__, RecordTable, parse, lists=LABEL, matches=matches)
