"""Values as files hold them: text without types, or whatever JSON allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from reprlib import repr as shorten
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations.kinds import is_hashable, part_booleans
from crowdwise.errors import FormatError, explain
from crowdwise.io.document import Cell
from crowdwise.typing import Array

SCALARS = (str, int, float, bool, np.generic, pd.Timestamp, type(None), type(pd.NA))
is_whole_number = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0)?").fullmatch


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
