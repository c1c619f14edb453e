"""Names on the outside, running numbers on the inside."""

from typing import Any

import numpy as np
import pandas as pd

from crowdwise.errors import AnnotationError, explain
from crowdwise.typing import Array, Ints

EXACT = 2.0**53  # floats below this hold every integer
DENSE = 4  # a span of integers this many times the number of rows is worth a lookup table


def encode(values: Any, role: str, names: Any = None) -> tuple[Array, Ints]:
    """Give every value a running number: ``(names, codes)``, ``-1`` where it is missing.

    Names come out sorted, so that the order of rows leaves no trace; or as given by
    ``names``, in which case any other value is refused.
    """
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        return _encode_categories(pd.Series(values), role, names)
    if names is not None:
        return _encode_known(values, role, np.asarray(as_names(names)))
    values = values if hasattr(values, "dtype") else pd.Series(values)
    array = np.asarray(values) if not isinstance(values, pd.Series) else values.to_numpy()
    if array.dtype.kind in "iu" and len(array):
        dense = _encode_dense(array)
        if dense is not None:
            return dense
    codes, uniques = pd.factorize(values)
    return _sorted(as_names(uniques), codes)


def as_names(values: Any) -> Array:
    """An array of names: integers, booleans, or objects (whole floats become integers)."""
    if isinstance(values, pd.Index | pd.Series | pd.api.extensions.ExtensionArray):
        values = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    array = np.asarray(values)
    if array.dtype.kind == "U" and not all(isinstance(value, str) for value in values):
        array = np.array(list(values), dtype=object)  # 1 and "1" stay apart
    if array.dtype.kind == "f" and np.all(np.isfinite(array)):
        whole = np.all((np.abs(array) < EXACT) & (np.mod(array, 1) == 0))
        return array.astype(np.int64) if whole else array
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
    """``names`` themselves, unless one of them is missing or occurs twice."""
    missing = pd.isna(names)
    if missing.any():
        raise AnnotationError(
            explain(
                f"{int(missing.sum()):,} of {len(names):,} {role} names are missing.",
                first=f"number {int(missing.argmax())}",
                expected=f"a name for every {role}",
            )
        )
    if _ascending(names):
        return names
    repeated = pd.Index(names).duplicated()
    if repeated.any():
        raise AnnotationError(
            f"The {role} name {names[repeated.argmax()]!r} is declared twice.\n"
            f"  expected: each {role} once\n  fix:      remove the repetition"
        )
    return names


def _ascending(names: Array) -> bool:
    """Whether each name is greater than the one before, and so none occurs twice."""
    try:
        return bool(np.all(names[:-1] < names[1:]))
    except TypeError:
        return False


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


def _encode_categories(values: pd.Series, role: str, names: Any) -> tuple[Array, Ints]:
    """Encode each category once; categories that no row has are left out."""
    codes = values.cat.codes.to_numpy()
    own = as_names(values.cat.categories)
    used = np.bincount(codes[codes >= 0], minlength=len(own)) > 0
    if not used.all():
        codes = np.append(np.cumsum(used) - 1, -1)[codes]
        own = own[used]
    if names is None:
        return _sorted(own, codes)
    found, place = _encode_known(own, role, np.asarray(as_names(names)))
    return found, np.append(place, np.int32(-1))[codes]


def _sorted(names: Array, codes: Ints) -> tuple[Array, Ints]:
    """The names in order, and the codes that go with them; -1 stays -1."""
    order = _sorted_order(names)
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    rank[-1] = -1  # where a missing value's code of -1 looks
    return names[order], rank[codes]


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
    if names.dtype != object:
        return np.argsort(names, kind="stable")
    keys: list[Any] = names.tolist()
    try:  # faster than numpy on objects
        order = sorted(range(len(keys)), key=keys.__getitem__)
    except TypeError:  # names of several types, such as 1 and "1"
        keys = [(type(name).__name__, str(name)) for name in keys]
        order = sorted(range(len(keys)), key=keys.__getitem__)
    return np.array(order, dtype=np.int64)
