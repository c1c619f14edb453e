"""Prodigy: JSONL of choices, or of accepted and rejected labels."""

from crowdwise.errors import FormatError, explain
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Record, RecordTable
from crowdwise.io.formats.collect import Collector, choose_question, get_field, get_first
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

TASK = ("_input_hash", "_task_hash", "id", "text")
OWN = ("_input_hash", "_task_hash", "_session_id", "_annotator_id", "_view_id")
MARKS = tuple({"answer", name} for name in OWN)
WORKER = ("_annotator_id", "_session_id")
# Views in which people mark or write something, where "accept" only means "done".
MARKING = ("ner", "ner_manual", "spans", "spans_manual", "relations", "pos", "pos_manual", "dep",
           "image_manual", "audio_manual", "text_input", "blocks")  # fmt: skip
ANSWERS = ("accept", "reject", "ignore")
PARTS = ("spans", "relations", "audio_spans", "arcs")


def parse(document: RecordTable, options: ReadOptions) -> LongTable:
    """Return choices if records offer options, else acceptance or rejection of one label."""
    records = document.records()
    chosen = [row for row in records if isinstance(row.get(options.label or "accept"), list | str)]
    if chosen:
        return _parse_choices(document, options)
    return _parse_verdicts(document, options)


def _parse_choices(document: RecordTable, options: ReadOptions) -> LongTable:
    rows = Collector(document.name)
    name = options.label or "accept"
    for record in document.records():
        if record.get("answer") != "accept":
            rows.count_left_out(_describe(record))
        else:
            _add(rows, record, record.get(name), options)
            if any(record.get(part) for part in PARTS):
                rows.count("records with marks beside the choice, which are not read")
    return rows.to_long(f"label from {name!r}")


def _refuse_marks(document: RecordTable) -> None:
    """Refuse records whose answer is not a verdict but something marked or written."""
    for number, record in enumerate(document.records(), start=1):
        view = record.get("_view_id")
        parts = [name for name in PARTS if record.get(name) and view is None]
        if record.get("label") is None and (view in MARKING or parts):
            raise FormatError(
                explain(
                    f"{document.name} has marks inside the tasks, not labels of them.",
                    first=f"record {number:,}: "
                    + (f"_view_id {view!r}" if view in MARKING else f"field {parts[0]!r}"),
                    expected="choices ('accept' lists), or verdicts on one 'label'",
                    fix="make each marked part a task of its own, and write rows of"
                    " task, worker, label",
                )
            )


def _parse_verdicts(document: RecordTable, options: ReadOptions) -> LongTable:
    _refuse_marks(document)
    named = [str(row["label"]) for row in document.records() if row.get("label") is not None]
    label = choose_question(options.asked, named, document.name, "label") if named else None
    rows = Collector(document.name)
    for record in document.records():
        if label is not None and str(record.get("label")) != label:
            rows.count_left_out("records about another label")
        elif record.get("answer") not in ("accept", "reject"):
            rows.count_left_out(_describe(record))
        else:
            _add(rows, record, record["answer"], options)
    return rows.to_long("label from 'answer'" + (f" to {label!r}" if label is not None else ""))


def _describe(record: Record) -> str:
    answer = record.get("answer")
    return f"records with answer {answer!r}" if answer in ANSWERS else "records without an answer"


def _add(rows: Collector, record: Record, label: Cell, options: ReadOptions) -> None:
    task = get_first(record, (options.task,) if options.task else TASK)
    worker = get_first(record, (options.worker,) if options.worker else WORKER)
    rows.add(task, worker, label, get_field(record, options.time or "_timestamp"))


FORMAT = Format("prodigy", __doc__, RecordTable, parse, MARKS)
