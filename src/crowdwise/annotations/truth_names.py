"""Truths beside labels: consistent names for booleans and numbers, and unused classes."""

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
    """Name booleans alike in labels and truths, if either has numbers as well.

    If one has only numbers and the other only booleans, 1 is true.
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
    together = part_booleans(np.concatenate(distinct))  # refuses text that looks the same
    if not any(isinstance(value, Truth) for value in together):
        return columns
    return [pd.Series(map(name_truth, own), own.index, dtype=object) for own in columns]


def _as_number(value: object) -> object:
    return int(value) if isinstance(value, bool | np.bool_) else value


def _is_plain(column: pd.Series) -> bool:
    """Return whether a column's type rules out a mix of booleans and other values."""
    return column.dtype != object and not isinstance(column.dtype, pd.CategoricalDtype)


def _list_distinct(column: pd.Series) -> Array:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.categories.to_numpy(dtype=object)
    return pd.unique(column.dropna()[column.dropna().map(is_hashable)].to_numpy(dtype=object))


def is_scale(values: object) -> bool:
    """Return whether the values are an ordered categorical, that is, on a scale."""
    dtype = getattr(values, "dtype", None)
    return isinstance(dtype, pd.CategoricalDtype) and bool(dtype.ordered)


def warn_unseen_truths(truths: Names, classes: Names, so: str) -> Array:
    """Return which truths have an unknown class; a warning names them and the consequence."""
    unseen: Array = locate(classes, truths) < 0
    if unseen.any():
        fact = f"{int(unseen.sum()):,} of {plural(len(unseen), 'truth')} are of an unknown class"
        message = explain(f"{fact}: {so}.", **compare_classes(truths, classes))
        warnings.warn(message, stacklevel=4)
    return unseen


def note_unseen_truths(truths: Names, classes: Names) -> tuple[str, ...]:
    """Note truths of a class that no worker gave; also warn if it looks like a mistake."""
    unseen = as_names(truths)[locate(classes, truths) < 0]
    if not len(unseen):
        return ()
    if _guess_mistake(as_names(truths), as_names(classes)):
        warn_unseen_truths(truths, classes, "they become classes that no worker gave")
    own = listing(encode(unseen, "label")[0])
    return (f"truths of a class that no worker gave ({own}): {len(unseen):,}",)


def compare_classes(truths: Names, classes: Names) -> dict[str, str]:
    """For a message: compare the classes of truths with the known ones, and give advice."""
    own, known = encode(as_names(truths), "label")[0], as_names(classes)
    usual = "check that both use the same names, and the same type (numbers or text)"
    return {
        "found": f"truths such as {listing(own[locate(known, own) < 0])}",
        "expected": f"classes such as {listing(known)}",
        "fix": _guess_mistake(own, known) or usual,
    }


def _guess_mistake(truths: Array, classes: Array) -> str:
    """Suggest a fix for truths that look like known classes written differently, if any."""
    true, known = set(truths.tolist()), set(classes.tolist())
    if all(isinstance(name, int) for name in true | known):
        for step, how in ((-1, "subtract 1 from"), (1, "add 1 to")):
            if {name + step for name in true} <= known:
                return f"{how} the truths, if these and the labels count from different numbers"
    plain = {str(name).strip().lower() for name in known}
    if all(str(name).strip().lower() in plain for name in true):
        return "write both in the same way: they differ in type (numbers or text), case or spaces"
    return ""
