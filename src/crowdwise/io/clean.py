"""From a long table as a file holds it to annotations."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from crowdwise.annotations.frames import to_floats
from crowdwise.annotations.table import Annotations
from crowdwise.errors import AnnotationError, explain
from crowdwise.io.content import Long, Options
from crowdwise.io.values import as_coded, renamed, typed

NAMES = {"tasks": "task", "workers": "worker", "classes": "label"}


def build(
    long: Long, options: Options, names: Mapping[str, Any], repeats: str, where: str
) -> Annotations:
    """Give the columns their types, drop what is missing, and encode the rest."""
    long = _without_blank_rows(_with_types(_without_nesting(long, where)))
    long = _without_missing(long, options.missing)
    long = _with_times(long, where, asked=options.time is not None)
    long = _with_gold(long, asked=options.gold is not None)
    frame, declared = long.frame, {**long.names, **names}
    for key, known in names.items():
        if long.soft is None or key != "classes":
            frame = frame.assign(**{NAMES[key]: _as_declared(frame[NAMES[key]], known)})
    optional = {role: role for role in ("weight", "time", "gold") if role in frame}
    return Annotations.from_frame(
        frame, **optional, **declared, soft=long.soft, repeats=repeats, where=where,
        notes=long.notes,
    )  # fmt: skip


def _without_nesting(long: Long, where: str) -> Long:
    """Refuse lists and dicts in cells."""
    cells = {r: as_coded(c, r, where) for r, c in long.frame.items() if c.dtype == object}
    return replace(long, frame=long.frame.assign(**cells))


def _with_types(long: Long) -> Long:
    """Integers where a whole column of text is made of them; labels and gold alike."""
    frame, names = long.frame.copy(deep=False), dict(long.names)
    for key, role in (("tasks", "task"), ("workers", "worker")):
        if role in long.untyped and key in names:
            frame[role], own = typed(frame[role], pd.Series(names[key], dtype=object))
            names[key] = own.tolist()
        elif role in long.untyped:
            frame[role] = typed(frame[role])[0]
    if "label" in long.untyped:
        both = [role for role in ("label", "gold") if role in frame]
        for role, column in zip(both, typed(*(frame[role] for role in both)), strict=True):
            frame[role] = column
    return replace(long, frame=frame, names=names)


def _without_blank_rows(long: Long) -> Long:
    blank = long.frame[["task", "worker", "label"]].isna().all(axis=1).to_numpy(bool)
    return long.without(blank, "blank rows")


def _without_missing(long: Long, missing: Any) -> Long:
    if isinstance(missing, str):  # "auto": only empty cells, which are missing already
        return long
    label = renamed(long.frame["label"], lambda name: None if name in missing else name)
    return replace(long, frame=long.frame.assign(label=label))


def _with_times(long: Long, where: str, *, asked: bool) -> Long:
    if "time" not in long.frame:
        return long
    column = long.frame["time"]
    times = to_floats(column)
    if times is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a zone that is not known, say
            try:
                times = _as_times(as_coded(column))
            except (ValueError, TypeError, OverflowError, Warning) as error:
                return _no_times(long, where, error, asked)
    return replace(long, frame=long.frame.assign(time=times))


def _as_times(column: pd.Series) -> pd.Series:
    distinct = pd.to_datetime(pd.Series(column.cat.categories), utc=True, format="mixed")
    codes = column.cat.codes.to_numpy()
    return pd.Series(distinct.reindex(codes).to_numpy(), index=column.index)


def _no_times(long: Long, where: str, error: Exception, asked: bool) -> Long:
    if asked:
        raise AnnotationError(
            explain(
                f"{where} has times that cannot be read.",
                first=str(error).splitlines()[0],
                expected="numbers, or dates such as 2024-05-31T12:00:00",
            )
        ) from None
    note = "times left out: they cannot be read"
    return replace(long, frame=long.frame.drop(columns="time"), notes=(*long.notes, note))


def _with_gold(long: Long, *, asked: bool) -> Long:
    """Leave out gold that nobody asked for and that is not one label a task."""
    if asked or "gold" not in long.frame:
        return long
    known = long.frame.loc[long.frame["gold"].notna(), ["task", "gold"]].astype(object)
    clash = known.drop_duplicates().duplicated("task").any()
    in_use = long.frame["label"].dropna().isin(known["gold"].unique()).any() or not long.guessed
    if len(known) and not clash and in_use:
        return long
    why = "more than one for a task" if clash else "no label in use"
    notes = (*long.notes, f"gold left out: {why}") if len(known) else long.notes
    return replace(long, frame=long.frame.drop(columns="gold"), notes=notes)


def _as_declared(column: pd.Series, names: Any) -> pd.Series:
    """Values as the caller spells them: 1 for "1", or "1" for 1."""
    known = list(names)
    by_text = {str(name): name for name in known}
    exact = set(known)
    return renamed(column, lambda own: own if own in exact else by_text.get(str(own), own))
