"""Input handling shared by all ``fit`` methods: rows and columns by name, all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from crowdwise.annotations.names import as_names
from crowdwise.errors import AnnotationError, ParameterError, explain, listing
from crowdwise.io.recognize import SYNONYMS, is_name_of, normalize_name
from crowdwise.typing import Array, FeaturesLike, Ints

LEFT_OVER = ("", "Unnamed: 0", "__index_level_0__")  # columns of row numbers that pandas adds


def order_by_name(
    X: FeaturesLike,
    names: Array | None,
    role: str = "task",
    what: str = "X",
    *,
    needed: bool = False,
) -> Ints | None:
    """Match the rows of a frame or series to names by its index; None for anything else.

    An index with none of the names is ignored, unless it is ``needed``; one with only
    some of them, or some twice, is refused, even if it may be numbers of other rows.
    """
    if names is None or not isinstance(X, pd.DataFrame | pd.Series):
        return None
    return place_by_name(X.index, names, role, f"the index of {what}", needed=needed)


def place_by_name(
    index: pd.Index, names: Array, role: str, where: str, *, needed: bool = False
) -> Ints | None:
    """Return each name's position in an index; None if rows are to be used in order."""
    counted = _counts_rows(index) and index.name != role  # an index of this name has names
    wanted = pd.Index(as_names(names))
    if counted or index.equals(wanted):
        return None
    labels = pd.Index(as_names(index))
    again = labels.duplicated()
    once = labels[~again]
    place = once.get_indexer(wanted)
    if not needed and (place < 0).all():
        _refuse_other_type(once, wanted, role, where)
        return None
    missing, repeated = place < 0, np.isin(place, once.get_indexer(labels[again].unique()))
    for bad, how in ((missing, "missing from"), (repeated, "more than once in")):
        if bad.any():
            raise AnnotationError(
                explain(
                    f"{int(bad.sum()):,} of {len(names):,} {role} names are {how} {where}.",
                    first=f"{role} {listing(names[[bad.argmax()]])}",
                    expected=f"every {role} once",
                    fix=f"correct the names, or give an array in {role} order, as X.to_numpy()",
                )
            )
    return np.flatnonzero(~again)[place]


def _counts_rows(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)


def _refuse_other_type(labels: pd.Index, wanted: pd.Index, role: str, where: str) -> None:
    """Refuse names that are text here and numbers there, in another order."""
    text = labels.astype(str)
    if labels.dtype == wanted.dtype or not text.is_unique:
        return
    place = text.get_indexer(wanted.astype(str))
    fits = (place >= 0).all() if labels.dtype.kind in "iu" else (place >= 0).any()
    if fits and not np.array_equal(place, np.arange(len(labels))):
        at = int((place >= 0).argmax())
        raise AnnotationError(
            explain(
                f"The {role} names in {where} have a different type.",
                first=f"{role} {listing([wanted[at]])} is {listing([labels[place[at]]])} there",
                expected="names of one type, numbers or text",
                fix=f"convert them, or give an array in {role} order",
            )
        )


def column_names(X: FeaturesLike, role: str = "task", what: str = "X") -> Array | None:
    """Return the names of a frame's columns if all of them are text; else None.

    Columns that name the rows, or contain truths, are refused: they are not features.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    columns = list(frame.columns) if isinstance(frame, nw.DataFrame) else []
    _refuse_other_roles(columns, role, what)
    if not columns or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(columns, dtype=object)


def _refuse_other_roles(columns: Iterable[object], role: str, what: str) -> None:
    """Refuse columns of names, of pandas' row numbers, and of truths."""
    for name in columns:
        if is_name_of(name, role):
            fix = f"{what} = {what}.set_index({name!r}), or rename it if it is a feature"
        elif name in LEFT_OVER or normalize_name(name) in SYNONYMS["gold"]:
            fix = f"leave it out, or rename it if it is a feature: {what}.drop(columns=[{name!r}])"
        else:
            continue
        raise AnnotationError(
            explain(
                f"Column {name!r} of {what} does not look like a feature.",
                expected=f"columns of features only; the index of a frame names its {role}s",
                fix=fix,
            )
        )


def refuse_other_columns(names: Array | None, known: Array | None, what: str = "X") -> None:
    """Refuse columns with other names than in fit, or in another order."""
    if names is None or known is None or np.array_equal(names, known):
        return
    n = min(len(names), len(known))
    differ = names[:n] != known[:n]
    at = int(differ.argmax()) if differ.any() else n
    found, wanted = (repr(some[at]) if at < len(some) else "none" for some in (names, known))
    moved = sorted(names) == sorted(known)
    how = "are in another order than" if moved else "differ from those"
    raise ParameterError(
        explain(
            f"The columns of {what} {how} in fit.",
            first=f"column {at} is {found}, in fit it was {wanted}",
            expected=f"the columns {listing(known)}, in this order",
            fix=f"select them by name from {what}, or give an array if only the names differ",
        )
    )


def in_task_order(X: FeaturesLike, tasks: Array) -> FeaturesLike:
    """Return the same X, of any kind, with one row per task in order."""
    column_names(X)  # refuses columns that are not features
    if hasattr(X, "in_order"):  # rows on disk
        X = X.in_order(tasks)
    order = order_by_name(X, tasks)
    if order is not None:
        return X.iloc[order]
    if X is not None and n_rows(X) != len(tasks):
        refuse_other_rows(n_rows(X), tasks)
    return X


def in_order_of(X: FeaturesLike, values: Any, what: str) -> Any:
    """Return values of the rows of X, in their order if both have names: a series and a frame."""
    names = X.index if isinstance(X, pd.DataFrame) and not _counts_rows(X.index) else None
    order = order_by_name(values, names, "row", what) if names is not None else None
    return values if order is None else values.iloc[order]


def n_rows(X: FeaturesLike) -> int:
    """Return the number of rows of X, of any kind."""
    if np.isscalar(X) or getattr(X, "shape", None) == ():
        refuse_flat(())
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def refuse_width(found: int, expected: int) -> None:
    """Refuse another number of features than in fit."""
    if found != expected:
        raise AnnotationError(
            explain(
                f"X has {found:,} features.",
                expected=f"the {expected:,} features of fit",
                fix="prepare X in the same way as for fit",
            )
        )


def refuse_other_rows(found: int, tasks: Array) -> NoReturn:
    """Refuse another number of rows than there are tasks."""
    raise AnnotationError(
        explain(
            f"X has {found:,} rows, but there are {len(tasks):,} tasks.",
            expected="one row per task, in the order of annotations.tasks",
            fix="give a frame indexed by task, or declare all tasks: from_frame(…, tasks=…)",
        )
    )


def refuse_flat(shape: tuple[int, ...]) -> NoReturn:
    """Refuse features without rows or columns."""
    raise AnnotationError(
        explain(
            f"X has shape {shape}.",
            expected="two dimensions or more, with tasks as rows, and at least one column",
            fix="use X.reshape(-1, 1) for a single feature",
        )
    )


@contextmanager
def all_or_nothing(model: BaseEstimator) -> Iterator[None]:
    """Restore a model if learning fails."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise
