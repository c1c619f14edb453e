"""Lists and dicts of rows: whether they are (task, worker, label) or a table of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from crowdwise.annotations.names import is_hashable
from crowdwise.annotations.wide import Nested
from crowdwise.errors import FormatError, explain, listing
from crowdwise.io.document import Record
from crowdwise.io.recognize import REQUIRED, SYNONYMS, normalize_name, recognize_columns
from crowdwise.typing import Array

Rows = Sequence[Sequence[object]]
FEW = 4  # rows in order; with fewer, it cannot be decided
SURE = 6  # rows; with fewer, the labels of three workers may look like anything
IN_MEMORY = "give a frame with the columns task, worker and label; or use Annotations.from_matrix"
MANY = 10  # from this many workers on, more workers than tasks who all label all is suspicious


def find_rows(rows: Rows, where: str) -> list[Record] | None:
    """Return the rows of a long table if a list of lists is one; else None.

    Its first row may name the columns. Without names, three cells per row are a task, a worker
    and a label if no column shares a value with another, as columns of a label table do, or if
    they name each (task, worker) once and are tuples or sorted by either.
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


def find_records(value: Mapping[Any, Any]) -> list[Record] | None:
    """Return the rows of a long table if a dict of dicts is one; else None.

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


def _is_header(row: Sequence[object]) -> bool:
    words = all(isinstance(cell, str) for cell in row) and len(set(row)) == len(row)
    return words and set(REQUIRED) <= recognize_columns(row, {}).keys()


def _are_triples(rows: Rows, where: str) -> bool:
    cells = [cell for row in rows for cell in row]
    if any(map(pd.isna, cells)):  # gaps occur in tables of labels
        return False
    tasks, workers, labels = (set(column) for column in zip(*rows, strict=True))
    tuples = all(isinstance(row, tuple) for row in rows)
    apart = not (tasks & workers or tasks & labels or workers & labels)
    once = len({(row[0], row[1]) for row in rows}) == len(rows)
    if apart and (tuples or len(rows) > 1):
        return True
    if tuples and once and len(tasks) < len(rows):
        return True
    if once and len(rows) >= SURE and -1 not in cells and _are_sorted(rows):
        return True
    many = len(rows) >= SURE and (once or len(tasks) >= 2 * len(labels))
    few = len(rows) >= FEW and once and len(tasks) < len(rows) and -1 not in cells
    if (apart or tuples or many or (few and _are_sorted(rows))) and -1 not in cells:
        how = "name the columns in a first row, ['task', 'worker', 'label']; or use "
        how += "Annotations.from_matrix"
        _refuse_either(where, list(rows[0]), how)
    return False


def refuse_triples(values: Array, where: str, how: str = IN_MEMORY) -> None:
    """Refuse an array without names whose rows look like (task, worker, label).

    Its first two columns then name each row once, and are sorted or unlike labels. ``how`` says
    what to do instead.
    """
    if values.ndim != 2 or values.shape[1] != len(REQUIRED) or len(values) < FEW:
        return
    if values.dtype.kind == "f" and np.isfinite(values).all() and (values % 1 == 0).all():
        values = values.astype(np.int64)
    if values.dtype.kind not in "iu" or (values == -1).any():
        return
    task, worker, label = (values[:, place].astype(np.int64) for place in range(3))
    pairs = np.unique(np.column_stack([task, worker]), axis=0)
    tasks, workers, labels = np.unique(task), np.unique(worker), np.unique(label)
    if len(pairs) < len(values) or len(tasks) == len(values) == len(workers):
        return
    apart = not any(len(np.intersect1d(tasks, others)) for others in (workers, labels))
    apart = apart and not len(np.intersect1d(workers, labels))
    many = len(values) >= 2 * SURE and len(tasks) >= 2 * len(labels)
    if apart or many or any(_rise(*way) for way in ((task, worker), (worker, task))):
        _refuse_either(where, values[0].tolist(), how)


def _rise(first: Array, second: Array) -> bool:
    """Return whether rows are sorted by one column, then another, without repeats."""
    more = np.diff(first)
    return bool(((more > 0) | ((more == 0) & (np.diff(second) > 0))).all())


def _refuse_either(where: str, first: list[object], how: str) -> NoReturn:
    raise FormatError(
        explain(
            f"{where} may hold (task, worker, label) in each row, or the labels of three workers.",
            first=str(first),
            expected="rows that can only be one of them",
            fix=how,
        )
    )


def _are_sorted(rows: Rows) -> bool:
    """Return whether rows are sorted by first and second cell, or by second and first."""
    pairs = [(row[0], row[1]) for row in rows]
    try:
        return any(
            all(a < b for a, b in pairwise(way)) for way in (pairs, [(w, t) for t, w in pairs])
        )
    except TypeError:  # numbers beside text
        return False


def orient_labels(value: Nested, where: str) -> tuple[Nested, str]:
    """Return ``{task: {worker: label}}`` and a note; pandas writes wide frames transposed.

    Only in a full table can the orientation be seen: by its names, or by row numbers.
    """
    outer, inner = list(value), list(next(iter(value.values()), {}))
    note = f"tasks from the outer names ({listing(outer, 2)}), workers from the inner"
    full = all(list(part) == inner for part in value.values())
    if not full or sounds_like(outer, "task") or sounds_like(inner, "worker"):
        return value, note
    counted = list(map(str, inner)) == list(map(str, range(len(inner)))) and not all(
        str(name).isdigit() for name in outer
    )
    longer = len(inner) > len(outer)
    if sounds_like(outer, "worker") or sounds_like(inner, "task") or (counted and longer):
        turned = {task: {worker: value[worker][task] for worker in outer} for task in inner}
        return turned, f"workers from the outer names ({listing(outer, 2)}), tasks from the inner"
    if longer and len(inner) > MANY:
        raise FormatError(
            explain(
                f"{where} may hold {{task: {{worker: label}}}} or {{worker: {{task: label}}}}.",
                found=f"{len(outer):,} names, each with the same {len(inner):,} names inside",
                expected="names that tell tasks from workers, such as task_1 and worker_1",
                fix="if the outer names are tasks, name the format: nested; of a frame, write "
                "frame.reset_index().to_json(orient='records')",
            )
        )
    return value, note


def sounds_like(names: Sequence[object], role: str) -> bool:
    """Return whether all names are a word for this role and a number, such as ``rater_1``."""
    stems = (normalize_name(str(name).rstrip("0123456789")) for name in names)
    return len(names) > 1 and all(stem in SYNONYMS[role] for stem in stems)
