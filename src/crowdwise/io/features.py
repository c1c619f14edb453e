"""Feature files: one row per task, matched by task name."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from crowdwise.errors import AnnotationError, FileError, FormatError, explain, listing, plural
from crowdwise.io.atomic import replace_file
from crowdwise.io.document import File, Table
from crowdwise.io.feature_columns import (
    INDEX,
    choose_features,
    count_rows,
    find_id_column,
    read_cells,
    refuse_repeats,
    to_texts,
)
from crowdwise.io.open import find_files, open_document
from crowdwise.io.truths import counts_from
from crowdwise.io.write import write_labels
from crowdwise.typing import Array, FeaturesLike, Floats, Names

VALUES = ("X", "x", "features", "embeddings", "embedding", "data", "arr_0")
IDS = ("ids", "id", "tasks", "task", "names", "index")


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features as stored in a file.

    Attributes
    ----------
    values : ndarray of shape (n_rows, …)
        Finite numbers, one row per entry of the first axis.
    ids : ndarray of shape (n_rows,) or None
        The names of the tasks as text; None if the file has none.
    name : str
        The file, for messages.
    notes : tuple of str
        How columns were understood, and what was left out.
    guessed : bool
        Whether the names are from an unnamed column, which may only number the rows.
    columns : tuple of str
        The names of the features; none for arrays.
    """

    values: Floats
    ids: Array | None
    name: str
    notes: tuple[str, ...] = ()
    guessed: bool = False
    columns: tuple[str, ...] = ()

    def name_columns(self, values: Floats) -> FeaturesLike:
        """Return rows of this table as a frame if its columns have names, so models know them."""
        return pd.DataFrame(values, columns=list(self.columns)) if self.columns else values

    def take_tasks(self, tasks: Array) -> tuple[Floats, tuple[str, ...]]:
        """Return one row for each task, in order, and notes on how rows were matched."""
        if self.ids is None:
            return self._take_by_number(tasks)
        texts = to_texts(tasks)
        if self.guessed and "0" not in texts and count_rows(self.ids):
            raise AnnotationError(
                explain(
                    f"The unnamed column of {self.name} may only number its rows.",
                    found=f"rows of {listing(self.ids, 3)}, tasks such as {listing(tasks, 3)}",
                    expected="a column of task names",
                    fix="name it if it has task names: --feature-id … in a shell, id='…' in Python",
                )
            )
        place = pd.Index(self.ids).get_indexer(pd.Index(texts))
        absent = place < 0
        if absent.any():
            n_tasks = plural(len(tasks), "task")
            raise AnnotationError(
                explain(
                    f"{self.name} has no row for {int(absent.sum()):,} of {n_tasks}.",
                    first=f"task {tasks[absent].tolist()[0]!r}",
                    found=f"rows of {listing(self.ids, 3)}",
                    expected="a row of features for every task that has annotations",
                    fix="add the rows, or check that both files use the same names",
                )
            )
        spare = len(self.ids) - len(tasks)
        note = f"rows of {self.name} for tasks without annotations, left out: {spare:,}"
        return self.values[place], (*self.notes, note) if spare else self.notes

    def _take_by_number(self, tasks: Array) -> tuple[Floats, tuple[str, ...]]:
        """Match rows without names: by number if tasks are numbers, else in the tasks' order."""
        n_rows, whole = len(self.values), tasks.dtype.kind in "iu"
        fits = whole and len(tasks) > 0 and tasks.min() >= 0 and tasks.max() < n_rows
        if fits and not counts_from(pd.Index(tasks), 1):
            note = f"row 0 of {self.name} is task 0, row 1 is task 1, and so on"
            return self.values[tasks], (*self.notes, note)
        if n_rows != len(tasks):
            raise AnnotationError(
                explain(
                    f"{self.name} has {plural(n_rows, 'row')} for {plural(len(tasks), 'task')}.",
                    expected="a row for each task, in sorted order, as the file has no task names",
                    fix="give a table with a column of task names, or .npz with X and ids",
                )
            )
        note = f"rows of {self.name} are the tasks in sorted order: {listing(tasks, 3)}"
        return self.values, (*self.notes, note)


