"""A wide table, one row a task and one column a worker."""

from dataclasses import replace
from typing import Any

import numpy as np

from crowdwise.data.columns import SYNONYMS, plain, recognise
from crowdwise.data.content import Content, Long, Options, Table
from crowdwise.data.formats.matrix import long_of
from crowdwise.data.values import as_coded, typed
from crowdwise.data.wide import from_matrix

UNNAMED = ("", "Unnamed: 0", "index")
MOST_LABELS = 100  # more distinct labels in the first rows are no labels


def matches(content: Content) -> bool:
    """Whether columns that are not the task share their values, as workers do."""
    named = {"worker", "label"} & recognise(content.columns, {}).keys()
    if named or not isinstance(content, Table):
        return False
    values = [_values(content, name) for name in _workers(content, Options())]
    known = [own for own in values if own]
    shared = all(any(own & other for other in known if other is not own) for own in known)
    return len(known) > 1 and shared and len(set().union(*known)) <= MOST_LABELS


def parse(content: Table, options: Options) -> Long:
    """One row for each cell with a label."""
    task, gold = _task(content, options), _gold(content, options)
    workers = _workers(content, options)
    content.refuse_twins(workers)
    extra = [name for name in (task, gold) if name is not None]
    frame = content.frame([*workers, *extra])
    labelled = [*workers, gold] if gold else workers
    labels = [as_coded(frame[name], "label", content.name) for name in labelled]
    if content.untyped:
        labels = typed(*labels)
    grid = np.column_stack([column.astype(object) for column in labels[: len(workers)]])
    own = np.arange(len(frame)) if task is None else as_coded(frame[task], "task", content.name)
    if content.untyped and task is not None:
        own = typed(own)[0]
    built = from_matrix(grid, options.missing, tasks=own, workers=workers)
    long = long_of(built, (f"task from {'row number' if task is None else f'column {task!r}'}",))
    if gold is None:
        return long
    column = labels[-1].array.take(built.task)
    note = f"gold from column {gold!r}"
    frame, notes = long.frame.assign(gold=column), (*long.notes, note)
    return replace(long, frame=frame, notes=notes, guessed=True)


def _task(table: Table, options: Options) -> str | None:
    """The column of task names: as given, recognised, or the first if nothing in it repeats."""
    known = recognise(table.columns, {"task": options.task}).get("task")
    first = next(iter(table.columns), "")
    if known is not None or first in UNNAMED:
        return first if known is None else known
    own = _values(table, first)
    others = set().union(*(_values(table, name) for name in table.columns[1:]))
    return first if own and len(own) == len(table.sample) and not own & others else None


def _gold(table: Table, options: Options) -> str | None:
    return recognise(table.columns, {"gold": options.gold}).get("gold")


def _workers(table: Table, options: Options) -> list[str]:
    aside = {_task(table, options), _gold(table, options)}
    about = [name for name in table.columns if plain(name) in SYNONYMS["task"]]
    return [name for name in table.columns if name not in aside and name not in about]


def _values(table: Table, name: str) -> set[Any]:
    return {str(cell) for row in table.sample if (cell := row.get(name)) is not None}
