"""From published tables to a crowd: tidy ids, numbers for people, one order of tasks."""

from collections.abc import Hashable
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from crowdwise.annotations import Annotations
from crowdwise.datasets.crowd import Crowd
from crowdwise.datasets.registry import Info
from crowdwise.datasets.tables import PublishedTables
from crowdwise.typing import Array

Table = TypeVar("Table", pd.Series, pd.DataFrame)
WHOLE = r"0|-?[1-9]\d*"


def assemble(about: Info, tables: PublishedTables) -> Crowd:
    """Assemble the crowd described by ``about``."""
    tables = tidy(tables)
    number = number_people(tables) if about.workers == "people" else {}
    workers, extra = tables.workers, dict(tables.extra)
    if workers is not None:
        workers = workers.set_axis(workers.index.map(number), axis=0).sort_index()
        workers = workers.rename_axis("worker")
    for key, table in extra.items():
        if isinstance(table, pd.DataFrame) and "worker" in table:
            extra[key] = table.assign(worker=table["worker"].map(number))
    return Crowd(
        about.name,
        _annotations(about, tables, number),
        about,
        truth=tables.truth,
        X=tables.X,
        X_tasks=tables.X_tasks,
        items=tables.items,
        split=tables.split,
        workers=workers,
        extra=extra,
    )


def tidy(tables: PublishedTables) -> PublishedTables:
    """Convert task ids and labels to whole numbers if all of them are, else to text."""
    ids: list[ArrayLike] = [] if tables.annotations is None else [tables.annotations["task"]]
    ids += [t.index for t in (tables.truth, tables.split, tables.items) if t is not None]
    kind = int if all(are_whole(each) for each in ids) else str

    def tidy_one(table: Table | None) -> Table | None:
        if table is None:
            return None
        if isinstance(table, pd.DataFrame):
            table = table.copy()
            for column in {"task", "label"} & set(table):
                values = table[column]
                table[column] = values.astype(kind) if column == "task" else simplest(values)
        if table.index.name == "task":
            table = table.set_axis(table.index.astype(kind).rename("task"), axis=0)
        return simplest(table) if isinstance(table, pd.Series) else table

    return replace(
        tables,
        annotations=tidy_one(tables.annotations),
        truth=tidy_one(tables.truth),
        items=tidy_one(tables.items),
        split=tidy_one(tables.split),
        X_tasks=None if tables.X is None else _as_array(tables.X_tasks, kind),
        extra={name: tidy_one(table) for name, table in tables.extra.items()},
    )


def are_whole(values: ArrayLike) -> bool:
    """Return whether every value is, or spells, a whole number."""
    distinct = pd.Series(np.asarray(values)).drop_duplicates()
    return distinct.dtype.kind in "iu" or bool(distinct.astype(str).str.fullmatch(WHOLE).all())


def simplest(values: pd.Series) -> pd.Series:
    """Convert to whole numbers, or numbers, if all values allow it; else leave unchanged."""
    if are_whole(values):
        return values.astype(int)
    try:
        return pd.to_numeric(values)
    except ValueError:
        return values


def number_people(tables: PublishedTables) -> dict[Hashable, int]:
    """Number people in order of first appearance."""
    seen: dict[Hashable, None] = {}
    for table in (tables.annotations, *tables.extra.values()):
        if isinstance(table, pd.DataFrame) and "worker" in table:
            seen |= dict.fromkeys(table["worker"].unique())
    return {person: number for number, person in enumerate(seen)}


def _annotations(about: Info, tables: PublishedTables, number: dict[Hashable, int]) -> Annotations:
    rows = tables.annotations
    if rows is None:
        rows = pd.DataFrame({"task": [], "worker": [], "label": []}, dtype=int)
        tasks = tables.X_tasks
    elif tables.X_tasks is not None:  # the order of X, so that their rows match
        tasks = tables.X_tasks[pd.Index(tables.X_tasks).isin(rows["task"])]
    else:
        tasks = None
    return Annotations.from_frame(
        rows.assign(worker=rows["worker"].map(number)) if number else rows,
        tasks=tasks,
        classes=_classes(about, rows["label"], tables.truth),
        weight="weight" if "weight" in rows else None,
        notes=(f"dataset {about.name}: {about.title}",),
    )


def _classes(about: Info, label: pd.Series, truth: pd.Series | None) -> Array:
    """Return all labels, and all truths unless they are numbers on a scale of their own."""
    with_truth = truth is not None and truth.dtype.kind != "f" and about.labels == "classes"
    found: Array = np.unique((pd.concat([label, truth]) if with_truth else label).to_numpy())
    return found


def _as_array(values: ArrayLike | None, kind: type) -> Array:
    array = np.asarray(values)
    return array.astype(int) if kind is int else array.astype(object)
