"""Conversion from and to wide tables, with one row per task and one column per worker."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from crowdwise.annotations.columns import Columns
from crowdwise.annotations.frames import as_narwhals, refuse_missing, take_series
from crowdwise.annotations.grouping import count_repeats, group_by_task
from crowdwise.annotations.names import as_names, encode, unmask
from crowdwise.annotations.truth_names import is_scale
from crowdwise.errors import AnnotationError, explain, plural
from crowdwise.typing import Array, Ints, Names

# One label per task may come from scikit-learn, which replaces y in cross_val_predict.
Nested: TypeAlias = Mapping[Any, Mapping[Any, Any]]  # {task: {worker: label}}
ONE_EACH = (
    "give every worker's label on each task; "
    "for a learner in cross_val_predict, params={'annotations': annotations} and no y"
)


def columns_from_matrix(
    matrix: Any,
    missing: object = "auto",
    *,
    tasks: Names | None = None,
    workers: Names | None = None,
    classes: Names | None = None,
) -> Columns:
    """Encode a wide array or frame; of a sparse matrix, only the stored cells count."""
    if hasattr(matrix, "tocoo"):
        stored = matrix.tocoo()
        values, shape, rows, columns = stored.data, stored.shape, None, None
        present = _find_present(values, missing)
        task, worker = stored.row[present], stored.col[present]
    else:
        values, rows, columns, scale = _as_grid(matrix)
        shape, present = values.shape, _find_present(values, missing)
        task, worker = np.nonzero(present)
        if classes is None and scale is not None:
            classes = scale[_find_present(scale, missing)]
    class_names, label = encode(_simplify(values[present]), "label", classes)
    grouped = group_by_task(
        task.astype(np.int32),
        worker.astype(np.int32),
        label,
        tasks=_choose_names("task", tasks, rows, shape),
        workers=_choose_names("worker", workers, columns, shape),
        classes=class_names,
    )
    return Columns(**grouped)


def _choose_names(
    role: str, given: Names | None, own: Names | None, shape: tuple[int, ...]
) -> Names:
    """Return the names that were given, else the table's own, else numbers."""
    size = shape[0] if role == "task" else shape[1]
    names = next((names for names in (given, own) if names is not None), range(size))
    if len(names) != size:
        raise AnnotationError(
            f"The matrix has shape {shape}, but there are names for {plural(len(names), role)}.\n"
            f"  expected: rows are tasks, columns are workers"
            "\n  fix:      give a name for each row and column, or transpose the matrix"
        )
    return names


def columns_from_dict(
    labels: Nested,
    *,
    classes: Names | None = None,
    workers: Names | None = None,
) -> Columns:
    """Encode ``{task: {worker: label}}``; tasks keep the dict's order."""
    triples = []
    for number, (task, given) in enumerate(labels.items()):
        if not isinstance(given, Mapping):
            raise AnnotationError(
                explain(
                    f"The labels of task {task!r} are {type(given).__name__}.",
                    expected="{task: {worker: label}}",
                    fix="write {task: {worker: label}}, or use Annotations.from_frame",
                )
            )
        triples += [(number, worker, label) for worker, label in given.items()]
    numbers, who, what = zip(*triples, strict=True) if triples else ((), (), ())
    columns = {"worker": pd.Series(who, dtype=object), "label": pd.Series(what, dtype=object)}
    worker_names, worker = encode(columns["worker"], "worker", workers)
    class_names, label = encode(columns["label"], "label", classes)
    refuse_missing(worker, label, "worker", columns)
    grouped = group_by_task(
        np.array(numbers, dtype=np.int32),
        worker,
        label,
        tasks=as_names(pd.Series(list(labels), dtype=object).infer_objects()),
        workers=as_names(worker_names.tolist()) if len(worker_names) else worker_names,
        classes=as_names(class_names.tolist()) if len(class_names) else class_names,
    )
    return Columns(**grouped)


def to_snorkel(table: Columns) -> Ints:
    """Return class numbers in a tasks x workers array, -1 if there is no label."""
    _refuse_repeats(table)
    grid = np.full(table.shape, -1, dtype=np.int64)
    grid[table.task, table.worker] = table.label
    return grid


def _refuse_repeats(table: Columns) -> None:
    n_repeats = count_repeats(table.indptr, table.worker, table.n_workers)
    if n_repeats:
        raise AnnotationError(
            explain(
                f"A worker labeled the same task again in {plural(n_repeats, 'annotation')}.",
                expected="at most one label in each cell of a wide table",
                fix="keep one of them: without_repeats('first'), 'last' or 'majority';"
                " or --repeats first",
            )
        )


