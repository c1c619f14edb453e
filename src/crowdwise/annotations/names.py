"""Names of tasks, workers and classes, and their numbers."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from crowdwise.compiled import find
from crowdwise.errors import AnnotationError, explain, listing, plural
from crowdwise.typing import Array, Ints, Names

EXACT = 2.0**53  # below this, floats represent every integer
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")  # not 5_20 or 1e5, which are names
MOST_COMPARED = 100_000  # names that are checked for similar ones
MOST_SORTED = 1_000  # names by Python alone
JOINTS = (";", ",", "|", "/", "+", "&", "\n", "\t")  # separators of joined labels
LIST = re.compile(r"""\s*(\[\s*(["'].*["']|[^"']*,.*)?\s*\]|\{.*:.*\})\s*""", re.S)  # or an object
DENSE = 4  # a lookup table pays off if integers span at most this many times the rows
is_whole_number = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0)?").fullmatch

SIGNS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # the last four: the same signs in full width
# Where a formula starts: at the beginning of a cell, and after a separator in countries whose
# spreadsheets use ; between cells, whatever quotes are around it.
_PLACE, _SIGN = "(?:^|(?<=[;\t\r\n]))", f"'*[{re.escape(SIGNS)}]."
FORMULA = re.compile(f"{_PLACE}(?={_SIGN})", re.S)
GUARDED = re.compile(f"{_PLACE}'(?={_SIGN})", re.S)
is_number = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?").fullmatch


class Truth(str):
    """The name of a boolean if numbers are names too."""

    __slots__ = ()


TRUTHS = {bool, np.bool_, Truth}


def encode(values: Names, role: str, names: Names | None = None) -> tuple[Array, Ints]:
    """Number the values: ``(names, codes)``, with code ``-1`` for missing ones.

    Names are sorted, so that the order of rows does not matter; or they are given by
    ``names``, and any other value is refused. The categories of labels that are an ordered
    categorical are a scale: all of them are names, in their own order.
    """
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        return _encode_categories(pd.Series(values), role, names)
    if names is not None:
        return _encode_known(pd.Series(values), role, np.asarray(as_names(names)))
    values = values if hasattr(values, "dtype") else pd.Series(values)
    if not isinstance(values.dtype, pd.StringDtype):  # whose rows need not become objects
        array = np.asarray(values) if not isinstance(values, pd.Series) else values.to_numpy()
        if array.dtype.kind in "iu" and len(array):
            dense = _encode_dense(array)
            if dense is not None:
                return dense
        if values.dtype == object:
            values = part_booleans(array)
    with refuse_lists(values, role):
        codes, uniques = pd.factorize(values)
    return _sort_names(as_names(uniques), codes)


def as_names(values: Names) -> Array:
    """Return an array of names: integers, booleans, or objects (whole floats become integers)."""
    if isinstance(values, pd.Index | pd.Series | pd.api.extensions.ExtensionArray):
        values = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    array = np.asarray(values)
    if array.ndim == 0:
        raise AnnotationError(
            explain(
                f"A {type(values).__name__} is not a list of names.",
                first=repr(values),
                expected="a list or an array, with one entry per name",
                fix="put it in a list",
            )
        )
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        # Objects keep 1 and "1" apart, as well as "a\0" and "a".
        array = np.array(list(values), dtype=object)
    if array.dtype.kind == "f" and np.all(np.isfinite(array)):
        whole = np.all((np.abs(array) < EXACT) & (np.mod(array, 1) == 0))
        return array.astype(np.int64) if whole else array
    if array.dtype.kind in "iub":
        return array.astype(np.int64) if array.dtype.kind == "i" else array
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind in "UTS":
        return array.astype(object)
    if array.ndim != 1:  # such as a list of tuples
        flat = np.empty(len(values), dtype=object)
        rows: Iterable[Iterable[object]] = values  # type: ignore[assignment]
        flat[:] = list(map(tuple, rows))
        return flat
    return array


def unmask(values: ArrayLike) -> Array:
    """Return an array with None in place of values hidden by a NumPy mask."""
    if isinstance(values, np.ma.MaskedArray):
        shown = np.array(values.data, dtype=object)
        shown[np.ma.getmaskarray(values)] = None
        return shown
    return np.asarray(values)


def require_unique(names: Array, role: str) -> Array:
    """Return ``names``, unless one of them is missing or occurs twice."""
    missing = pd.isna(names)
    if missing.any():
        raise AnnotationError(
            explain(
                f"The name of {int(missing.sum()):,} of {plural(len(names), role)} is missing.",
                first=f"number {int(missing.argmax())}",
                expected=f"a name for every {role}",
                fix="name them, or drop their rows",
            )
        )
    if _is_ascending(names):
        return names
    repeated = pd.Index(names).duplicated()
    if repeated.any():
        raise AnnotationError(
            f"The {role} name {listing(names[repeated][:1])} is declared twice.\n"
            f"  expected: each {role} once\n  fix:      remove one of them"
        )
    return names


def _is_ascending(names: Array) -> bool:
    """Return whether each name is greater than the one before, so that none occurs twice."""
    try:
        return bool(np.all(names[:-1] < names[1:]))
    except TypeError:
        return False


def locate(names: Names, wanted: Names) -> Ints:
    """Return the position of each wanted name in ``names``, ``-1`` if it is not there."""
    return pd.Index(names).get_indexer(pd.Index(as_names(wanted)))


def show_cell(column: pd.Series, row: int, role: str) -> str:
    """Show the row of a value and the value itself, for an error."""
    return f"row {row + 1:,}: {role}={column.iloc[row : row + 1].tolist()[0]!r}"


@contextmanager
def refuse_lists(values: Iterable[object], role: str) -> Iterator[None]:
    """Turn the error about a value that cannot be a name into one that shows it."""
    try:
        yield
    except TypeError:
        bad = [(row, value) for row, value in enumerate(values, 1) if not is_hashable(value)]
        if not bad:
            raise
        raise AnnotationError(
            explain(
                f"The {role} is a list or a dict in {plural(len(bad), 'row')}.",
                first=f"row {bad[0][0]:,}: {role}={bad[0][1]!r}",
                expected=f"one number or word as the {role}",
                fix="use one entry of each, or join them into one word",
            )
        ) from None


def note_spaces(names: Array, what: str) -> tuple[str, ...]:
    """Note names that differ only by spaces, case or spelling, if there are any."""
    if not 0 < len(names) <= MOST_COMPARED or names.dtype.kind in "iufb":
        return ()
    own = names.tolist()
    (n_spaces, _), (n_alike, shown) = (_find_alike(own, spell) for spell in (_strip, _simplify))
    if not n_alike:
        return ()
    how = "by surrounding spaces" if n_spaces == n_alike else "in case or spelling"
    how = "in case, spaces or spelling" if 0 < n_spaces < n_alike else how
    return (f"{n_alike:,} {what} differ only {how}, such as {shown} (kept apart)",)


def _find_alike(names: list[Any], spell: Callable[[object], object]) -> tuple[int, str]:
    """Count names that are spelled like another one, and show the first two."""
    plain = [spell(name) for name in names]
    times = Counter(plain)
    if len(times) == len(names):
        return 0, ""
    alike = [place for place, text in enumerate(plain) if times[text] > 1]
    first = [names[place] for place in alike if plain[place] == plain[alike[0]]]
    return len(alike), " and ".join(map(repr, first[:2]))


def _strip(name: object) -> object:
    return name.strip() if isinstance(name, str) else (type(name), name)


def _simplify(name: object) -> object:
    """Normalize a name: case, spaces, letter forms, invisible signs and number formats."""
    text = str(name)
    if not text.isascii():
        seen = (sign for sign in text if unicodedata.category(sign) != "Cf")
        text = unicodedata.normalize("NFKC", "".join(seen))
    text = text.strip().casefold()
    return Decimal(text) if NUMBER.fullmatch(text) else text


def note_joined(classes: Array) -> tuple[str, ...]:
    """Note labels that are lists in text, or look like several others joined by a separator."""
    if not len(classes) <= MOST_COMPARED or classes.dtype.kind in "iufb":
        return ()
    lists = [name for name in classes.tolist() if isinstance(name, str) and LIST.fullmatch(name)]
    if lists:
        return (f"labels that are lists, written as text: {len(lists):,}, such as {lists[0]!r}",)
    known = {_simplify(name) for name in classes.tolist() if isinstance(name, str)}
    several = [
        name
        for name in classes.tolist()
        if isinstance(name, str)
        and any(
            len(parts := name.split(sign)) > 1 and all(_simplify(part) in known for part in parts)
            for sign in JOINTS
        )
    ]
    if not several:
        return ()
    shown = plural(len(several), "label reads", "labels read")
    return (f"{shown} like several others together, such as {several[0]!r}",)


def _encode_dense(array: Array) -> tuple[Array, Ints] | None:
    low, high = int(array.min()), int(array.max())
    if high - low + 1 > DENSE * max(len(array), 1024) or high > np.iinfo(np.int64).max:
        return None
    wide = array if array.itemsize >= 4 else array.astype(np.int32)  # high - low must fit
    shifted = wide if low == 0 else wide - low
    seen = np.zeros(high - low + 1, dtype=bool)
    seen[shifted] = True
    names = np.flatnonzero(seen) + low
    if len(names) == len(seen):
        return names, shifted.astype(np.int32, copy=False)
    rank = np.cumsum(seen, dtype=np.int32) - 1
    return names, rank[shifted]


def _encode_categories(values: pd.Series, role: str, names: Names | None) -> tuple[Array, Ints]:
    """Encode each category once; categories without rows are dropped, unless on a scale."""
    codes = values.cat.codes.to_numpy()
    own = as_names(values.cat.categories)
    if names is not None:
        known = require_unique(np.asarray(as_names(names)), role)
        found = np.append(locate(known, own), -1)[codes].astype(np.int32)
        return known, _require_known(found, values, role, known)
    if role == "label" and values.cat.ordered:
        return own, codes.astype(np.int32)
    used = np.zeros(len(own) + 1, dtype=bool)
    used[codes] = True
    used = used[:-1]  # without those of a missing value, whose code is -1
    if not used.all():
        codes = np.append(np.cumsum(used) - 1, -1)[codes]
        own = own[used]
    return _sort_names(own, codes)


def _sort_names(names: Array, codes: Ints) -> tuple[Array, Ints]:
    """Sort the names, and adjust the codes; -1 stays -1."""
    if _is_ascending(names):
        return names, codes.astype(np.int32, copy=False)
    order = _sort_order(names)
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    rank[-1] = -1  # the code -1 of a missing value selects this entry
    return names[order], rank[codes]


def _encode_known(values: pd.Series, role: str, names: Array) -> tuple[Array, Ints]:
    with refuse_lists(values, role):
        codes = pd.Index(require_unique(names, role)).get_indexer(pd.Index(values))
    return names, _require_known(codes.astype(np.int32), values, role, names)


def _require_known(codes: Ints, values: pd.Series, role: str, names: Array) -> Ints:
    """Return the codes, unless a value that is not missing has none."""
    bad = (codes < 0) & values.notna().to_numpy()
    if bad.any():
        row = int(bad.argmax())
        raise AnnotationError.unknown(
            role,
            n_bad=int(bad.sum()),
            n_rows=len(values),
            first=show_cell(values, row, role),
            known=list(names),
            fix=f"declare it among the {role}s, or drop the rows that name it",
        )
    return codes


def _sort_order(names: Array) -> Ints:
    if names.dtype != object:
        return np.argsort(names, kind="stable")
    keys = list(names.tolist())
    sort_texts = find("sort_names") if len(keys) > MOST_SORTED else None
    if sort_texts is not None and (order := sort_texts(keys)) is not None:
        return np.frombuffer(order, dtype=np.uint32)
    try:  # faster than numpy on objects
        order = sorted(range(len(keys)), key=keys.__getitem__)
    except TypeError:  # names of several types, such as 1 and "1"
        keys = [(type(name).__name__, str(name)) for name in keys]
        order = sorted(range(len(keys)), key=keys.__getitem__)
    return np.array(order, dtype=np.int64)


def part_booleans(values: Array) -> Array:
    """Return the values, with booleans as "true" and "false" if 1 or 0 occur too.

    In Python, True equals 1. Text that reads the same is refused beside them.
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
                expected="different names for different values",
                fix="write booleans in one way, all as text or all as numbers",
            )
        )
    apart = values.copy()
    apart[truth] = [name_truth(value) for value in values[truth]]
    return apart


