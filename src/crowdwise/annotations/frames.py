"""Long frames in and out: one row an annotation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from crowdwise.annotations.columns import require
from crowdwise.annotations.names import as_names, cell, encode, is_scale, locate, note_on_spaces
from crowdwise.annotations.table import Annotations
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.io.values import numeric
from crowdwise.typing import Array, Floats, Ints

REPEATS = ("all", "first", "last", "majority")


def from_frame(
    frame: Any,
    task: str = "task",
    worker: str = "worker",
    label: str = "label",
    *,
    weight: str | None = None,
    time: str | None = None,
    gold: str | None = None,
    soft: Mapping[Any, str] | None = None,
    tasks: Any = None,
    workers: Any = None,
    classes: Any = None,
    repeats: str = "all",
    where: str = "The frame",
    notes: tuple[str, ...] = (),
) -> Annotations:
    """Build annotations from a long frame.

    Parameters
    ----------
    frame : pandas, polars or Arrow frame
        One row an annotation. A row without a label is no annotation; with a task and a
        truth alone it tells the truth of a task that may have no annotation at all.
    task, worker, label : str
        Names of the columns.
    weight, time, gold : str, optional
        Names of optional columns. ``gold`` holds a task's truth on any of its rows.
    soft : mapping from class to column, optional
        Columns that hold each class's probability; ``label`` may then be missing.
    tasks, workers, classes : array-like, optional
        All names, in the order wanted; names that do not occur are allowed, others are not.
        Classes default to the categories of an ordered categorical, else to sorted labels.
    repeats : {"all", "first", "last", "majority"}, default="all"
        What to keep when a worker labels a task more than once.
    where : str
        What to call the frame in errors.
    notes : tuple of str
        What is already known about where the frame comes from.
    """
    if repeats not in REPEATS:
        raise ParameterError(f"repeats={repeats!r} is unknown.\n  expected: {', '.join(REPEATS)}")
    data = native_frame(frame, where)
    if data is None:
        raise AnnotationError(
            explain(f"A {type(frame).__name__} is no frame.", expected="pandas, polars or Arrow")
        )
    names = {"task": task, "worker": worker, "label": label}
    extra = {"weight": weight, "time": time, "gold": gold}
    names |= {role: name for role, name in extra.items() if name is not None}
    chances = None if soft is None else _soft(data, soft, where)
    if chances is not None:
        classes = classes if classes is not None else sorted(soft or {}, key=str)
        names.pop("label") if label not in data.columns else None
    require(names, data.columns, where, needed=())
    columns = {role: series(data, name) for role, name in names.items()}
    built = _build(columns, chances, tasks, workers, classes, where, notes)
    return built if repeats == "all" else built.without_repeats(repeats)


def _build(
    columns: dict[str, pd.Series],
    chances: tuple[list[Any], Floats] | None,
    tasks: Any,
    workers: Any,
    classes: Any,
    where: str,
    notes: tuple[str, ...],
) -> Annotations:
    task_names, task = encode(columns["task"], "task", tasks)
    worker_names, worker = encode(columns["worker"], "worker", workers)
    class_names, label, soft = _labels(columns, chances, classes)
    refuse_missing(task, label, "task", columns)
    refuse_missing(worker, label, "worker", columns)
    notes += note_on_spaces(worker_names, "workers") + note_on_spaces(class_names, "labels")
    dropped, gold = label < 0, None
    if "gold" in columns:
        dropped &= ~((worker < 0) & columns["gold"].notna().to_numpy())  # a truth, no annotation
        scale = classes is not None or is_scale(columns["label"])
        known = (class_names, label, task, len(task_names))
        class_names, label, gold = _gold(columns["gold"], *known, keep=scale)
    if dropped.any():
        notes = (*notes, f"rows without a label left out: {int(dropped.sum()):,}")
    return Annotations.from_codes(
        task,
        worker,
        label,
        tasks=task_names,
        workers=worker_names,
        classes=class_names,
        weight=_weights(columns["weight"], label, where) if "weight" in columns else None,
        time=_as_time(columns["time"]) if "time" in columns else None,
        soft=soft,
        gold=gold,
        notes=notes,
    )


def _labels(
    columns: dict[str, pd.Series], chances: tuple[list[Any], Floats] | None, classes: Any
) -> tuple[Array, Ints, Floats | None]:
    """Class names, the label on each row, and the distributions if there are any."""
    if chances is None:
        return *encode(columns["label"], "label", classes), None
    names = as_names(classes)
    soft = chances[1][:, [chances[0].index(name) for name in names]]
    return names, soft.argmax(axis=1).astype(np.int32), soft


def to_frame(annotations: Annotations) -> pd.DataFrame:
    """The annotations as a long pandas frame."""
    columns = {
        "task": annotations.tasks[annotations.task],
        "worker": annotations.workers[annotations.worker],
        "label": annotations.classes[annotations.label],
    }
    for name in ("weight", "time"):
        if getattr(annotations, name) is not None:
            columns[name] = getattr(annotations, name)
    frame = pd.DataFrame(columns)
    if annotations.soft is not None:
        for k, name in enumerate(annotations.classes):
            frame[f"proba_{name}"] = annotations.soft[:, k]
    return frame


def native_frame(data: Any, where: str = "The frame") -> Any:
    """A frame of any make as narwhals shows it, collected if lazy; None for anything else."""
    try:
        frame = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise AnnotationError(
            explain(
                f"{where} has two columns of one name.",
                first=str(error).splitlines()[-1].lstrip("- "),
                expected="a name of its own for every column",
                fix="rename or remove one of them",
            )
        ) from None
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return frame if isinstance(frame, nw.DataFrame) else None


def series(data: Any, name: str) -> pd.Series:
    """One column as a pandas series with a plain index."""
    column = data[name]
    native = column.to_native()
    if not isinstance(native, pd.Series) and column.dtype.is_integer() and column.null_count():
        dtype: Any = pd.api.types.pandas_dtype(str(column.dtype))  # floats would round ids
        native = pd.Series(dtype.__from_arrow__(column.to_arrow()))
    elif not isinstance(native, pd.Series):
        native = native.to_pandas()  # narwhals' own way loses gaps in categories, and zones
    return native.reset_index(drop=True)


def _soft(data: Any, soft: Mapping[Any, str], where: str) -> tuple[list[Any], Floats]:
    named = {f"probability of {name!r}": column for name, column in soft.items()}
    require(named, data.columns, where, needed=())
    columns = [series(data, column).to_numpy(dtype=np.float64) for column in soft.values()]
    return list(soft), np.column_stack(columns)


def _gold(
    column: pd.Series, classes: Array, label: Ints, task: Ints, n_tasks: int, *, keep: bool
) -> tuple[Array, Ints, Ints]:
    """Gold class of each task; classes that only gold names are added, after those to keep."""
    own, code = encode(column, "gold")
    new = own[locate(classes, own) < 0]
    every = np.concatenate([classes.astype(object), new.astype(object)])
    every = every if keep else encode(every, "label")[0]
    every = as_names(every.tolist()) if len(new) else classes
    to_every = pd.Index(every).get_indexer(pd.Index(classes))
    label = np.where(label < 0, -1, np.append(to_every, -1)[label])
    truth = np.append(pd.Index(every).get_indexer(pd.Index(own)), -1)[code]
    gold = np.full(n_tasks, -1, dtype=np.int32)
    known = (truth >= 0) & (task >= 0)
    gold[task[known]] = truth[known]
    clash = known.copy()
    clash[known] = gold[task[known]] != truth[known]
    if clash.any():
        row = int(clash.argmax())
        raise AnnotationError(
            explain(
                f"{int(clash.sum()):,} rows give a task two different gold labels.",
                first=cell(column, row, "gold"),
                expected="one gold label per task",
                fix="keep one of them, or empty the others",
            )
        )
    return every, label, gold


def refuse_missing(codes: Ints, label: Ints, role: str, columns: dict[str, pd.Series]) -> None:
    """Refuse labels of no task or by no worker; a row without a label may lack both."""
    missing = (codes < 0) & (label >= 0)
    if missing.any():
        row = int(missing.argmax())
        values = {name: column.iloc[row : row + 1].tolist()[0] for name, column in columns.items()}
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
        raise AnnotationError(
            explain(
                f"{int(missing.sum()):,} of {len(codes):,} annotations have no {role}.",
                first=f"row {row + 1:,}: {shown}",
                expected=f"a {role} on every row",
                fix=f"fill the {role} in, or drop these rows",
            )
        )


def _weights(column: pd.Series, label: Ints, where: str) -> Floats:
    """The weights as numbers; those of rows that have a label must be usable."""
    known = numeric(column)
    if known is None:
        known = pd.to_numeric(column.astype(object), errors="coerce")
    weight = known.to_numpy(dtype=np.float64)
    bad = (label >= 0) & ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise AnnotationError(
            explain(
                f"{where} has {int(bad.sum()):,} weights that are not usable.",
                first=cell(column, row, "weight"),
                expected="a finite number of 0 or more on every row",
                fix="mend these weights, or drop these rows",
            )
        )
    return weight


def _as_time(column: pd.Series) -> Array:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    try:
        return pd.to_datetime(column, utc=True, format="mixed").dt.tz_localize(None).to_numpy()
    except (ValueError, TypeError, OverflowError) as error:
        raise AnnotationError(
            explain(
                "The time column cannot be read as times.",
                first=str(error).splitlines()[0],
                expected="numbers, or dates such as 2024-05-31T12:00:00",
            )
        ) from None
