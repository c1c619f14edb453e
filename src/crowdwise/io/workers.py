"""What is known of workers, from a file of its own: family, kind, price and the like."""

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
    """The annotations with what a table says of their workers, one row each.

    A column ``family`` says which judges err together. Workers that are not in the annotations
    are ignored; of those that are not in the table nothing is known.
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
    """The facts under the names that the annotations have, which need not be text."""
    by_text = {str(name): name for name in annotations.workers.tolist()}
    names = [by_text.get(name, name) for name in about.index]
    return about.set_axis(pd.Index(names, dtype=object, tupleize_cols=False))


def parse_column(column: pd.Series) -> pd.Series:
    """Numbers where all of a column's text stands for them; empty cells are missing."""
    numbers = to_floats(column.where(column.notna(), None))
    return column if numbers is None or not column.notna().any() else numbers
