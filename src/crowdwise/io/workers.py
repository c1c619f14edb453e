"""What is known of workers, from a file of its own: family, kind, price and the like."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike

import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.frames import to_floats
from crowdwise.errors import AnnotationError, FormatError, explain, plural
from crowdwise.io.document import Table
from crowdwise.io.open import find_files, open_document
from crowdwise.io.recognize import recognize_columns


def add_worker_file(annotations: Annotations, path: str | PathLike[str]) -> Annotations:
    """The annotations with what a table says of their workers, one row each.

    A column ``family`` says which judges err together. Workers that are not in the annotations
    are ignored; of those that are not in the table nothing is known.
    """
    document = open_document(find_files(path)[0])
    if not isinstance(document, Table):
        raise FormatError(
            explain(
                f"{document.name} is not a table.",
                expected="a row for each worker",
                fix="write a table with a column worker",
            )
        )
    worker = recognize_columns(document.columns, {}).get("worker")
    if worker is None:
        fix = "rename the column that has the names of the workers"
        raise AnnotationError.missing_column(
            "worker", where=document.name, found=document.columns, fix=fix
        )
    frame = document.frame(list(document.columns)).astype(object)
    about = pd.DataFrame({name: parse_column(frame[name]) for name in frame if name != worker})
    about.index = pd.Index(frame[worker].map(str), tupleize_cols=False)
    known = annotations.with_workers(as_named(about, annotations))
    described = int(pd.Series(known.workers).map(str).isin(set(about.index)).sum())
    facts = ", ".join(map(str, about.columns)) or "nothing"
    note = f"{facts} of {plural(described, 'worker')} from {document.name}"
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
