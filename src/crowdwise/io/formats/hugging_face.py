"""Data sets with lists in cells: annotators beside annotations, as on Hugging Face."""

import ast
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from crowdwise.errors import FormatError, explain
from crowdwise.io.build import LongTable
from crowdwise.io.document import Document, ReadOptions, Record, Table, Tree
from crowdwise.io.formats.collect import Collector, get_field
from crowdwise.io.recognize import (
    SYNONYMS,
    Format,
    holds_several,
    normalize_name,
    recognize_columns,
)
from crowdwise.io.values import Cell

WORKERS = ("annotators", "annotatorids", "workers", "workerids", "raters", "raterids", "users",
           "userids", "annotatorid", "workerid", "raterid", "annotator")  # fmt: skip
LABELS = ("annotations", "labels", "annotatorlabels", "answers", "ratings", "votes", "label",
          "annotation")  # fmt: skip


def matches(document: Document) -> bool:
    """Return whether rows name several workers and as many labels."""
    rows = _take_records(document, whole=False)
    workers, labels = _find_columns(document, rows, ReadOptions())
    if any(isinstance(row.get(labels), Mapping) and _names_worker(row) for row in rows):
        return False  # the label of one worker is an object
    several = [row for row in rows if any(holds_several(row.get(k)) for k in (workers, labels))]
    try:
        return any([pair for row in several for pair in _pair_up(row, workers, labels, "")])
    except FormatError:
        return False


def _names_worker(row: Record) -> bool:
    """Return whether a row has a single worker; a source or a model may be the task's."""
    words = set(SYNONYMS["worker"]) - {"source", "model"}
    return any(normalize_name(name) in words and row[name] for name in row)


def parse(document: Document, options: ReadOptions) -> LongTable:
    """Return one row for each worker in the lists of a task."""
    records = _take_records(document, whole=True)
    workers, labels = _find_columns(document, records, options)
    others = [name for row in records[:1] for name in row if name not in (workers, labels)]
    name = options.task or recognize_columns(others, {}).get("task")
    rows = Collector(document.name)
    for number, record in enumerate(records):
        task = number if name is None else get_field(record, name)
        for worker, label in _pair_up(record, workers, labels, document.name):
            rows.add(task, worker, label)
    where = "the row number" if name is None else repr(name)
    notes = (f"task from {where}", f"worker from {workers!r}", f"label from {labels or workers!r}")
    text = any(isinstance(row.get(workers), str) for row in records)
    untyped = ("worker", "label") if text or document.untyped else ()
    return rows.to_long(*notes, untyped=(*untyped, "task") if _has_text_keys(document) else untyped)


def _has_text_keys(document: Document) -> bool:
    return document.untyped or isinstance(document, Tree)


def _take_records(document: Document, *, whole: bool) -> Sequence[Record]:
    """Return the rows; rows in an object get its keys as ids."""
    if isinstance(document, Tree):
        rows = document.value.items()
        return [{"id": key, **row} for key, row in rows if isinstance(row, dict)]
    return document.records() if whole and isinstance(document, Table) else document.sample


def _find_columns(
    document: Document, rows: Sequence[Record], options: ReadOptions
) -> tuple[str, str]:
    """Find the fields of workers and of labels; empty if there is none."""
    names = document.columns or [name for row in rows[:1] for name in row]
    by_plain = {normalize_name(name): name for name in reversed(list(names))}
    workers = options.worker or next((by_plain[n] for n in WORKERS if n in by_plain), "")
    labels = options.asked or next((by_plain[n] for n in LABELS if n in by_plain), "")
    return workers, labels


def _pair_up(record: Record, workers: str, labels: str, where: str) -> Iterator[tuple[Cell, Cell]]:
    """Pair the workers of one task with their labels, in any of the usual layouts."""
    who, what = _unpack(record.get(workers)), _unpack(record.get(labels))
    if isinstance(what, Mapping):  # {worker: label}
        yield from what.items()
    elif isinstance(who, Mapping):  # {annotator_id: [...], label: [...]}
        yield from _zip_lists(*_take_pair(who, where), where)
    elif isinstance(who, list) and who and all(isinstance(one, Mapping) for one in who):
        yield from (_take_pair(one, where) for one in who)  # [{annotator_id, label}, ...]
    else:
        yield from _zip_lists(who, what, where)


def _take_pair(cell: Record, where: str) -> tuple[Cell, Cell]:
    roles = recognize_columns(cell, {})
    if not {"worker", "label"} <= roles.keys():
        raise _mismatch_error(where, f"fields {', '.join(map(str, cell))}")
    return cell[roles["worker"]], cell[roles["label"]]


def _zip_lists(who: Cell, what: Cell, where: str) -> Iterator[tuple[Cell, Cell]]:
    lists = [list(side) if holds_several(side) else None for side in (who, what)]
    if lists[0] is None or lists[1] is None or len(lists[0]) != len(lists[1]):
        raise _mismatch_error(where, f"{lists[0]} beside {lists[1]}")
    return zip(lists[0], lists[1], strict=True)


def _mismatch_error(where: str, first: str) -> FormatError:
    expected = "as many workers as labels in each row, or {worker: label}"
    return FormatError(
        explain(
            f"{where} has lists that do not match.",
            first=first,
            expected=expected,
            fix="export the data again, or write rows of task, worker, label",
        )
    )


def _unpack(cell: Cell) -> Cell:
    """Parse a list or dict that was written as text; text with commas is a list."""
    if cell is None:
        return []
    if not isinstance(cell, str):
        return cell.tolist() if isinstance(cell, np.ndarray) else cell
    if cell[:1] in ("[", "{"):
        try:
            return ast.literal_eval(cell)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return cell.strip("[]").split()  # as NumPy prints an array
    return [part.strip() for part in cell.split(",")]


LISTS = (*WORKERS, *LABELS, "")  # including an unnamed column
FORMAT = Format("hugging_face", __doc__, Document, parse, lists=LISTS, matches=matches)
