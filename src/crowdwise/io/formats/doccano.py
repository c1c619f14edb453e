"""doccano: JSONL, one file per user."""

from crowdwise.io.content import Content, Long, Options, Records
from crowdwise.io.formats._rows import Rows, field, first_field
from crowdwise.io.recognize import recognize_columns

TEXT = ("text", "data", "filename", "image")
LABEL = ("label", "labels")


def matches(content: Content) -> bool:
    """Whether records have a text and a list of labels, and no list of annotators."""
    columns = set(content.columns)
    if not isinstance(content, Records) or "annotators" in columns or not columns & set(TEXT):
        return False
    return any(isinstance(row.get(name), list) for row in content.sample for name in LABEL)


def parse(content: Records, options: Options) -> Long:
    """One row for each record; the worker is a field of it, or the name of the file."""
    label = options.asked or next(name for name in (*LABEL, "label") if name in content.columns)
    worker = options.worker or recognize_columns(content.columns, {}).get("worker")
    rows = Rows(content.name)
    for record in content.records():
        who = content.stem if worker is None else field(record, worker)
        task = first_field(record, (options.task,) if options.task else ("id", *TEXT))
        rows.add(task, who, field(record, label), field(record, options.time or "updated_at"))
    return rows.long(f"worker from {'the file name' if worker is None else repr(worker)}")
