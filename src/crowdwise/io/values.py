"""Values as files hold them: text without types, or whatever JSON allows.

Words such as NA and None stand for a missing label. And whoever names a worker ``=HYPERLINK(…)``
writes into the spreadsheet of whoever opens the results: so text that begins with ``=``, ``+``,
``-``, ``@``, a tab or the end of a line is written to CSV and TSV with an apostrophe before it,
and read back without it. Text that begins with apostrophes before such a sign gets one more, so
every name comes back as it was. Numbers, and a sign alone, are no formulas and stay as they are.
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
from crowdwise.annotations.names import is_hashable, part_booleans
from crowdwise.errors import FormatError, explain
from crowdwise.typing import Array

Cell: TypeAlias = Any  # whatever JSON allows in a field
SCALARS = (str, int, float, bool, np.generic, pd.Timestamp, type(None), type(pd.NA))
is_whole_number = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0)?").fullmatch

SIGNS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # the last four: the same signs in full width
# Where a formula begins: at the start of a cell, and after what ends one in spreadsheets of
# countries that write ; between cells, whatever quotes are around it.
_PLACE, _SIGN = "(?:^|(?<=[;\t\r\n]))", f"'*[{re.escape(SIGNS)}]."
FORMULA = re.compile(f"{_PLACE}(?={_SIGN})", re.S)
GUARDED = re.compile(f"{_PLACE}'(?={_SIGN})", re.S)
is_number = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?").fullmatch


def encode_values(
    values: Iterable[Cell], role: str = "label", where: str = "The file"
) -> pd.Categorical:
    """Values of any plain type, each distinct one kept once; None and NaN are missing."""
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
                fix="correct it; it may have been cut short",
            )
        ) from None
    return pd.Categorical.from_codes(codes, categories=names)


def encode_column(column: pd.Series, role: str = "label", where: str = "The file") -> pd.Series:
    """A column that keeps each distinct value once."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    return pd.Series(encode_values(column.to_numpy(dtype=object), role, where), index=column.index)


def refuse_nested(value: Cell, role: str, where: str) -> Cell:
    """The value itself, unless it is a list or a dict."""
    if isinstance(value, SCALARS) or is_hashable(value):
        return value
    raise FormatError(
        explain(
            f"{where} has a {type(value).__name__} where the {role} should be.",
            first=shorten(value),
            expected=f"one number or word as the {role}",
            fix="say which field holds it: task=, worker=, label= or question=",
        )
    )


def _as_integers(distinct: Array) -> Array:
    """An array of integers where all objects are, else the objects."""
    kinds = {type(value) for value in distinct}
    fits = all(abs(value) < 2**63 for value in distinct) if kinds == {int} else False
    return distinct.astype(np.int64) if fits else distinct


def map_values(column: pd.Series, rule: Callable[[Cell], Cell]) -> pd.Series:
    """The column with ``rule`` applied to every distinct value; None makes it missing."""
    column = encode_column(column)
    new = encode_values(map(rule, column.cat.categories))
    codes = np.append(new.codes, -1)[column.cat.codes.to_numpy()]
    own = pd.Categorical.from_codes(codes, new.categories, ordered=column.cat.ordered)
    return pd.Series(own, index=column.index)


def parse_numbers(*columns: pd.Series) -> list[pd.Series]:
    """Columns of text as integers where every value of all of them is a whole number.

    Whole numbers are written as 12 or 12.0, without leading zeros.
    """
    texts = [encode_column(column) for column in columns]
    if not all(is_whole(name) for column in texts for name in column.cat.categories):
        return texts
    return [map_values(column, parse_whole) for column in texts]


def is_whole(text: object) -> bool:
    """Whether a value is text that stands for a whole number."""
    return isinstance(text, str) and is_whole_number(text) is not None


def parse_whole(text: str) -> int:
    return int(text.removesuffix(".0"))


def parse_names(names: Sequence[Any]) -> list[Any]:
    """Names that came as text, as integers if all of them are whole numbers."""
    return [parse_whole(name) for name in names] if all(map(is_whole, names)) else list(names)


def blank_words(column: pd.Series, words: frozenset[str]) -> tuple[pd.Series, Counter[str]]:
    """A column without these words, and how often each was there; it must be a categorical."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column, Counter()
    codes, names = column.cat.codes.to_numpy(), column.cat.categories
    blank = np.array([is_word(name, words) for name in names], dtype=bool)
    if not blank.any():
        return column, Counter()
    times = np.bincount(codes[codes >= 0], minlength=len(names))
    found = {str(names[k]).strip(): int(times[k]) for k in np.flatnonzero(blank) if times[k]}
    kept = np.append(np.where(blank, -1, np.cumsum(~blank) - 1), -1)[codes]
    own = pd.Categorical.from_codes(kept, names[~blank], ordered=column.cat.ordered)
    return pd.Series(own, index=column.index), Counter(found)


def note_names(column: pd.Series, role: str) -> tuple[str, ...]:
    """A note on tasks or workers that are named like a missing value; these are names even so."""
    if is_numeric_dtype(column.dtype):
        return ()
    if (
        isinstance(column.dtype, pd.CategoricalDtype)
        and not column.cat.categories.isin(WORDS).any()
    ):
        return ()  # without a look at all rows
    found = column[column.isin(WORDS)].astype(object).value_counts()
    shown = ", ".join(f"{name!r} {times:,}" for name, times in found.items())
    return (f"{role}s with names like that of a missing value: {shown}",) if shown else ()


def guard(text: str) -> str:
    """The text as CSV holds it.

    >>> guard("=1+1"), guard("'=1+1"), guard("-1.5"), guard("+"), guard("ann"), guard("a;=b")
    ("'=1+1", "''=1+1", '-1.5', '+', 'ann', "a;'=b")
    """
    return text if is_number(text) else FORMULA.sub("'", text)


def guard_values(values: Iterable[object]) -> dict[object, str]:
    """Those of the values that CSV holds in another form, with that form."""
    likely = (value for value in values if isinstance(value, str) and FORMULA.search(value))
    return {text: guarded for text in likely if (guarded := guard(text)) != text}


def unguard(texts: list[Any]) -> list[Any]:
    """The texts of one column as they were before they were guarded.

    A column in which a formula is not guarded was not written by this rule, and stays as it is.
    """
    likely = texts if set(map(type, texts)) == {str} else [t for t in texts if isinstance(t, str)]
    if "'" not in "".join(likely) or not any(map(GUARDED.search, likely)):  # quick for many
        return texts
    plain = [GUARDED.sub("", text) if isinstance(text, str) else text for text in texts]
    pairs = zip(plain, texts, strict=True)
    ours = all(guard(own) == text for own, text in pairs if isinstance(text, str))
    return plain if ours else texts
