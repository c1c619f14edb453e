"""A long table, one row per annotation: columns task, worker, label or words like these."""

from dataclasses import replace

import pandas as pd

from crowdwise.annotations.grouping import WORDS
from crowdwise.errors import listing
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Table
from crowdwise.io.recognize import (
    REQUIRED,
    Format,
    list_candidates,
    recognize_columns,
    require_columns,
)
from crowdwise.io.values import parse_names

SOFT = "proba_"
MOST_NAMES = 20  # columns listed in a note
ABOUT = ("family", "kind", "prompt", "price")  # about workers


def matches(document: Table) -> bool:
    """Return whether there are columns for the task, the worker and the label."""
    found = recognize_columns(document.columns, {"task": document.task})
    return set(REQUIRED) <= found.keys()


def parse(document: Table, options: ReadOptions) -> LongTable:
    """Read the columns as they are named, or as the caller says."""
    roles = recognize_columns(document.columns, {"task": document.task} | options.columns)
    require_columns(roles, document.columns, document.name)
    if options.task is None and document.task is None:
        roles["task"] = _find_repeating(document, roles)
    soft = [name for name in document.columns if name.startswith(SOFT)]
    long = LongTable.from_columns(document, roles | {name: name for name in soft})
    facts = _find_facts(document, roles)
    used = {*roles.values(), *soft, *([] if facts is None else facts)}
    left = [name for name in document.columns if name and name not in used]
    notes = (*long.notes, f"columns left out: {listing(left, MOST_NAMES)}") if left else long.notes
    long = replace(long, guessed=True, about=facts, notes=notes)
    if not soft:
        return long
    classes = [name.removeprefix(SOFT) for name in soft]
    names = parse_names(classes) if document.untyped else classes
    return replace(long, soft=dict(zip(names, soft, strict=True)))


def _find_facts(table: Table, roles: dict[str, str]) -> pd.DataFrame | None:
    """Collect other columns that say one thing about each worker."""
    names = [name for name in ABOUT if name in table.columns and name not in roles.values()]
    if not names:
        return None
    rows = table.frame([roles["worker"], *names]).astype(object).drop_duplicates()
    rows[names] = rows[names].where(~rows[names].isin(WORDS))
    by_worker = rows.dropna(subset=roles["worker"]).groupby(roles["worker"], sort=False)
    kept = [name for name in names if (by_worker[name].nunique() < 2).all()]
    return by_worker[kept].first() if kept else None


def _find_repeating(table: Table, roles: dict[str, str]) -> str:
    """Find the first task column with repeated values: row numbers are not tasks."""
    taken = {name for role, name in roles.items() if role != "task"}
    possible = [name for name in list_candidates("task", table.columns) if name not in taken]
    for name in possible if len(possible) > 1 else []:
        if table.frame([name])[name].duplicated().any():
            return name
    return roles["task"]


FORMAT = Format("long", __doc__, Table, parse, matches=matches)
