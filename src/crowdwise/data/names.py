"""Names on the outside, running numbers on the inside."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.errors import AnnotationError
from crowdwise.typing import Array, Ints

DENSE = 4  # a span of integers this many times the number of rows is worth a lookup table


def encode(values: Any, role: str, names: Any = None) -> tuple[Array, Ints]:
    """Give every value a running number: ``(names, codes)``, ``-1`` where it is missing.

    Names come out sorted, so that the order of rows leaves no trace; or as given by
    ``names``, in which case any other value is refused.
    """
    if names is not None:
        return _encode_known(values, role, np.asarray(as_names(names)))
    array = np.asarray(values) if not isinstance(values, pd.Series) else values.to_numpy()
    if array.dtype.kind in "iu" and len(array):
        dense = _encode_dense(array)
        if dense is not None:
            return dense
    codes, uniques = pd.factorize(values)
    found = as_names(uniques)
    order = _sorted_order(found)
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    rank[-1] = -1  # where a missing value's code of -1 looks
    return found[order], rank[codes]


def as_names(values: Any) -> Array:
    """An array of names: integers, booleans, or objects (whole floats become integers)."""
    if isinstance(values, pd.Index | pd.Series | pd.api.extensions.ExtensionArray):
        values = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.all(np.mod(array, 1) == 0):
        return array.astype(np.int64)
    if array.dtype.kind in "iub":
        return array.astype(np.int64) if array.dtype.kind == "i" else array
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind in "UTS":
        return array.astype(object)
    if array.ndim != 1:  # a list of tuples, say
        flat = np.empty(len(values), dtype=object)
        flat[:] = [tuple(value) for value in values]
        return flat
    return array


def unique_names(names: Array, role: str) -> Array:
    """``names`` themselves, unless one of them occurs twice."""
    repeated = pd.Index(names).duplicated()
    if repeated.any():
        raise AnnotationError(
            f"The {role} name {names[repeated.argmax()]!r} is declared twice.\n"
            f"  expected: each {role} once\n  fix:      remove the repetition"
        )
    return names


def positions(names: Array, wanted: Any) -> Ints:
    """Where each wanted name stands in ``names``, ``-1`` where it does not."""
    return pd.Index(names).get_indexer(pd.Index(as_names(wanted)))


def _encode_dense(array: Array) -> tuple[Array, Ints] | None:
    low, high = int(array.min()), int(array.max())
    if high - low + 1 > DENSE * max(len(array), 1024):
        return None
    shifted = array if low == 0 else array - low
    seen = np.zeros(high - low + 1, dtype=bool)
    seen[shifted] = True
    names = np.flatnonzero(seen) + low
    if len(names) == len(seen):
        return names, shifted.astype(np.int32, copy=False)
    rank = np.cumsum(seen, dtype=np.int32) - 1
    return names, rank[shifted]


def _encode_known(values: Any, role: str, names: Array) -> tuple[Array, Ints]:
    series = pd.Series(values)
    missing = series.isna().to_numpy()
    codes = pd.Index(unique_names(names, role)).get_indexer(pd.Index(series))
    bad = (codes < 0) & ~missing
    if bad.any():
        row = int(bad.argmax())
        raise AnnotationError.unknown(
            role,
            n_bad=int(bad.sum()),
            n_rows=len(series),
            first=f"row {row}: {role}={series.iloc[row]!r}",
            known=list(names),
            fix=f"declare it among the {role}s, or drop the rows that name it",
        )
    return names, codes.astype(np.int32)


def _sorted_order(names: Array) -> Ints:
    try:
        return np.argsort(names, kind="stable")
    except TypeError:  # names of several types, such as 1 and "1"
        keys: Sequence[tuple[str, str]] = [(type(name).__name__, str(name)) for name in names]
        return np.array(sorted(range(len(names)), key=keys.__getitem__), dtype=np.int64)