def to_matrix(table: Columns, missing: Any) -> pd.DataFrame:
    """Return class names in a tasks x workers frame, ``missing`` if there is no label."""
    grid = to_snorkel(table)
    names = np.append(table.classes.astype(object), missing)
    rows, columns = _as_index(table.tasks), _as_index(table.workers)
    frame = pd.DataFrame(names[grid], index=rows, columns=columns)
    frame = frame.rename_axis(index="task", columns="worker")
    mixed = {int, float} <= set(map(type, table.classes.tolist()))  # 1 would be 1.0 beside 2.5
    return frame if mixed else frame.infer_objects()


def _as_index(names: Array) -> pd.Index:
    """Make an index of names; of whole numbers beside others, pandas would make floats."""
    index = pd.Index(names, tupleize_cols=False)
    is_rounded = index.dtype.kind == "f" and names.dtype == object
    return pd.Index(names, dtype=object, tupleize_cols=False) if is_rounded else index


def to_dict(table: Columns) -> dict[Hashable, dict[Hashable, Hashable]]:
    """Return the labels as ``{task: {worker: label}}``."""
    _refuse_repeats(table)
    who = table.workers[table.worker].tolist()
    what = table.classes[table.label].tolist()
    edges = pairwise(table.indptr.tolist())
    return {
        task: dict(zip(who[start:stop], what[start:stop], strict=True))
        for task, (start, stop) in zip(table.tasks.tolist(), edges, strict=True)
    }


def find_scale(frame: pd.DataFrame) -> Array | None:
    """Return the ordered categories, if all columns are of one ordered categorical type."""
    kinds = set(frame.dtypes)
    if len(kinds) != 1 or not is_scale(frame.iloc[:, 0]):
        return None
    return np.asarray(frame.iloc[:, 0].cat.categories)


def _as_grid(matrix: Any) -> tuple[Array, Names | None, Names | None, Array | None]:
    """Return the cells as a 2-D array, names of rows and columns, and any scale."""
    if isinstance(matrix, pd.DataFrame):
        return matrix.to_numpy(), matrix.index, matrix.columns, find_scale(matrix)
    frame = as_narwhals(matrix)
    if frame is not None:
        own = pd.DataFrame({name: take_series(frame, name) for name in frame.columns})
        return own.to_numpy(), None, frame.columns, find_scale(own)
    try:
        values = unmask(matrix)
        if values.dtype.kind == "U" and isinstance(matrix, list | tuple):
            values = np.array(matrix, dtype=object)  # 1 beside text stays a number
    except ValueError:  # rows of different lengths
        values = np.empty(0)
    if values.ndim != 2:
        raise AnnotationError(
            explain(
                f"A {type(matrix).__name__} of shape {values.shape} is not a table of labels.",
                expected="two dimensions: rows are tasks, columns are workers",
                fix=_advise(values) if values.ndim == 1 and len(values) else "",
            )
        )
    return values, None, None, None


def _advise(values: Array) -> str:
    rows = all(isinstance(value, Mapping) for value in values)
    return "read records with crowdwise.read(rows)" if rows else ONE_EACH


def _find_present(values: Array, missing: object) -> Array:
    empty = pd.isna(values)
    if isinstance(missing, str) and missing == "auto":
        minus = _equal(values, -1)
        if minus.any():
            others = pd.unique(values[~empty & ~minus])
            if empty.any() or (len(others) == 1 and others[0] == 1):
                raise AnnotationError(
                    explain(
                        "-1 may be a label or a missing value in this table.",
                        found="-1 beside "
                        + ("empty cells" if empty.any() else "the label 1 alone"),
                        fix="say which it is: missing=-1, or missing=None if -1 is a label",
                    )
                )
        return ~(empty | minus)
    for value in missing if isinstance(missing, list | tuple | set) else [missing]:
        empty |= _equal(values, value)
    return ~empty


def _equal(values: Array, value: object) -> Array:
    same = ~pd.isna(values)  # pd.NA may not be compared
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return np.zeros(values.shape, dtype=bool)
    same[same] = values[same] == value
    return same


def _simplify(labels: Array) -> Names:
    """Convert labels of a mixed table to integers or text, if all of them allow it."""
    return pd.Series(labels).infer_objects() if labels.dtype == object else labels
