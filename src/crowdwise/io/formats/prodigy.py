"""Prodigy: JSONL of choices, or of accepted and rejected labels."""

from collections.abc import Mapping
from typing import Any

from crowdwise.io.content import Content, Long, Options, Records
from crowdwise.io.formats._rows import Rows, choose, field, first_field

TASK = ("_input_hash", "_task_hash", "id", "text")
WORKER = ("_annotator_id", "_session_id")


def matches(content: Content) -> bool:
    """Whether records have an answer and Prodigy's hashes or session."""
    marks = {"_input_hash", "_task_hash", "_session_id", "_annotator_id", "_view_id"}
    return (
        isinstance(content, Records)
        and "answer" in content.columns
        and bool(marks & set(content.columns))
    )


def parse(content: Records, options: Options) -> Long:
    """Choices where records offer options; else accept or reject of one label."""
    records = content.records()
    chosen = [row for row in records if isinstance(row.get(options.label or "accept"), list)]
    if chosen:
        return _parse_choices(content, options)
    return _parse_verdicts(content, options)


def _parse_choices(content: Records, options: Options) -> Long:
    rows = Rows(content.name)
    name = options.label or "accept"
    for record in content.records():
        if record.get("answer") != "accept":
            rows.leave_out(f"records with answer {record.get('answer')!r}")
        else:
            _add(rows, record, record.get(name), options)
    return rows.long(f"label from {name!r}")


def _parse_verdicts(content: Records, options: Options) -> Long:
    named = [str(row["label"]) for row in content.records() if row.get("label") is not None]
    label = choose(options.asked, named, content.name, "label") if named else None
    rows = Rows(content.name)
    for record in content.records():
        if label is not None and str(record.get("label")) != label:
            continue
        if record.get("answer") not in ("accept", "reject"):
            rows.leave_out(f"records with answer {record.get('answer')!r}")
        else:
            _add(rows, record, record["answer"], options)
    return rows.long("label from 'answer'" + (f" to {label!r}" if label is not None else ""))


def _add(rows: Rows, record: Mapping[str, Any], label: Any, options: Options) -> None:
    task = first_field(record, (options.task,) if options.task else TASK)
    worker = first_field(record, (options.worker,) if options.worker else WORKER)
    rows.add(task, worker, label, field(record, options.time or "_timestamp"))
