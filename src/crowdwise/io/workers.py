"""Facts about workers from a separate file: family, kind, price and the like."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from os import PathLike

import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.frames import to_floats
from crowdwise.annotations.grouping import WORDS
from crowdwise.errors import AnnotationError, listing, plural
from crowdwise.io.open import read_table
from crowdwise.io.recognize import normalize_name, recognize_columns
from crowdwise.io.values import blank_words, encode_column, parse_numbers

NAMES = ("family", "kind", "prompt")  # columns of names, which may look like numbers


def add_worker_file(annotations: Annotations, path: str | PathLike[str]) -> Annotations:
    """Add facts about workers from a table with one row per worker.

    A column ``family`` says which judges err together. Workers that are not in the annotations
    are ignored; those that are not in the table have no facts. Notes name both.
    """
    frame = read_table(path, "a row for each worker")
    worker = recognize_columns(list(frame), {}).get("worker")
    if worker is None:
        fix = "rename the column that has the names of the workers"
        raise AnnotationError.missing_column("worker", where=str(path), found=frame, fix=fix)
    bare = frame[worker].isna()
    frame = frame[~bare]
    names = {name: spell(name, frame) for name in frame if name != worker}
    facts = {own: parse_column(frame[name], own, str(path)) for name, own in names.items()}
    about = pd.DataFrame(facts)
    about.index = pd.Index(frame[worker].map(str), tupleize_cols=False)
    known = annotations.with_workers(as_named(about, annotations))
    own = pd.Series(known.workers).map(str)
    there = own.isin(set(about.index))
    shown = ", ".join(map(str, about.columns)) or "nothing"
    notes = [f"{shown} of {plural(int(there.sum()), 'worker')} from {path}"]
    missing, others = own[~there].tolist(), sorted({*about.index} - {*own})
    notes += [f"workers without a row in {path}: {listing(missing)}"] if missing else []
    notes += [f"rows of other workers in {path}: {listing(others)}"] if others else []
    notes += [f"rows without a worker in {path}: {int(bare.sum()):,}"] if bare.any() else []
    return replace(known, notes=(*annotations.notes, *notes))


def as_named(about: pd.DataFrame, annotations: Annotations) -> pd.DataFrame:
    """Return the facts by the annotations' names, which may not be text."""
    by_text = {str(name): name for name in annotations.workers.tolist()}
    names = [by_text.get(name, name) for name in about.index]
    return about.set_axis(pd.Index(names, dtype=object, tupleize_cols=False))


def spell(name: str, columns: Container[str]) -> str:
    """Return a column's name as it is looked for: family for Family."""
    plain = normalize_name(name)
    return plain if plain in (*NAMES, "price") and plain not in columns else name


def parse_column(column: pd.Series, name: str, where: str) -> pd.Series:
    """Read names by the rules for labels: NA is missing, 01 is not 1; others as numbers or text.

    Empty cells are missing.
    """
    coded = encode_column(column, name, where)  # refuses lists
    if name in NAMES:
        return parse_numbers(blank_words(coded, WORDS)[0])[0].astype(object)
    numbers = to_floats(column.where(column.notna(), None))
    return column if numbers is None or not column.notna().any() else numbers
