"""Names in a stream of rows, read by the same rules as those of a file in memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations.grouping import is_word
from crowdwise.annotations.names import EXACT, GUARDED, guard, is_whole, parse_whole, unguard
from crowdwise.errors import AnnotationError, FormatError, explain
from crowdwise.typing import Array, Ints

TAIL = 1 << 21  # bytes at the end of a file; pyarrow itself detects open quotes before them
MARK = "the end"


class Names:
    """Numbers for names, in order of first appearance."""

    def __init__(self, words: frozenset[str] = frozenset()) -> None:
        self.number: dict[Any, int] = {}
        self.words = words  # not names; their number is -1
        self.whole = True  # whether text that was passed to ``notice`` is whole numbers

    def encode(self, column: Any) -> Ints:
        """Return the numbers of a column of names."""
        coded = column.dictionary_encode()
        known = [
            -1 if is_word(name, self.words) else self.number.setdefault(name, len(self.number))
            for name in coded.dictionary.to_pylist()
        ]
        place: Ints = np.array(known, dtype=np.int32)
        return place[coded.indices.to_numpy(zero_copy_only=False)]

    def notice(self, names: list[str]) -> None:
        """Look at names in rows that are left out: one like w7 makes all of them text."""
        self.whole = self.whole and all(map(is_whole, names))

    def in_order(self, *, text: bool) -> tuple[Array, Ints]:
        """Return the sorted names and each one's new number; ``text`` may be numbers."""
        names = unguard(list(self.number)) if text else list(self.number)
        if text and self.whole and all(map(is_whole, names)):
            names = list(map(parse_whole, names))
        elif set(map(type, names)) == {float} and _are_whole(np.array(names)):
            names = list(map(int, names))
        if len({type(name) for name in names}) > 1:
            names = list(map(str, names))
        distinct = sorted(set(names))
        refuse_null_ends(distinct)
        rank = {name: number for number, name in enumerate(distinct)}
        return np.array(distinct), np.array([rank[name] for name in names], dtype=np.int32)


class TaskNames:
    """How the tasks of a text file are spelled, seen batch by batch."""

    def __init__(self, *, text: bool) -> None:
        self.numbers = True  # whether all are whole numbers, as far as seen
        self.guarded = False  # whether apostrophes keep spreadsheets from running some of them
        self.text = text

    def look_at(self, names: Array) -> Array:
        """Look at some names, and return what they are distributed by: 7 and 7.0 are alike."""
        if not self.text:
            self.numbers = self.numbers and names.dtype.kind == "f" and _are_whole(names)
            return names
        self.numbers = self.numbers and all(map(is_whole, names))
        whole = "".join(names)
        self.guarded = self.guarded or ("'" in whole and any(map(GUARDED.search, names)))
        if ".0" not in whole:
            return names
        return np.array([name.removesuffix(".0") for name in names], dtype=object)

    def notice(self, names: list[str]) -> None:
        """Look at names in rows that are left out: one like t7 makes all of them text."""
        self.numbers = self.numbers and all(map(is_whole, names))

    def settle(self, parts: Iterable[Array]) -> None:
        """Decide about apostrophes when all names have been seen."""
        if self.guarded:
            pairs = ((GUARDED.sub("", text), text) for part in parts for text in part)
            self.guarded = all(guard(plain) == text for plain, text in pairs)

    def spell(self, names: Array, task: Ints) -> tuple[Array, Ints]:
        """Return the names of a part as they are meant, and its tasks' numbers among them."""
        if self.numbers:
            parse = parse_whole if self.text else int
            values = np.fromiter(map(parse, names), dtype=np.int64, count=len(names))
            place, own = pd.factorize(values)
            return own, place.astype(np.int32)[task]
        if self.guarded:
            names = np.array([GUARDED.sub("", text) for text in names], dtype=object)
        return names, task


def _are_whole(values: Array) -> bool:
    return bool(((values % 1 == 0) & (np.abs(values) < EXACT)).all())


def blank_nan(rows: Any, columns: list[str]) -> Any:
    """Return the rows with null for NaN in these columns, and 0.0 for -0.0, which equals it."""
    from pyarrow import compute, scalar, types

    for name in columns:
        place = rows.schema.get_field_index(name)
        kind = rows.schema.field(place).type
        if types.is_floating(kind):
            own = compute.add(rows.column(place), scalar(0.0, kind))
            rows = rows.set_column(place, name, compute.if_else(compute.is_nan(own), None, own))
    return rows


def refuse_null_ends(names: list[Any]) -> None:
    """Refuse names that end with a null character, which arrays on disk drop."""
    found = [name for name in names if isinstance(name, str) and name.endswith("\0")]
    if found:
        raise AnnotationError(
            explain(
                "A name ends with a null character, and would lose it on disk.",
                first=repr(found[0]),
                expected="names of workers and labels without null characters at their end",
                fix="remove these characters, or read the file into memory",
            )
        )


def refuse_open_quote(file: Path) -> None:
    """Refuse a text file whose last quote is not closed: what follows it would be one cell."""
    size = file.stat().st_size
    with file.open("rb") as handle:
        handle.seek(max(size - TAIL, 0))
        tail = handle.read()
    if size > TAIL:
        tail = tail[tail.find(b"\n") + 1 :]
    if b'"' not in tail:
        return
    text = tail.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    usual = csv.field_size_limit(max(TAIL, csv.field_size_limit()))
    try:
        last = [row for row in csv.reader(io.StringIO(f"{text}\n{MARK}", newline="")) if row][-1]
    finally:
        csv.field_size_limit(usual)
    if last != [MARK]:
        raise FormatError(
            explain(
                f"{file} ends inside quotes.",
                first=repr(last[-1][:60]),
                expected="a quote at both ends of a cell, or at neither",
                fix="correct that cell, or export the file again: it may have been cut short",
            )
        )
