"""Conversion from and to long frames, with one row per annotation."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from crowdwise.annotations.columns import Columns
from crowdwise.annotations.grouping import Aside, fit_single, group_by_task
from crowdwise.annotations.names import (
    as_names,
    encode,
    locate,
    note_joined,
    note_spaces,
    show_cell,
)
from crowdwise.annotations.truth_names import is_scale, note_unseen_truths, part_together
from crowdwise.errors import AnnotationError, ParameterError, explain, plural
from crowdwise.typing import Array, Floats, Ints, Names

MOST_COLUMNS = 20  # columns named in an error
COMMA_NUMBER = re.compile(r"[+-]?(\d+|\d*,\d+)")  # no point, so that the comma is the decimal sign
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


class SoftLabels(NamedTuple):
    """The probability of each class on each row."""

    classes: list[Hashable]
    shares: Floats  # (row, class)


def columns_from_frame(
    frame: object,
    roles: Mapping[str, str],
    *,
    soft: Mapping[Any, str] | None = None,
    tasks: Names | None = None,
    workers: Names | None = None,
    classes: Names | None = None,
    where: str = "The frame",
    notes: tuple[str, ...] = (),
) -> Columns:
    """Encode a long frame; ``roles`` gives the column of each role."""
    data = as_narwhals(frame, where)
    if data is None:
        fact = f"A {type(frame).__name__} is not a frame."
        raise AnnotationError(
            explain(
                fact,
                expected="pandas, polars or Arrow",
                fix="pd.DataFrame(data), or crowdwise.read(data) for other shapes",
            )
        )
    roles, shares = dict(roles), None
    if soft is not None:
        shares = _take_soft(data, soft, where)
        classes = classes if classes is not None else sorted(soft, key=str)
        if roles["label"] not in data.columns:
            del roles["label"]
    refuse_absent(roles, data.columns, where)
    columns = {role: take_series(data, name) for role, name in roles.items()}
    return _encode_columns(columns, shares, tasks, workers, classes, where, notes)


def _encode_columns(
    columns: dict[str, pd.Series],
    soft: SoftLabels | None,
    tasks: Names | None,
    workers: Names | None,
    classes: Names | None,
    where: str,
    notes: tuple[str, ...],
) -> Columns:
    if {"label", "gold"} <= columns.keys():
        columns["label"], columns["gold"] = part_together(columns["label"], columns["gold"])
    task_names, task = encode(columns["task"], "task", tasks)
    worker_names, worker = encode(columns["worker"], "worker", workers)
    class_names, label, shares = _encode_labels(columns, soft, classes)
    refuse_missing(task, label, "task", columns)
    refuse_missing(worker, label, "worker", columns)
    for names, what in ((task_names, "tasks"), (worker_names, "workers"), (class_names, "labels")):
        notes += note_spaces(names, what)
    notes += note_joined(class_names)
    dropped, gold = label < 0, None
    if "gold" in columns:
        dropped &= ~((worker < 0) & columns["gold"].notna().to_numpy())  # rows with only a truth
        keep = classes is not None or is_scale(columns["label"])
        known = (class_names, label, task, len(task_names))
        every, label, gold = _encode_gold(columns["gold"], *known, keep=keep)
        notes += note_unseen_truths(every[gold[gold >= 0]], class_names)
        class_names = every
    declined = None
    if dropped.any():
        notes = (*notes, Aside("rows without a label left out", int(dropped.sum())))
        declined = _find_declined(task, worker, label)
    grouped = group_by_task(
        task,
        worker,
        label,
        tasks=task_names,
        workers=worker_names,
        classes=class_names,
        weight=_parse_weights(columns["weight"], label, where) if "weight" in columns else None,
        time=_parse_times(columns["time"]) if "time" in columns else None,
        score=_parse_scores(columns["score"], label, where) if "score" in columns else None,
        soft=shares,
        gold=gold,
        declined=declined,
        notes=notes,
    )
    return Columns(**grouped)


def _find_declined(task: Ints, worker: Ints, label: Ints) -> Ints | None:
    """Find (task, worker) pairs with rows but no label: asked, and declined."""
    named = (task >= 0) & (worker >= 0)
    pairs = pd.DataFrame({"task": task[named], "worker": worker[named], "label": label[named]})
    most = pairs.groupby(["task", "worker"])["label"].max()
    found = most.index[most < 0]
    return found.to_frame().to_numpy(dtype=np.int32) if len(found) else None


def _encode_labels(
    columns: dict[str, pd.Series], soft: SoftLabels | None, classes: Names | None
) -> tuple[Array, Ints, Floats | None]:
    """Return class names, the label of each row, and soft labels if there are any."""
    if soft is None:
        return *encode(columns["label"], "label", classes), None
    names = as_names(soft.classes if classes is None else classes)
    shares = soft.shares[:, [soft.classes.index(name) for name in names]]
    return names, shares.argmax(axis=1).astype(np.int32), shares


def to_frame(table: Columns) -> pd.DataFrame:
    """Return a pandas frame: task, worker and label; weight, time and soft labels if known."""
    columns = {
        "task": table.tasks[table.task],
        "worker": table.workers[table.worker],
        "label": table.classes[table.label],
    }
    for name, column in (("weight", table.weight), ("time", table.time), ("score", table.score)):
        if column is not None:
            columns[name] = column
    frame = pd.DataFrame(columns)
    if table.soft is not None:
        for k, name in enumerate(table.classes):
            frame[f"proba_{name}"] = table.soft[:, k]
    return frame


def as_narwhals(data: object, where: str = "The frame") -> nw.DataFrame[Any] | None:
    """Return a frame of any library as a narwhals one, collected if lazy; None otherwise."""
    try:
        frame: object = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise AnnotationError(
            explain(
                f"{where} has two columns with the same name.",
                first=str(error).splitlines()[-1].lstrip("- "),
                expected="a different name for every column",
                fix="rename or remove one of them",
            )
        ) from None
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return frame if isinstance(frame, nw.DataFrame) else None


def take_series(data: nw.DataFrame[Any], name: str) -> pd.Series:
    """Return a column as a pandas series with a plain index."""
    column = data[name]
    native: Any = column.to_native()
    if not isinstance(native, pd.Series) and column.dtype.is_integer() and column.null_count():
        dtype: Any = pd.api.types.pandas_dtype(str(column.dtype))  # floats would round ids
        native = pd.Series(dtype.__from_arrow__(column.to_arrow()))
    elif not isinstance(native, pd.Series):
        native = native.to_pandas()  # narwhals' own loses gaps in categories, and time zones
    return native.reset_index(drop=True)


def to_floats(column: pd.Series) -> pd.Series | None:
    """Convert a column to floats, or None if something in it is not a number."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        numbers = to_floats(pd.Series(column.cat.categories))
        if numbers is None:
            return None
        values = np.append(numbers.to_numpy(), np.nan)[column.cat.codes.to_numpy()]
        return pd.Series(values, index=column.index)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return None
    try:
        numbers = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError, OverflowError):
        pointed = replace_commas(column)
        return None if pointed is None else to_floats(pointed)
    return pd.Series(numbers, index=column.index)