def read_features(
    path: str | Path,
    *,
    tasks: Array | None = None,
    id: str | None = None,
    columns: str | Sequence[str] | None = None,
    known: Sequence[str] | None = None,
) -> FeatureTable:
    """Read features: CSV, TSV, JSON or Parquet with a column of names; .npz; or .npy.

    Parameters
    ----------
    path : str or Path
        The file, plain or gzip. An .npz has the array ``X`` and, optionally, the names
        ``ids``; an .npy is the array alone.
    tasks : ndarray, optional
        Names of the tasks that need a row; they decide which column has the names.
    id : str, optional
        The column of task names; by default, one whose name suggests it.
    columns : list of str, optional
        The feature columns, with ``x_*`` for all that begin like that; by default, all but those
        named like a task or a label.
    known : list of str, optional
        The feature columns of a model: unless ``columns`` are given, a table must have these, in
        any order, and its others are left out.
    """
    if Path(path).expanduser().is_dir():
        raise FileError(
            explain(f"{path} is a folder.", expected="one file of features", fix="give the file")
        )
    files = find_files(path)
    if all(file.suffix == ".npy" for file in files) or files[0].read(6) == b"\x93NUMPY":
        return _take_arrays({file.stem: file for file in files}, str(path))
    table = open_document(files[0])
    if not isinstance(table, Table):
        raise FormatError(
            explain(
                f"{table.name} is not a table.",
                expected="rows are tasks, columns features",
                fix="save features as a table with a column of tasks, or as .npz",
            )
        )
    own = find_id_column(table, tasks, id)
    chosen, notes = choose_features(table, own, columns, known)
    values, ids = read_cells(table, own, chosen)
    source = "" if own is None else f", tasks from column {own!r}"
    size = f"{plural(len(chosen), 'feature')} of {plural(len(values), 'row')}"
    note = f"{size} from {table.name}{source}"
    guessed = id is None and own in INDEX
    values = _require_finite(values, chosen, table.name)
    return FeatureTable(values, ids, table.name, (note, *notes), guessed, tuple(chosen))


def write_features(path: str | Path, values: Floats, ids: Names, columns: Sequence[str]) -> None:
    """Write rows of numbers and their names: .npz (X and ids), or a table by extension."""
    if not str(path).lower().endswith(".npz"):
        frame = pd.DataFrame(values, columns=list(columns))
        frame.insert(0, "task", np.asarray(ids))
        write_labels(path, frame, digits=None)
        return
    with replace_file(path, binary=True) as file:
        np.savez_compressed(file, X=values, ids=to_texts(ids).astype(str))


def _take_arrays(files: dict[str, File], where: str) -> FeatureTable:
    """Take the feature array in .npy or .npz, and the names if there are any."""
    lone = next(iter(files)) if len(files) == 1 else None
    key = next((name for name in VALUES if name in files), lone)
    if key is None:
        raise FormatError(
            explain(
                f"{where} has {plural(len(files), 'array')}, none of them named X.",
                found=", ".join(files),
                expected="an array X of features, and ids of task names",
                fix="np.savez(path, X=features, ids=tasks)",
            )
        )
    values = _check_matrix(_load_array(files[key]), key, where)
    note = f"features of shape {values.shape} from {where}"
    own = next((name for name in IDS if name in files and name != key), None)
    if own is None:
        return FeatureTable(values, None, where, (note,))
    ids = _load_array(files[own])
    if ids.shape != values.shape[:1]:
        raise FormatError(
            explain(
                f"{own} of {where} has shape {ids.shape}, {key} has {len(values):,} rows.",
                expected="one name per row",
                fix="save one id for each row of X",
            )
        )
    return FeatureTable(
        values, refuse_repeats(to_texts(ids), where), where, (f"{note}, tasks from {own!r}",)
    )


def _check_matrix(values: Array, key: str, where: str) -> Floats:
    """Check for an array of finite numbers, one row per task."""
    if values.ndim < 2 or values.dtype.kind not in "biuf":
        raise FormatError(
            explain(
                f"{key} of {where} has shape {values.shape} and type {values.dtype}.",
                expected="numbers in two dimensions or more: rows are tasks",
                fix="use X.reshape(-1, 1) for a single feature",
            )
        )
    return _require_finite(
        values if values.dtype == np.float32 else values.astype(float), None, where
    )


def _load_array(file: File) -> Array:
    try:
        return np.load(io.BytesIO(file.read()), allow_pickle=False)
    except Exception as error:  # damage can cause any error
        raise FormatError(
            explain(
                f"{file.name} cannot be read.",
                first=str(error).partition("\n")[0],
                expected="an array of numbers, or of text for names, without Python objects",
                fix="save it again; names with ids=np.array(names, dtype=str)",
            )
        ) from error


def _require_finite(values: Floats, columns: Sequence[str] | None, where: str) -> Floats:
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = np.argwhere(bad)[0][:2]
        name = repr(columns[column]) if columns is not None else str(column)
        raise AnnotationError(
            explain(
                f"{where} has missing or infinite values: {int(bad.sum()):,}.",
                first=f"row {row + 1}, column {name}",
                expected="finite numbers",
                fix="fill them in first, for example with sklearn.impute.SimpleImputer",
            )
        )
    if not len(values):
        raise FormatError(
            explain(
                f"{where} has no rows.",
                expected="one row per task",
                fix="check that the file is complete",
            )
        )
    return values
