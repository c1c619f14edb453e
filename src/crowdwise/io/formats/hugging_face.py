"""Data sets with lists in their cells: annotators beside annotations, as on Hugging Face."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from crowdwise.errors import FormatError, explain
from crowdwise.io.content import Content, Long, Options, Table, Tree
from crowdwise.io.formats._rows import Rows, field
from crowdwise.io.recognize import normalize_name, recognize_columns

WORKERS = ("annotators", "annotatorids", "workers", "workerids", "raters", "raterids", "users",
           "userids", "annotatorid", "workerid", "raterid", "annotator")  # fmt: skip
LABELS = ("annotations", "labels", "annotatorlabels", "answers", "ratings", "votes", "label",
          "annotation")  # fmt: skip
Record = Mapping[str, Any]


def matches(content: Content) -> bool:
    """Whether rows name several workers and as many labels."""
    rows = _records(content, whole=False)
    workers, labels = _columns(content, rows, Options())
    several = [row for row in rows if _several(row.get(workers)) or _several(row.get(labels))]
    try:
        return any([pair for row in several for pair in _pairs(row, workers, labels, "")])
    except FormatError:
        return False


def parse(content: Content, options: Options) -> Long:
    """One row for each worker in the lists of a task."""
    records = _records(content, whole=True)
    workers, labels = _columns(content, records, options)
    others = [name for row in records[:1] for name in row if name not in (workers, labels)]
    name = options.task or recognize_columns(others, {}).get("task")
    rows = Rows(content.name)
    for number, record in enumerate(records):
        task = number if name is None else field(record, name)
        for worker, label in _pairs(record, workers, labels, content.name):
            rows.add(task, worker, label)
    where = "the row number" if name is None else repr(name)
    notes = (f"task from {where}", f"worker from {workers!r}", f"label from {labels or workers!r}")
    text = any(isinstance(row.get(workers), str) for row in records)
    untyped = ("worker", "label") if text or content.untyped else ()
    return rows.long(*notes, untyped=(*untyped, "task") if _keyed(content) else untyped)


def _keyed(content: Content) -> bool:
    return content.untyped or isinstance(content, Tree)


def _records(content: Content, *, whole: bool) -> Sequence[Record]:
    """The rows; those of an object take their keys as ids."""
    if isinstance(content, Tree):
        rows = content.value.items()
        return [{"id": key, **row} for key, row in rows if isinstance(row, dict)]
    return content.records() if whole and isinstance(content, Table) else content.sample


def _columns(content: Content, rows: Sequence[Record], options: Options) -> tuple[str, str]:
    """The fields of workers and of labels; empty where there is none."""
    names = content.columns or [name for row in rows[:1] for name in row]
    by_plain = {normalize_name(name): name for name in reversed(list(names))}
    workers = options.worker or next((by_plain[n] for n in WORKERS if n in by_plain), "")
    labels = options.asked or next((by_plain[n] for n in LABELS if n in by_plain), "")
    return workers, labels


def _pairs(record: Record, workers: str, labels: str, where: str) -> Iterator[tuple[Any, Any]]:
    """The workers of one task with their labels, in any of the ways in use."""
    who, what = _unpacked(record.get(workers)), _unpacked(record.get(labels))
    if isinstance(what, Mapping):  # {worker: label}
        yield from what.items()
    elif isinstance(who, Mapping):  # {annotator_id: [...], label: [...]}
        yield from _zipped(*_inside(who, where), where)
    elif isinstance(who, list) and who and all(isinstance(one, Mapping) for one in who):
        yield from (_inside(one, where) for one in who)  # [{annotator_id, label}, ...]
    else:
        yield from _zipped(who, what, where)


def _inside(cell: Mapping[str, Any], where: str) -> tuple[Any, Any]:
    roles = recognize_columns(cell, {})
    if not {"worker", "label"} <= roles.keys():
        raise _mismatch(where, f"fields {', '.join(map(str, cell))}")
    return cell[roles["worker"]], cell[roles["label"]]


def _zipped(who: Any, what: Any, where: str) -> Iterator[tuple[Any, Any]]:
    lists = [list(side) if _several(side) else None for side in (who, what)]
    if lists[0] is None or lists[1] is None or len(lists[0]) != len(lists[1]):
        raise _mismatch(where, f"{lists[0]} beside {lists[1]}")
    return zip(lists[0], lists[1], strict=True)


def _mismatch(where: str, first: str) -> FormatError:
    expected = "as many workers as labels in each row, or {worker: label}"
    return FormatError(
        explain(f"{where} has lists that do not fit together.", first=first, expected=expected)
    )


def _unpacked(cell: Any) -> Any:
    """A list or dict that was written as text; a text with commas is a list of texts."""
    if cell is None:
        return []
    if not isinstance(cell, str):
        return cell.tolist() if isinstance(cell, np.ndarray) else cell
    if cell[:1] in ("[", "{"):
        try:
            return ast.literal_eval(cell)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return cell.strip("[]").split()  # the way NumPy prints an array
    return [part.strip() for part in cell.split(",")]


def _several(cell: Any) -> bool:
    if isinstance(cell, str):
        return "," in cell or cell[:1] in ("[", "{")
    return isinstance(cell, list | tuple | np.ndarray | Mapping)
