"""Labels that mean "no label", left out: words such as NA, or values given by the caller."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from crowdwise.annotations.columns import Table
from crowdwise.annotations.grouping import (
    TAKEN,
    Aside,
    find_words,
    freeze,
    is_word,
    join_notes,
    list_missing,
    note_words,
)
from crowdwise.annotations.judges import drop_labels
from crowdwise.annotations.names import as_names, encode
from crowdwise.typing import Ints, Names


def leave_out_missing(table: Table, missing: Any, classes: Names | None = None) -> Table:
    """Leave out labels and truths that mean "no label"; a note counts words among them."""
    words = find_words(missing, [] if classes is None else list(classes))
    auto = isinstance(missing, str) and missing == "auto"
    values = [] if auto else [value for value in list_missing(missing) if value is not None]
    names = table.classes.tolist()
    out = np.array([is_word(name, words) or name in values for name in names], dtype=bool)
    if not out.any() or table.soft is not None:
        return table
    notes: list[str] = [Aside("rows without a label left out", int(out[table.label].sum()))]
    for what, codes in (("labels", table.label), ("truths", table.gold)):
        notes += note_words(_count_words(codes, names), what) if auto and codes is not None else ()
    columns = {**drop_labels(table, out), "declined": table.declined}
    own = as_names(columns["classes"].tolist())
    if classes is None and len(own) and own.dtype != object:  # numbers, once text is removed
        columns["classes"], rank = encode(own, "label")
        columns["label"] = rank[columns["label"]]
        columns["gold"] = None if table.gold is None else np.append(rank, -1)[columns["gold"]]
    return replace(table, **freeze(columns), notes=join_notes((*table.notes, *notes)))


def _count_words(codes: Ints, names: list[Any]) -> Counter[str]:
    times = np.bincount(codes[codes >= 0], minlength=len(names))
    found: Counter[str] = Counter()
    for name, n in zip(names, times.tolist(), strict=True):
        found.update({name.strip(): n} if is_word(name) and n else {})
    return found


def warn_missing(notes: Iterable[str], stacklevel: int) -> None:
    """Warn about words that were read as missing."""
    for note in notes:
        if TAKEN in note:
            warnings.warn(f"{note[0].upper()}{note[1:]}.", stacklevel=stacklevel + 1)
