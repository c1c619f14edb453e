"""Facts about workers from a separate file: family, kind, price and the like."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike

import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.frames import to_floats
from crowdwise.errors import AnnotationError, plural
from crowdwise.io.open import read_table
from crowdwise.io.recognize import recognize_columns


def add_worker_file(annotations: Annotations, path: str | PathLike[str]) -> Annotations:
    """Add facts about workers from a table with one row per worker.

    A column ``family`` says which judges err together. Workers that are not in the annotations
    are ignored; those that are not in the table have no facts.
    """
    frame = read_table(path, "a row for each worker")
    worker = recognize_columns(list(frame), {}).get("worker")
    if worker is None:
        fix = "rename the column that has the names of the workers"
        raise AnnotationError.missing_column("worker", where=str(path), found=frame, fix=fix)
    about = pd.DataFrame({name: parse_column(frame[name]) for name in frame if name != worker})
    about.index = pd.Index(frame[worker].map(str), tupleize_cols=False)
    known = annotations.with_workers(as_named(about, annotations))
    described = int(pd.Series(known.workers).map(str).isin(set(about.index)).sum())
    facts = ", ".join(map(str, about.columns)) or "nothing"
    note = f"{facts} of {plural(described, 'worker')} from {path}"
    return replace(known, notes=(*annotations.notes, note))


def as_named(about: pd.DataFrame, annotations: Annotations) -> pd.DataFrame:
    """Return the facts by the annotations' names, which may not be text."""
    by_text = {str(name): name for name in annotations.workers.tolist()}
    names = [by_text.get(name, name) for name in about.index]
    return about.set_axis(pd.Index(names, dtype=object, tupleize_cols=False))


def parse_column(column: pd.Series) -> pd.Series:
    """Convert to numbers if all of a column's text is; empty cells are missing."""
    numbers = to_floats(column.where(column.notna(), None))
    return column if numbers is None or not column.notna().any() else numbers
