"""Recognition of the feature columns of a table, and of the column of task names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

import numpy as np
import pandas as pd

from crowdwise.annotations.frames import advise_on_number, shorten_columns, to_floats
from crowdwise.annotations.names import as_names
from crowdwise.errors import AnnotationError, FormatError, explain, plural
from crowdwise.io.document import Table
from crowdwise.io.recognize import is_name_of, list_candidates
from crowdwise.io.text import TextTable
from crowdwise.typing import Array, Floats, Names

INDEX = ("", "Unnamed: 0", "__index_level_0__", "index")  # columns that pandas adds


def to_texts(names: Names) -> Array:
    """Return names as text, whole numbers without a decimal point, to compare across files."""
    return np.array([str(name) for name in as_names(names).tolist()], dtype=object)


def find_id_column(table: Table, tasks: Array | None, id: str | None) -> str | None:
    """Find the column of names: as given, else the best match with the tasks, if any."""
    if id is not None:
        _refuse_unknown([id], table)
        return id
    named = list_candidates("task", table.columns)
    spare = [name for name in INDEX if table.columns.count(name) == 1 and name not in named]
    if tasks is None:
        return next(iter([*named, *spare]), None)
    if not named and not spare:
        raise AnnotationError.missing_column(
            "task",
            where=table.name,
            found=_show_columns(table),
            fix="name the column of task names: id='…' in Python, --feature-id … in a shell",
        )
    return _find_best(table, named, spare, tasks)


def _find_best(table: Table, named: list[str], spare: list[str], tasks: Array) -> str:
    """Find the column with most of the tasks; one that only numbers the rows comes last."""
    possible = [*named, *spare]
    if len(possible) == 1:
        return possible[0]
    wanted = set(to_texts(tasks).tolist())
    texts = {name: to_texts(table.frame([name])[name].dropna()) for name in possible}
    found = {name: len(wanted & set(own)) for name, own in texts.items()}
    rows = {name for name in spare if count_rows(texts[name])}
    return max(possible, key=lambda name: (found[name] > 0, name not in rows, found[name]))


def count_rows(texts: Array) -> bool:
    """Return whether names only count from 0, in any order, like a pandas index."""
    return len(texts) > 0 and set(texts) == {str(k) for k in range(len(texts))}


def choose_features(
    table: Table,
    own: str | None,
    columns: str | Sequence[str] | None,
    known: Sequence[str] | None = None,
) -> tuple[list[str], tuple[str, ...]]:
    """Choose the feature columns, with a note on those that were left out.

    They are the columns that the caller names, else those of a model (``known``), in its order.
    """
    names = [name for name in table.columns if name != own]
    left: list[str] = []
    if columns is not None:
        wanted = [columns] if isinstance(columns, str) else list(columns)
        _refuse_unknown([w for w in wanted if not any(fnmatch(n, w) for n in names)], table)
        kept = [name for name in names if any(fnmatch(name, w) for w in wanted)]
    elif known is not None:
        kept = list(known)
        _refuse_absent(kept, names, table)
        left = [name for name in names if name not in set(kept)]
    else:  # a truth among the features would leak the answer, a name of the task is none
        rows = (name for name in list_candidates("task", names) if is_name_of(name, "task"))
        answers = {*list_candidates("label", names), *list_candidates("gold", names), *INDEX, *rows}
        kept = [name for name in names if name not in answers]
        left = [name for name in names if name in answers]
    if not kept:
        raise FormatError(
            explain(
                f"{table.name} has no column of features.",
                found=", ".join(_show_columns(table)),
                expected="a column of task names, and columns of numbers",
                fix="add columns of numbers, or name them: --feature-columns x_*",
            )
        )
    note = f"columns of {table.name} that are not features: {', '.join(map(repr, left))}"
    return kept, (note,) if left else ()


def _refuse_absent(wanted: Sequence[str], names: Sequence[str], table: Table) -> None:
    """Refuse a table that lacks columns of a model."""
    absent = [name for name in wanted if name not in names]
    if absent:
        raise AnnotationError(
            explain(
                f"{table.name} lacks {len(absent):,} of {plural(len(wanted), 'feature')} of fit.",
                first=repr(absent[0]),
                found=", ".join(_show_columns(table)),
                expected="the columns that the model was fitted on, in any order",
                fix="rename the columns as they were named in fit, or add them",
            )
        )


def read_cells(table: Table, own: str | None, chosen: list[str]) -> tuple[Floats, Array | None]:
    """Read the numbers in the chosen columns, and the names of the rows."""
    if isinstance(table, TextTable):
        frame = table.numbers(chosen, own)
    else:
        frame = table.frame(chosen if own is None else [own, *chosen])
    values = np.empty((len(frame), len(chosen)))
    for number, name in enumerate(chosen):
        values[:, number] = _parse_numbers(frame[name], name, table.name)
    return values, None if own is None else _take_names(frame[own], own, table.name)


def refuse_repeats(names: Array, where: str) -> Array:
    """Return the names, unless one occurs twice."""
    twice = pd.Index(names).duplicated()
    if twice.any():
        raise AnnotationError(
            explain(
                f"{where} repeats a task in {plural(int(twice.sum()), 'row')}.",
                first=f"row {int(twice.argmax()) + 1}: task {names[twice.argmax()]!r}",
                expected="one row of features per task",
                fix="remove the repeated rows, or average them first",
            )
        )
    return names


def _take_names(column: pd.Series, role: str, where: str) -> Array:
    """Read each row's name; all must be different."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise AnnotationError(
            explain(
                f"{where} has no task in {int(missing.sum()):,} of {plural(len(column), 'row')}.",
                first=f"row {int(missing.argmax()) + 1}",
                expected=f"a task in column {role!r} of every row",
                fix="fill in the task, or drop these rows",
            )
        )
    return refuse_repeats(to_texts(column), where)


def _parse_numbers(column: pd.Series, name: str, where: str) -> Floats:
    """Convert a column to floats, with NaN for empty cells."""
    numbers = to_floats(column)
    if numbers is None:
        numbers = pd.to_numeric(column, errors="coerce")
    bad = (numbers.isna() & column.notna()).to_numpy()
    if bad.any():
        first = int(bad.argmax())
        raise AnnotationError(
            explain(
                f"Column {name!r} of {where} is not all numbers.",
                first=f"row {first + 1}: {column.iloc[first]!r:.60}",
                expected="numbers only",
                fix=advise_on_number(column.iloc[first])
                + "encode text first, or choose the feature columns: --feature-columns …",
            )
        )
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _refuse_unknown(names: Sequence[str], table: Table) -> None:
    unknown = [name for name in names if name not in table.columns]
    if unknown:
        raise AnnotationError(
            explain(
                f"{table.name} has no column {unknown[0]!r}.",
                found=", ".join(_show_columns(table)),
                fix="check the spelling",
            )
        )


def _show_columns(table: Table) -> list[str]:
    names = [name or "(no name)" for name in table.columns]
    return shorten_columns(names)
