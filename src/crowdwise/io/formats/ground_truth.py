"""SageMaker Ground Truth: workers' answers, in manifests, consolidation requests or responses."""

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import NamedTuple

from crowdwise.errors import FormatError, explain
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Record, RecordTable
from crowdwise.io.formats.collect import Collector, choose_question, get_field, get_first
from crowdwise.io.recognize import Format
from crowdwise.io.typed_files import load_json
from crowdwise.io.values import Cell

ALL, OBJECT = "annotationsFromAllWorkers", "datasetObjectId"
TASK = ("source-ref", "source", OBJECT)


class Answer(NamedTuple):
    """What one worker submitted for one task."""

    task: Cell
    worker: Cell
    form: Cell
    time: Cell


def matches(document: RecordTable) -> bool:
    """Return whether records have the answers of single workers."""
    columns = set(document.columns)
    if {OBJECT, "annotations"} <= columns or {"answerContent", "workerId"} <= columns:
        return True
    return any(
        isinstance(value, Mapping) and ALL in value
        for row in document.sample
        for value in row.values()
    )


def parse(document: RecordTable, options: ReadOptions) -> LongTable:
    """Return one row for each worker's answer to one question of the form."""
    answers = [one for record in document.records() for one in _list_answers(record, document)]
    forms = [one.form for one in answers if isinstance(one.form, Mapping)]
    names = (str(name) for form in forms for name in form)
    question = choose_question(options.asked, names, document.name)
    rows = Collector(document.name)
    for one in answers:
        task = one.task
        if not isinstance(one.form, Mapping):
            rows.count_left_out("answers that cannot be read")
            continue
        value = _take_value(one.form.get(question), f"task {task!r}", question, document.name)
        rows.add(task, one.worker, value, one.time)
    return rows.to_long(f"label from question {question!r}", "worker from 'workerId'")


def _list_answers(record: Record, document: RecordTable) -> Iterator[Answer]:
    """Yield the answers in a record, in any of the three forms that Ground Truth writes."""
    if "answerContent" in record:  # a response file is in the folder of its task
        task = PurePath(document.name).parent.name or document.stem
        yield Answer(task, record.get("workerId"), record["answerContent"],
                     record.get("submissionTime"))  # fmt: skip
        return
    task = get_first(record, TASK)
    lists = [record.get("annotations")] if OBJECT in record else []
    lists += [
        value[ALL] for value in record.values() if isinstance(value, Mapping) and ALL in value
    ]
    for given in lists:
        for one in given if isinstance(given, list) else [given] * (given is not None):
            known = one if isinstance(one, Mapping) else {}
            form = _parse_form(get_field(known, "annotationData.content"))
            yield Answer(task, known.get("workerId"), form, None)


def _parse_form(content: Cell) -> Cell:
    """Parse a worker's submission, which is JSON in a string."""
    try:
        return load_json(content) if isinstance(content, str) else content
    except (ValueError, RecursionError):
        return None


def _take_value(value: Cell, where: str, question: str, name: str) -> Cell:
    """Return the label in a control of the form: a word, its label, or enabled options."""
    if not isinstance(value, Mapping):
        return value
    if set(value) <= {"label", "labels"} and value:
        return value.get("label", value.get("labels"))
    switches = [_is_on(one) for one in value.values()]
    if value and all(one is not None for one in switches):
        return [option for option, on in zip(value, switches, strict=True) if on]
    raise FormatError(
        explain(
            f"{name} marks parts of a task in question {question!r}.",
            first=f"{where}: {', '.join(map(str, value))}",
            expected="a label, several labels, or options that are on or off",
            fix="choose another question with question=, or make each part a task of its own",
        )
    )


def _is_on(value: Cell) -> bool | None:
    on = value.get("on") if isinstance(value, Mapping) else value
    return on if isinstance(on, bool) else None


FORMAT = Format("ground_truth", __doc__, RecordTable, parse, matches=matches)
