"""Labelbox: NDJSON of a project (export version 2), with label details."""

from collections.abc import Iterator, Mapping

from crowdwise.errors import FormatError, explain
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Record, RecordTable
from crowdwise.io.formats.collect import Collector, choose_question, get_field
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

TASK, WORKER, TIME = "data_row.id", "label_details.created_by", "label_details.created_at"
PARTS = ("objects", "frames", "segments")  # marks inside an image, a text or a video


def parse(document: RecordTable, options: ReadOptions) -> LongTable:
    """Return one row for each label that was not skipped, with its answer to one question."""
    records = document.records()
    labels = [label for record in records for label in _list_labels(record)]
    asked = (str(one["name"]) for label in labels for one in _list_answers(label))
    questions = list(dict.fromkeys(asked))
    if not questions:
        _refuse_parts(labels, document.name)
    question = choose_question(options.asked, questions, document.name)
    rows = Collector(document.name)
    for record in records:
        task = get_field(record, options.task or TASK)
        for label in _list_labels(record):
            _add(rows, task, label, question, options)
    worker = options.worker or WORKER
    if rows.workers and all(who is None for who in rows.workers):
        _refuse_unnamed(document.name, worker)
    notes = (f"task from {options.task or TASK!r}", f"worker from {worker!r}")
    return rows.to_long(f"label from question {question!r}", *notes)


def _add(rows: Collector, task: Cell, label: Cell, question: str, options: ReadOptions) -> None:
    if not isinstance(label, Mapping) or not isinstance(label.get("annotations"), Mapping):
        rows.count_left_out("labels without annotations")
    elif get_field(label, "performance_details.skipped") is True:
        rows.count_left_out("skipped labels")
    else:
        answers = [one for one in _list_answers(label) if str(one["name"]) == question]
        if len(answers) > 1:
            _refuse_several(rows.where, question, f"task {task!r}, label {label.get('id')!r}")
        given = _take_answer(answers[0]) if answers else None
        if any(get_field(label, f"annotations.{part}") for part in PARTS):
            rows.count("labels with marks beside the answer, which are not read")
        time = get_field(label, options.time or TIME)
        rows.add(task, get_field(label, options.worker or WORKER), given, time)


def _list_labels(record: Record) -> list[Cell]:
    """List the labels of a data row, in all of its projects."""
    projects = record.get("projects")
    parts = projects.values() if isinstance(projects, Mapping) else []
    lists = [part.get("labels") for part in parts if isinstance(part, Mapping)]
    return [label for own in lists if isinstance(own, list) for label in own]


def _list_answers(label: Cell) -> Iterator[Record]:
    given = get_field(label, "annotations.classifications") if isinstance(label, Mapping) else None
    for one in given if isinstance(given, list) else []:
        if isinstance(one, Mapping) and one.get("name") is not None:
            yield one


def _take_answer(answer: Record) -> Cell:
    """Return the name of the choice, the names of several, or the text."""
    chosen = answer.get("radio_answer")
    if isinstance(chosen, Mapping):
        return chosen.get("name")
    several = answer.get("checklist_answers", answer.get("checklist_answer"))
    if isinstance(several, list):
        return [one.get("name") if isinstance(one, Mapping) else one for one in several]
    text = answer.get("text_answer")
    return text.get("content") if isinstance(text, Mapping) else text


def _refuse_parts(labels: list[Cell], where: str) -> None:
    for label in labels:
        for part in PARTS:
            if isinstance(label, Mapping) and get_field(label, f"annotations.{part}"):
                raise FormatError(
                    explain(
                        f"{where} is an export of Labelbox that marks parts of the data rows.",
                        first=f"label {label.get('id')!r}: {part}",
                        expected="classifications of whole data rows",
                        fix="make each part a task of its own, and write rows of"
                        " task, worker, label",
                    )
                )


def _refuse_unnamed(where: str, worker: str) -> None:
    raise FormatError(
        explain(
            f"{where} is an export of Labelbox that does not say who gave the labels.",
            expected=f"the field {worker!r} of each label",
            fix="export again with label details (label_details=True)",
        )
    )


def _refuse_several(where: str, question: str, first: str) -> None:
    raise FormatError(
        explain(
            f"{where} has several answers in one label to question {question!r}.",
            first=first,
            expected="one answer to each question in a label",
            fix="rename the questions, and export again",
        )
    )


FORMAT = Format("labelbox", __doc__, RecordTable, parse, marks=({"data_row", "projects"},))