def replace_commas(column: pd.Series) -> pd.Series | None:
    """Replace decimal commas, as in 0,5; None unless all values are such numbers.

    A column of 1,500 and 2,000 stays as it is: its commas may separate thousands.
    """
    texts = [text for text in column.dropna() if not isinstance(text, str) or text.strip()]
    if not all(isinstance(text, str) and COMMA_NUMBER.fullmatch(text.strip()) for text in texts):
        return None
    if not any("," in text and not THOUSANDS.fullmatch(text.strip()) for text in texts):
        return None
    return column.str.replace(",", ".")


def advise_on_number(value: object) -> str:
    """Return how to write what looks like a number in a way that is read as none."""
    if isinstance(value, str) and any(c.isdigit() for c in value) and re.search("[,%]", value):
        return "write numbers with a decimal point, without % or other marks: 1500 or 0.5; "
    return ""


def refuse_absent(roles: Mapping[str, str], columns: Iterable[object], where: str) -> None:
    """Refuse a table without one of the given columns."""
    names = list(map(str, columns))
    for role, name in roles.items():
        if name not in names:
            raise AnnotationError(
                explain(
                    f"{where} has no column {name!r} for the {role}.",
                    found=", ".join(shorten_columns(names)) or "no columns",
                    fix=f"check the spelling of {role}={name!r}",
                )
            )


