"""Values as files hold them: text without types, or whatever JSON allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from reprlib import repr as shorten
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations.names import is_hashable
from crowdwise.errors import FormatError, explain
from crowdwise.typing import Array

WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0)?").fullmatch
SCALARS = (str, int, float, bool, np.generic, pd.Timestamp, type(None), type(pd.NA))
TRUE = ("true", "1", "1.0", "yes", "t")


def coded(values: Iterable[Any], role: str = "label", where: str = "The file") -> pd.Categorical:
    """Values of any plain type, each distinct one kept once; None and NaN are missing."""
    if not isinstance(values, np.ndarray):
        values = np.fromiter(values := list(values), dtype=object, count=len(values))
    try:
        codes, distinct = pd.factorize(values)
    except TypeError:
        for value in values:
            refuse_nested(value, role, where)
        raise
    names = pd.Index(as_integers(distinct), tupleize_cols=False)
    return pd.Categorical.from_codes(codes, categories=names)


def refuse_nested(value: Any, role: str, where: str) -> Any:
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


def as_integers(distinct: Array) -> Array:
    """An array of integers where all objects are, else the objects."""
    kinds = {type(value) for value in distinct}
    fits = all(abs(value) < 2**63 for value in distinct) if kinds == {int} else False
    return distinct.astype(np.int64) if fits else distinct


def as_coded(column: pd.Series, role: str = "label", where: str = "The file") -> pd.Series:
    """A column that keeps each distinct value once."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    return pd.Series(coded(column.to_numpy(dtype=object), role, where), index=column.index)


def renamed(column: pd.Series, rule: Callable[[Any], Any]) -> pd.Series:
    """The column with ``rule`` applied to every distinct value; None makes it missing."""
    column = as_coded(column)
    new = coded(map(rule, column.cat.categories))
    codes = np.append(new.codes, -1)[column.cat.codes.to_numpy()]
    own = pd.Categorical.from_codes(codes, new.categories, ordered=column.cat.ordered)
    return pd.Series(own, index=column.index)


def typed(*columns: pd.Series) -> list[pd.Series]:
    """Columns of text as integers where every value of all of them is a whole number.

    Whole numbers are written as 12 or 12.0, without leading zeros.
    """
    texts = [as_coded(column) for column in columns]
    if not all(is_whole(name) for column in texts for name in column.cat.categories):
        return texts
    return [renamed(column, as_whole) for column in texts]


def is_whole(text: Any) -> bool:
    return isinstance(text, str) and WHOLE(text) is not None


def as_whole(text: str) -> int:
    return int(text.removesuffix(".0"))


def parse_names(names: Sequence[Any]) -> list[Any]:
    """Names that came as text, as integers if all of them are whole numbers."""
    return [as_whole(name) for name in names] if all(map(is_whole, names)) else list(names)


def is_true(column: pd.Series) -> Array:
    """Which cells of a column of yes and no say yes."""
    return column.astype(object).map(lambda cell: str(cell).strip().lower() in TRUE).to_numpy(bool)


def joined(values: Any) -> Any:
    """Several labels in one annotation as one label; none as None."""
    if not isinstance(values, list | tuple | np.ndarray):
        return values
    if all(isinstance(value, SCALARS) for value in values):
        distinct = list(dict.fromkeys(values))
        if len(distinct) < 2:
            return distinct[0] if distinct else None
        return " + ".join(sorted(map(str, distinct)))
    return values
