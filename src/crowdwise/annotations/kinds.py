"""What kind of values there are: whether they can be names, and booleans beside numbers."""

import numpy as np
import pandas as pd

from crowdwise.errors import AnnotationError, explain
from crowdwise.typing import Array


class Truth(str):
    """The name of a boolean where numbers are names too."""

    __slots__ = ()


TRUTHS = {bool, np.bool_, Truth}
NUMBERS = {int, float, np.int64, np.float64}


def part_booleans(values: Array) -> Array:
    """The values themselves; but "true" and "false" for booleans where 1 or 0 are there too.

    Python takes True for 1. Text that is there already cannot be told from them, and is refused.
    """
    kinds = set(map(type, values))
    if not kinds & TRUTHS or len(kinds) == 1:
        return values
    truth = np.fromiter((type(value) in TRUTHS for value in values), dtype=bool, count=len(values))
    others = {value for value in values[~truth] if is_hashable(value)}
    if not {0, 1} & others and Truth not in kinds:
        return values
    if {"true", "false"} & others:
        raise AnnotationError(
            explain(
                "The values true (a boolean), 1 or 0 and 'true' or 'false' (text) occur together.",
                expected="different names for what is different",
                fix="write booleans in one way, all as text or all as numbers",
            )
        )
    apart = values.copy()
    apart[truth] = [_name_truth(value) for value in values[truth]]
    return apart


def part_together(labels: pd.Series, truths: pd.Series) -> list[pd.Series]:
    """Labels and truths with booleans named alike, where one of them has numbers beside them.

    Where labels are numbers only and truths booleans only, 1 is true.
    """
    columns = [labels, truths]
    if is_scale(labels) or all(map(_is_plain, columns)):
        return columns
    distinct = [part_booleans(_list_distinct(column)) for column in columns]
    kinds = [{type(value) for value in own} for own in distinct]
    if kinds[0] <= NUMBERS and kinds[1] <= TRUTHS:
        return [labels, pd.Series([_as_number(own) for own in truths], truths.index, dtype=object)]
    if not any(isinstance(value, Truth) for own in distinct for value in own):
        return columns
    part_booleans(np.concatenate(distinct))  # refuses text that looks alike
    return [pd.Series(map(_name_truth, own), own.index, dtype=object) for own in columns]


def _as_number(value: object) -> object:
    return int(value) if isinstance(value, bool | np.bool_) else value


def _name_truth(value: object) -> object:
    return Truth(str(value).lower()) if type(value) in TRUTHS else value


def _is_plain(column: pd.Series) -> bool:
    """Whether a column's type leaves no room for a boolean beside something else."""
    return column.dtype != object and not isinstance(column.dtype, pd.CategoricalDtype)


def _list_distinct(column: pd.Series) -> Array:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.categories.to_numpy(dtype=object)
    return pd.unique(column.dropna()[column.dropna().map(is_hashable)].to_numpy(dtype=object))


def is_scale(values: object) -> bool:
    """Whether the values are an ordered categorical, that is, on a scale."""
    dtype = getattr(values, "dtype", None)
    return isinstance(dtype, pd.CategoricalDtype) and bool(dtype.ordered)


def is_hashable(value: object) -> bool:
    """Whether a value can be a name; lists and dicts cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True
