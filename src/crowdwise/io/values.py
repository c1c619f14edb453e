"""Values in files: text without types, or anything that JSON allows.

Words such as NA and None mean a missing label. A worker named ``=HYPERLINK(…)`` would put a
formula into the spreadsheet of anyone who opens the results, so text that starts with ``=``,
``+``, ``-``, ``@``, a tab or a line end is written to CSV and TSV with an apostrophe before it,
and read back without it. Text that starts with apostrophes before such a sign gets one more, so
every name is restored exactly. Numbers, and a sign alone, are not formulas and stay unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from reprlib import repr as shorten
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from crowdwise.annotations.grouping import WORDS, is_word
from crowdwise.annotations.names import (
    FORMULA,
    guard,
    is_hashable,
    is_whole,
    parse_whole,
    part_booleans,
)
from crowdwise.errors import FormatError, explain
from crowdwise.typing import Array

MOST_DIGITS = 1e15  # from here on, a spreadsheet's numbers lack digits
looks_rounded = re.compile(r"\d[.,]\d+E\+\d\d").fullmatch
Cell: TypeAlias = Any  # anything that JSON allows in a field
SCALARS = (str, int, float, bool, np.generic, pd.Timestamp, type(None), type(pd.NA))


def encode_values(
    values: Iterable[Cell], role: str = "label", where: str = "The file"
) -> pd.Categorical:
    """Encode values of any plain type, each distinct one once; None and NaN are missing."""
    if not isinstance(values, np.ndarray):
        values = np.fromiter(values := list(values), dtype=object, count=len(values))
    try:
        codes, distinct = pd.factorize(part_booleans(values))
    except TypeError:
        for value in values:
            refuse_nested(value, role, where)
        raise
    try:
        names = pd.Index(_as_integers(distinct), tupleize_cols=False)
    except UnicodeEncodeError as error:
        raise FormatError(
            explain(
                f"{where} has half a character in a {role}.",
                first=repr(error.object),
                expected="text in Unicode, in which surrogates come in pairs",
                fix="correct it; the file may have been cut short",
            )
        ) from None
    return pd.Categorical.from_codes(codes, categories=names)


def encode_column(column: pd.Series, role: str = "label", where: str = "The file") -> pd.Series:
    """Return a column that stores each distinct value once."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    return pd.Series(encode_values(column.to_numpy(dtype=object), role, where), index=column.index)


def refuse_nested(value: Cell, role: str, where: str) -> Cell:
    """Return the value, unless it is a list or a dict."""
    if isinstance(value, SCALARS) or is_hashable(value):
        return value
    raise FormatError(
        explain(
            f"{where} has a {type(value).__name__} where the {role} should be.",
            first=shorten(value),
            expected=f"one number or word as the {role}",
            fix="say which field has it: task=, worker=, label= or question=",
        )
    )


def _as_integers(distinct: Array) -> Array:
    """Return an array of integers if all objects are, else the objects."""
    kinds = {type(value) for value in distinct}
    fits = all(abs(value) < 2**63 for value in distinct) if kinds == {int} else False
    return distinct.astype(np.int64) if fits else distinct


def map_values(column: pd.Series, rule: Callable[[Cell], Cell]) -> pd.Series:
    """Return the column with ``rule`` applied to each distinct value; None means missing."""
    column = encode_column(column)
    new = encode_values(map(rule, column.cat.categories))
    codes = np.append(new.codes, -1)[column.cat.codes.to_numpy()]
    own = pd.Categorical.from_codes(codes, new.categories, ordered=column.cat.ordered)
    return pd.Series(own, index=column.index)


def parse_numbers(*columns: pd.Series) -> list[pd.Series]:
    """Convert columns of text to integers if all values of all of them are whole numbers.

    Whole numbers are written as 12 or 12.0, without leading zeros.
    """
    texts = [encode_column(column) for column in columns]
    if not all(is_whole(name) for column in texts for name in column.cat.categories):
        return texts
    return [map_values(column, parse_whole) for column in texts]


def parse_names(names: Sequence[Any]) -> list[Any]:
    """Convert text names to integers if all of them are whole numbers."""
    return [parse_whole(name) for name in names] if all(map(is_whole, names)) else list(names)


def blank_words(column: pd.Series, words: frozenset[str]) -> tuple[pd.Series, Counter[str]]:
    """Return a categorical without these words, and how often each of them occurred."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column, Counter()
    codes, names = column.cat.codes.to_numpy(), column.cat.categories
    blank = np.array([is_word(name, words) for name in names], dtype=bool)
    if not blank.any():
        return column, Counter()
    times = np.bincount(codes[codes >= 0], minlength=len(names))
    found: Counter[str] = Counter()  # NA and " NA" are the same word
    for place in np.flatnonzero(blank & (times > 0)):
        found[str(names[place]).strip()] += int(times[place])
    kept = np.append(np.where(blank, -1, np.cumsum(~blank) - 1), -1)[codes]
    own = pd.Categorical.from_codes(kept, names[~blank], ordered=column.cat.ordered)
    return pd.Series(own, index=column.index), found


def note_names(column: pd.Series, role: str) -> tuple[str, ...]:
    """Note names of tasks or workers that look missing, or like rounded numbers; they stay."""
    if is_numeric_dtype(column.dtype):
        return ()
    notes: tuple[str, ...] = ()
    names = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else None
    if names is None or names.isin(WORDS).any():  # else without scanning all rows
        found = column[column.isin(WORDS)].astype(object).value_counts()
        shown = ", ".join(f"{name!r} {times:,}" for name, times in found.items())
        notes += (f"{role}s with names like that of a missing value: {shown}",) if shown else ()
    rounded = [name for name in (column.unique() if names is None else names) if _is_rounded(name)]
    if rounded:
        what = f"{role}s with names like numbers that a spreadsheet has rounded"
        notes += (f"{what}: {len(rounded):,}, such as {rounded[0]!r}",)
    return notes


def _is_rounded(name: object) -> bool:
    """Return whether a name is a number such as 1.23457E+16, of which digits may be lost."""
    if isinstance(name, float):
        return abs(name) >= MOST_DIGITS
    return isinstance(name, str) and looks_rounded(name) is not None


def guard_values(values: Iterable[object]) -> dict[object, str]:
    """Return the CSV form of those values that have a different one."""
    likely = (value for value in values if isinstance(value, str) and FORMULA.search(value))
    return {text: guarded for text in likely if (guarded := guard(text)) != text}
