"""doccano: JSONL, one file per user."""

from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, RecordTable
from crowdwise.io.formats.collect import Collector, get_field, get_first
from crowdwise.io.recognize import Format, recognize_columns

TEXT = ("text", "data", "filename", "image")
LABEL = ("label", "labels")


def matches(document: RecordTable) -> bool:
    """Whether records have a text and a list of labels, and no list of annotators."""
    columns = set(document.columns)
    if "annotators" in columns or not columns & set(TEXT):
        return False
    return any(isinstance(row.get(name), list) for row in document.sample for name in LABEL)


def parse(document: RecordTable, options: ReadOptions) -> LongTable:
    """One row for each record; the worker is a field of it, or the name of the file."""
    label = options.asked or next(name for name in (*LABEL, "label") if name in document.columns)
    worker = options.worker or recognize_columns(document.columns, {}).get("worker")
    rows = Collector(document.name)
    for record in document.records():
        who = document.stem if worker is None else get_field(record, worker)
        task = get_first(record, (options.task,) if options.task else ("id", *TEXT))
        time = get_field(record, options.time or "updated_at")
        rows.add(task, who, get_field(record, label), time)
    return rows.to_long(f"worker from {'the file name' if worker is None else repr(worker)}")


FORMAT = Format("doccano", __doc__, RecordTable, parse, lists=LABEL, matches=matches)