def refuse_values(roles: Mapping[str, object]) -> None:
    """Refuse a column itself where its name is expected."""
    for role, name in roles.items():
        if name is not None and not isinstance(name, str) and hasattr(name, "__len__"):
            more = "; truths of tasks go to fit(gold=…)" if role == "gold" else ""
            raise ParameterError(
                explain(
                    f"{role} is a {type(name).__name__}, not the name of a column.",
                    expected=f"text such as {role}={role!r}",
                    fix=f"add it to the frame as a column, and name that{more}",
                )
            )


def shorten_columns(names: list[str]) -> list[str]:
    """Return the first columns, and how many there are, for an error."""
    return names[:MOST_COLUMNS] + [f"… {len(names):,} in all"] * (len(names) > MOST_COLUMNS)


def refuse_missing(codes: Ints, label: Ints, role: str, columns: dict[str, pd.Series]) -> None:
    """Refuse labels without a task or a worker; rows without a label may lack both."""
    missing = (codes < 0) & (label >= 0)
    if missing.any():
        row = int(missing.argmax())
        values = {name: column.iloc[row : row + 1].tolist()[0] for name, column in columns.items()}
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
        n_rows = plural(len(codes), "annotation")
        raise AnnotationError(
            explain(
                f"The {role} is missing in {int(missing.sum()):,} of {n_rows}.",
                first=f"row {row + 1:,}: {shown}",
                expected=f"a {role} on every row",
                fix=f"fill in the {role}, or drop these rows",
            )
        )


def _take_soft(data: nw.DataFrame[Any], soft: Mapping[Any, str], where: str) -> SoftLabels:
    refuse_absent({f"probability of {k!r}": name for k, name in soft.items()}, data.columns, where)
    columns = [coerce_floats(take_series(data, name)) for name in soft.values()]
    return SoftLabels(list(soft), np.column_stack(columns))


def _encode_gold(
    column: pd.Series, classes: Array, label: Ints, task: Ints, n_tasks: int, *, keep: bool
) -> tuple[Array, Ints, Ints]:
    """Return each task's gold class; classes that only gold names come last."""
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
        raise AnnotationError(
            explain(
                "A task has two different gold labels.",
                first=show_cell(column, int(clash.argmax()), "gold"),
                expected="one gold label per task",
                fix="keep one of them, or leave the others empty",
            )
        )
    return every, label, gold


def _parse_scores(column: pd.Series, label: Ints, where: str) -> Floats:
    """Convert scores to numbers; every row with a label needs one."""
    score = coerce_floats(column)
    expected = "a finite number on every row with a label"
    _refuse_bad(column, (label >= 0) & ~np.isfinite(score), "score", expected, where)
    return score


def coerce_floats(column: pd.Series) -> Floats:
    """Convert a column to floats, NaN for cells that are not numbers."""
    known = to_floats(column)
    if known is None:
        known = pd.to_numeric(column.astype(object), errors="coerce")
    return known.to_numpy(dtype=np.float64)


def _parse_weights(column: pd.Series, label: Ints, where: str) -> Floats:
    """Convert weights to numbers; those of rows with a label must be valid."""
    weight = coerce_floats(column)
    expected = "a finite number of 0 or more on every row, from 1e-37 up if not 0"
    _refuse_bad(column, (label >= 0) & ~fit_single(weight), "weight", expected, where)
    return weight


def _refuse_bad(column: pd.Series, bad: Array, role: str, expected: str, where: str) -> None:
    """Refuse numbers that cannot be used, and show the first of them."""
    if bad.any():
        first = int(bad.argmax())
        raise AnnotationError(
            explain(
                f"{where} has {plural(int(bad.sum()), role)} that cannot be used.",
                first=show_cell(column, first, role),
                expected=expected,
                fix=advise_on_number(column.iloc[first])
                + f"correct these {role}s, or drop these rows",
            )
        )


def _parse_times(column: pd.Series) -> Array:
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
                fix="write all times in one form, or leave the column out",
            )
        ) from None
