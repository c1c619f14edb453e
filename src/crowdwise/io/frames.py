"""Frames in memory, read like a file with the same columns."""

from __future__ import annotations

from typing import Any

import pandas as pd

from crowdwise.annotations.frames import as_narwhals, take_series
from crowdwise.io.document import FrameTable
from crowdwise.io.formats.wide import UNNAMED
from crowdwise.io.recognize import SYNONYMS, normalize_name, recognize_columns


def as_pandas(source: Any) -> Any:
    """Convert a frame of any library to pandas; anything else is returned unchanged."""
    if isinstance(source, pd.DataFrame):
        return source
    frame = as_narwhals(source)  # of polars or Arrow, else perhaps of Hugging Face
    if frame is not None:
        return pd.DataFrame({name: take_series(frame, name) for name in frame.columns})
    return source.to_pandas() if hasattr(source, "to_pandas") else source


def from_pandas(frame: pd.DataFrame, *, always: bool = False) -> FrameTable:
    """Make a table of the frame, with its index among the columns if that adds something.

    An index that only counts the rows adds nothing; with ``always``, its numbers are the
    tasks' names even so, unless a column names the tasks.
    """
    index, columns = frame.index, list(map(str, frame.columns))
    levels = ["" if name is None else str(name) for name in index.names]
    roles = recognize_columns([*levels, *columns], {})
    own = [k for k, name in enumerate(levels) if name in _find_row_roles(roles) - set(columns)]
    task = [] if roles.get("task") in columns else _find_task_levels(index, levels, roles, own)
    hinted = any(normalize_name(name) in SYNONYMS["task"] for name in levels)
    numbers = always and not set(columns[:1]) & set(UNNAMED)
    if _counts_rows(index) and not hinted and not numbers:
        task = []
    parts = [pd.Series(index.get_level_values(k), name=levels[k]) for k in own]
    name = ", ".join(levels[k] for k in task if levels[k]) or "index"
    while name in columns:
        name += "_"
    if task:
        parts.insert(0, pd.Series(_join_levels(index, task), name=name))
    known = name if task and not (hinted and len(task) == 1) else None
    whole = pd.concat([*parts, frame.reset_index(drop=True)], axis=1) if parts else frame
    return FrameTable(whole, task=known)


def _find_row_roles(roles: dict[str, str]) -> set[str]:
    """Return the columns other than the task; a worker or label column makes a table long."""
    if not {"worker", "label"} & roles.keys():
        return set()
    return {name for role, name in roles.items() if role != "task"}


def _find_task_levels(
    index: pd.Index, levels: list[str], roles: dict[str, str], own: list[int]
) -> list[int]:
    """Find the index levels that name the task; in a long table, row numbers do not."""
    left = [k for k in range(len(levels)) if k not in own]
    if not {"worker", "label"} <= roles.keys():
        return left
    named = [k for k in left if levels[k]]
    return left if not named and index.has_duplicates else named


def _counts_rows(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _join_levels(index: pd.Index, levels: list[int]) -> pd.Index:
    """Return one level of an index, or several as tuples."""
    values = [index.get_level_values(k) for k in levels]
    if len(values) == 1:
        return values[0]
    return pd.MultiIndex.from_arrays(values).to_flat_index()
