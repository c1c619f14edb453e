"""Lists and dicts of rows: whether they are (task, worker, label), or a table of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crowdwise.annotations.names import is_hashable
from crowdwise.errors import FormatError, explain
from crowdwise.io.recognize import REQUIRED, recognize_columns

Rows = Sequence[Sequence[Any]]


def find_rows(rows: Sequence[Any], where: str) -> list[Mapping[str, Any]] | None:
    """The rows of a long table, where that is what a list of lists is; else None.

    Its first row may name the columns. Without names, three cells a row are a task, a worker
    and a label if no column shares a value with another, as the columns of a table of labels
    do, or if the rows are tuples that name each (task, worker) once.
    """
    if not rows or not all(isinstance(row, list | tuple) for row in rows):
        return None
    if any(not is_hashable(cell) for row in rows for cell in row):
        return None
    width = {len(row) for row in rows}
    if len(width) == 1 and _is_header(rows[0]):
        return [dict(zip(map(str, rows[0]), row, strict=True)) for row in rows[1:]]
    if width != {len(REQUIRED)} or not _are_triples(rows, where):
        return None
    return [dict(zip(REQUIRED, row, strict=True)) for row in rows]


def find_records(value: Mapping[Any, Any]) -> list[Mapping[str, Any]] | None:
    """The rows of a long table, where that is what a dict of dicts is; else None.

    As pandas writes a frame: ``{column: {row: cell}}``, or ``{row: {column: cell}}``.
    """
    parts = list(value.values())
    if not all(isinstance(part, Mapping) for part in parts):
        return None
    if _is_header(list(value)) and all(part.keys() == parts[0].keys() for part in parts):
        return [{name: part[row] for name, part in value.items()} for row in parts[0]]
    if parts and all(_is_header(list(part)) for part in parts):
        return list(map(dict, parts))
    return None


def _is_header(row: Sequence[Any]) -> bool:
    words = all(isinstance(cell, str) for cell in row) and len(set(row)) == len(row)
    return words and set(REQUIRED) <= recognize_columns(row, {}).keys()


def _are_triples(rows: Rows, where: str) -> bool:
    cells = [cell for row in rows for cell in row]
    if any(map(pd.isna, cells)):  # a gap is one in a table of labels
        return False
    tasks, workers, labels = (set(column) for column in zip(*rows, strict=True))
    tuples = all(isinstance(row, tuple) for row in rows)
    apart = not (tasks & workers or tasks & labels or workers & labels)
    once = len({(row[0], row[1]) for row in rows}) == len(rows)
    if apart and (tuples or len(rows) > 1):
        return True
    if tuples and once and len(tasks) < len(rows):
        return True
    doubtful = apart or tuples or (once and len(rows) > 3 and len(tasks) >= 2 * len(labels))
    if doubtful and -1 not in cells:
        raise FormatError(
            explain(
                f"{where} may hold (task, worker, label) in each row, or the labels of three"
                " workers.",
                first=str(list(rows[0])),
                expected="rows that can only be one of them",
                fix="name the columns in a first row, ['task', 'worker', 'label'];"
                " or use Annotations.from_matrix",
            )
        )
    return False
