"""Truths beside labels: booleans and numbers named alike, and classes that nobody chose."""

import warnings

import numpy as np
import pandas as pd

from crowdwise.annotations.names import (
    TRUTHS,
    Truth,
    as_names,
    encode,
    is_hashable,
    locate,
    name_truth,
    part_booleans,
)
from crowdwise.errors import explain, listing, plural
from crowdwise.typing import Array, Names

NUMBERS = {int, float, np.int64, np.float64}


def part_together(labels: pd.Series, truths: pd.Series) -> list[pd.Series]:
    """Labels and truths with booleans named alike, where one of them has numbers beside them.

    Where one of them has numbers only and the other booleans only, 1 is true.
    """
    columns = [labels, truths]
    if is_scale(labels) or all(map(_is_plain, columns)):
        return columns
    distinct = [_list_distinct(column) for column in columns]
    kinds = [{type(value) for value in own} for own in distinct]
    if kinds[0] <= NUMBERS and kinds[1] <= TRUTHS:
        return [labels, pd.Series([_as_number(own) for own in truths], truths.index, dtype=object)]
    if kinds[0] <= TRUTHS and kinds[1] <= NUMBERS:
        return columns
    together = part_booleans(np.concatenate(distinct))  # refuses text that looks alike
    if not any(isinstance(value, Truth) for value in together):
        return columns
    return [pd.Series(map(name_truth, own), own.index, dtype=object) for own in columns]


def _as_number(value: object) -> object:
    return int(value) if isinstance(value, bool | np.bool_) else value


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


def warn_unseen_truths(truths: Names, classes: Names, so: str) -> Array:
    """Which truths are of no known class; a warning says so, and what follows."""
    unseen: Array = locate(classes, truths) < 0
    if unseen.any():
        fact = f"{int(unseen.sum()):,} of {plural(len(unseen), 'truth')} are of an unknown class"
        message = explain(f"{fact}: {so}.", **compare_classes(truths, classes))
        warnings.warn(message, stacklevel=4)
    return unseen


def note_unseen_truths(truths: Names, classes: Names) -> tuple[str, ...]:
    """A note on truths of a class that no worker gave; also a warning where it looks wrong."""
    unseen = as_names(truths)[locate(classes, truths) < 0]
    if not len(unseen):
        return ()
    if _guess_mistake(as_names(truths), as_names(classes)):
        warn_unseen_truths(truths, classes, "they become classes that no worker gave")
    own = listing(encode(unseen, "label")[0])
    return (f"truths of a class that no worker gave ({own}): {len(unseen):,}",)


def compare_classes(truths: Names, classes: Names) -> dict[str, str]:
    """For a message: the classes of truths, the known ones, and what to do."""
    own, known = encode(as_names(truths), "label")[0], as_names(classes)
    usual = "check that both use the same names, and the same type (numbers or text)"
    return {
        "found": f"truths such as {listing(own[locate(known, own) < 0])}",
        "expected": f"classes such as {listing(known)}",
        "fix": _guess_mistake(own, known) or usual,
    }


def _guess_mistake(truths: Array, classes: Array) -> str:
    """What to do about truths that look like known classes written otherwise, else nothing."""
    true, known = set(truths.tolist()), set(classes.tolist())
    if all(isinstance(name, int) for name in true | known):
        for step, how in ((-1, "subtract 1 from"), (1, "add 1 to")):
            if {name + step for name in true} <= known:
                return f"{how} the truths, if these and the labels count from different numbers"
    plain = {str(name).strip().lower() for name in known}
    if all(str(name).strip().lower() in plain for name in true):
        return "write both alike: they differ in type (numbers or text), case or spaces"
    return ""
