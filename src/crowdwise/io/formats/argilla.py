"""Argilla: records as a list or a data set, nested or flat."""

from collections.abc import Iterator, Mapping

from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Record, Table
from crowdwise.io.formats.collect import Collector, choose_question, get_field, get_first
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

TASK = ("id", "external_id", "_server_id")
TAKEN = ("submitted", None)
LEFT = ("draft", "discarded", "pending")


def matches(document: Table) -> bool:
    """Return whether there are columns such as ``label.responses``, or nested responses."""
    if any(str(name).endswith(".responses") for name in document.columns):
        return True
    return "responses" in document.columns and any(
        isinstance(row.get("fields"), Mapping) for row in document.sample
    )


def parse(document: Table, options: ReadOptions) -> LongTable:
    """Return one row for each submitted response to one question."""
    records = document.records()
    names = (name for record in records for name, *_ in _list_responses(record) if name)
    question = choose_question(options.asked, names, document.name)
    places = (options.task, f"fields.{options.task}") if options.task else TASK
    rows = Collector(document.name)
    for record in records:
        task = get_first(record, places)
        for name, value, worker, status in _list_responses(record):
            if not name:
                rows.count_left_out("responses without values")
            elif name == question and status not in TAKEN:
                rows.count_left_out(f"{status if status in LEFT else 'other'} responses")
            elif name == question:
                time = get_field(record, options.time) if options.time else None
                rows.add(task, worker, value, time)
    return rows.to_long(f"label from question {question!r}")


def _list_responses(record: Record) -> Iterator[tuple[str, Cell, Cell, Cell]]:
    """Yield every response as question, value, worker and status."""
    nested = record.get("responses")
    if isinstance(nested, Mapping):  # {question: [{value, user_id}]}
        for name, given in nested.items():
            for one in given if _is_list(given) else [given] * (given is not None):
                own = one if isinstance(one, Mapping) else {"value": one}
                yield str(name), own.get("value"), own.get("user_id"), own.get("status")
    elif _is_list(nested):  # version 1: [{values: {question: {value}}, user_id}]
        for one in nested or []:
            own = one if isinstance(one, Mapping) else {}
            values = own.get("values")
            named = values.items() if isinstance(values, Mapping) and values else [("", one)]
            for name, value in named:
                plain = value.get("value") if isinstance(value, Mapping) else value
                yield str(name), plain, own.get("user_id"), own.get("status")
    for key, given in record.items():
        if str(key).endswith(".responses") and given is not None:
            lists = given if _is_list(given) else [given]
            users = _pad(record.get(f"{key}.users"), len(lists))
            status = _pad(record.get(f"{key}.status"), len(lists))
            name = str(key).removesuffix(".responses")
            yield from ((name, *one) for one in zip(lists, users, status, strict=True))


def _is_list(value: Cell) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _pad(values: Cell, size: int) -> list[Cell]:
    known = list(values)[:size] if _is_list(values) else []
    return known + [None] * (size - len(known))


MARKS = ({"*.responses"}, {"responses", "fields"})
FORMAT = Format("argilla", __doc__, Table, parse, MARKS, matches=matches)
