"""Long frames in and out: one row an annotation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from crowdwise.data.annotations import Annotations
from crowdwise.data.columns import recognise, require
from crowdwise.data.names import as_names, encode
from crowdwise.errors import AnnotationError, ParameterError, explain
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
        One row an annotation. A row without a label is no annotation.
    task, worker, label : str
        Names of the columns.
    weight, time, gold : str, optional
        Names of optional columns. ``gold`` holds a task's truth on any of its rows.
    soft : mapping from class to column, optional
        Columns that hold each class's probability; ``label`` may then be missing.
    tasks, workers, classes : array-like, optional
        All names, in the order wanted; names that do not occur are allowed, others are not.
    repeats : {"all", "first", "last", "majority"}, default="all"
        What to keep when a worker labels a task more than once.
    where : str
        What to call the frame in errors.
    notes : tuple of str
        What is already known about where the frame comes from.
    """
    if repeats not in REPEATS:
        raise ParameterError(f"repeats={repeats!r} is unknown.\n  expected: {', '.join(REPEATS)}")
    data = nw.from_native(frame, eager_only=True, pass_through=False)
    names = {"task": task, "worker": worker, "label": label}
    extra = {"weight": weight, "time": time, "gold": gold}
    names |= {role: name for role, name in extra.items() if name is not None}
    chances = None if soft is None else _soft(data, soft, where)
    if chances is not None:
        classes = classes if classes is not None else sorted(soft or {}, key=str)
        names.pop("label") if label not in data.columns else None
    require(names, data.columns, where, needed=())
    columns = {role: series(data, name) for role, name in names.items()}
    return _build(columns, chances, tasks, workers, classes, repeats, notes)


def _build(
    columns: dict[str, pd.Series],
    chances: tuple[list[Any], Floats] | None,
    tasks: Any,
    workers: Any,
    classes: Any,
    repeats: str,
    notes: tuple[str, ...],
) -> Annotations:
    task_names, task = encode(columns["task"], "task", tasks)
    worker_names, worker = encode(columns["worker"], "worker", workers)
    class_names, label, soft = _labels(columns, chances, classes)
    _refuse_missing(task, label, "task", columns)
    _refuse_missing(worker, label, "worker", columns)
    dropped = int((label < 0).sum())
    gold = None
    if "gold" in columns:
        class_names, label, gold = _gold(columns["gold"], class_names, label, task, len(task_names))
    if dropped:
        notes = (*notes, f"rows without a label left out: {dropped:,}")
    optional = {k: columns[k].to_numpy() for k in ("weight", "time") if k in columns}
    built = Annotations.from_codes(
        task,
        worker,
        label,
        tasks=task_names,
        workers=worker_names,
        classes=class_names,
        weight=optional.get("weight"),
        time=_as_time(columns["time"]) if "time" in columns else None,
        soft=soft,
        gold=gold,
        notes=notes,
    )
    return built if repeats == "all" else built.without_repeats(repeats)


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


def series(data: Any, name: str) -> pd.Series:
    """One column as a pandas series with a plain index."""
    column = data[name].to_native()
    native = column if isinstance(column, pd.Series) else data[name].to_pandas()
    return native.reset_index(drop=True)


def guess_roles(frame: Any, given: dict[str, str | None]) -> dict[str, str]:
    """Which column plays which role in a frame of any kind."""
    data = nw.from_native(frame, eager_only=True, pass_through=False)
    return recognise(data.columns, given)


def _soft(data: Any, soft: Mapping[Any, str], where: str) -> tuple[list[Any], Floats]:
    named = {f"probability of {name!r}": column for name, column in soft.items()}
    require(named, data.columns, where, needed=())
    columns = [series(data, column).to_numpy(dtype=np.float64) for column in soft.values()]
    return list(soft), np.column_stack(columns)


def _gold(
    column: pd.Series, classes: Array, label: Ints, task: Ints, n_tasks: int
) -> tuple[Array, Ints, Ints]:
    """Gold class of each task; classes that only gold names are added."""
    own, code = encode(column, "gold")
    every = encode(np.concatenate([classes.astype(object), own.astype(object)]), "label")[0]
    every = as_names(every.tolist()) if len(every) else classes
    to_every = pd.Index(every).get_indexer(pd.Index(classes))
    label = np.where(label < 0, -1, np.append(to_every, -1)[label])
    truth = np.append(pd.Index(every).get_indexer(pd.Index(own)), -1)[code]
    gold = np.full(n_tasks, -1, dtype=np.int32)
    known = (truth >= 0) & (task >= 0)
    gold[task[known]] = truth[known]
    clash = known & (gold[task] != truth)
    if clash.any():
        row = int(clash.argmax())
        raise AnnotationError(
            explain(
                f"{int(clash.sum()):,} rows give a task two different gold labels.",
                first=f"row {row}: gold={column.iloc[row]!r}",
                expected="one gold label per task",
            )
        )
    return every, label, gold


def _refuse_missing(codes: Ints, label: Ints, role: str, columns: dict[str, pd.Series]) -> None:
    """Refuse labels of no task or by no worker; a row without a label may lack both."""
    missing = (codes < 0) & (label >= 0)
    if missing.any():
        row = int(missing.argmax())
        shown = ", ".join(f"{name}={column.iloc[row]!r}" for name, column in columns.items())
        raise AnnotationError(
            explain(
                f"{int(missing.sum()):,} of {len(codes):,} annotations have no {role}.",
                first=f"row {row}: {shown}",
                expected=f"a {role} on every row",
                fix=f"fill the {role} in, or drop these rows",
            )
        )


def _as_time(column: pd.Series) -> Array:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64)
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