def name_truth(value: object) -> object:
    """Return the name of a boolean; anything else is unchanged."""
    return Truth(str(value).lower()) if type(value) in TRUTHS else value


def is_hashable(value: object) -> bool:
    """Return whether a value can be a name; lists and dicts cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_whole(text: object) -> bool:
    """Return whether a value is text for a whole number."""
    return isinstance(text, str) and is_whole_number(text) is not None


def parse_whole(text: str) -> int:
    return int(text.removesuffix(".0"))


def guard(text: str) -> str:
    """Return the text in its CSV form.

    >>> guard("=1+1"), guard("'=1+1"), guard("-1.5"), guard("+"), guard("ann"), guard("a;=b")
    ("'=1+1", "''=1+1", '-1.5', '+', 'ann', "a;'=b")
    """
    return text if is_number(text) else FORMULA.sub("'", text)


def unguard(texts: list[Any]) -> list[Any]:
    """Return the texts of one column as they were before they were guarded.

    A column with an unguarded formula was not written by this rule, and is not changed.
    """
    likely = texts if set(map(type, texts)) == {str} else [t for t in texts if isinstance(t, str)]
    if "'" not in "".join(likely) or not any(map(GUARDED.search, likely)):  # quick for many
        return texts
    plain = [GUARDED.sub("", text) if isinstance(text, str) else text for text in texts]
    pairs = zip(plain, texts, strict=True)
    ours = all(guard(own) == text for own, text in pairs if isinstance(text, str))
    return plain if ours else texts
