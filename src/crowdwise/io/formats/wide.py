"""A wide table, one row a task and one column a worker."""

from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from crowdwise.annotations import Annotations
from crowdwise.annotations.wide import find_scale
from crowdwise.errors import AnnotationError, explain
from crowdwise.io.content import Content, Long, Options, Table
from crowdwise.io.formats.matrix import long_of
from crowdwise.io.recognize import SYNONYMS, normalize_name, recognize_columns, require_columns
from crowdwise.io.values import as_coded, typed

UNNAMED = ("", "Unnamed: 0", "index")
MOST_LABELS = 100  # more distinct labels in the first rows are no labels


def matches(content: Content) -> bool:
    """Whether columns that are not the task share their values, as workers do."""
    return isinstance(content, Table) and not _long_words(content) and _shares(content)


def may_be_wide(table: Table) -> bool:
    """Whether the names of columns leave it open, or what is in them speaks for workers.

    Some words for a worker or a label, such as "model", may be a worker's own name.
    """
    words, task = _long_words(table), _task(table, Options())
    if len(words) != 1:
        return not words
    once = task is None or table.frame([task])[task].is_unique
    return once and _shares(table)


def _long_words(content: Content) -> set[str]:
    """The roles that only a long table has a column for."""
    return {"worker", "label"} & recognize_columns(content.columns, {"task": content.task}).keys()


def _shares(table: Table) -> bool:
    values = (_values(table, name) for name in _workers(table, Options()))
    known = [own for own in values if own]
    times = Counter(value for own in known for value in own)
    shared = all(any(times[value] > 1 for value in own) for own in known)
    return len(known) > 1 and shared and len(times) <= MOST_LABELS


def parse(content: Table, options: Options) -> Long:
    """One row for each cell with a label."""
    task, gold, workers = (
        _task(content, options),
        _gold(content, options),
        _workers(content, options),
    )
    named = {role: name for role, name in (("task", task), ("gold", gold)) if name is not None}
    if not workers and options.worker is None:
        _refuse(content)
    worker = next(iter(workers), options.worker or "")
    require_columns(named | {"worker": worker}, content.columns, content.name, ())
    frame = content.frame([*workers, *named.values()])
    labels = _columns(content, frame, [*workers, gold] if gold else workers, "label")
    grid, scale = frame[workers], find_scale(frame[workers]) is not None
    if not scale:
        grid = pd.DataFrame(dict(enumerate(labels[: len(workers)]))).to_numpy()
    own = np.arange(len(frame)) if task is None else _columns(content, frame, [task], "task")[0]
    titles = dict(zip(content.columns, content.titles, strict=True))
    names = [titles[worker] for worker in workers]
    built = Annotations.from_matrix(grid, options.missing, tasks=own, workers=names)
    whence = "row number" if task is None else f"column {task!r}"
    long = long_of(built, (f"task from {whence}",), scale=scale)
    if gold is None:
        return long
    truths = labels[-1].array.take(built.task)
    notes = (*long.notes, f"gold from column {gold!r}")
    return replace(long, frame=long.frame.assign(gold=truths), notes=notes, guessed=True)


def _refuse(table: Table) -> NoReturn:
    raise AnnotationError(
        explain(
            f"{table.name} has no columns left for workers.",
            found=", ".join(table.columns),
            expected="one column a worker, beside those for the task and the truth",
            fix="name them: worker='rater_*', or task=, worker=, label= of a long table",
        )
    )


def _columns(table: Table, frame: pd.DataFrame, names: list[str], role: str) -> list[pd.Series]:
    """Columns of one role, all of one type: numbers, or else objects."""
    numbers = all(map(is_numeric_dtype, frame[names].dtypes))
    if numbers and not table.untyped:
        return [frame[name] for name in names]
    columns = [as_coded(frame[name], role, table.name) for name in names]
    plain = typed(*columns) if table.untyped else columns
    return [column.astype(object) for column in plain]


def _task(table: Table, options: Options) -> str | None:
    """The column of task names: as given, recognised, or the first if nothing in it repeats.

    In one row nothing can repeat, so that the first column tells nothing there.
    """
    known = recognize_columns(table.columns, {"task": options.task or table.task}).get("task")
    first = next(iter(table.columns), "")
    if known is not None or first in UNNAMED:
        return first if known is None else known
    own = _values(table, first)
    if len(own) < 2:
        return None
    others = set().union(*(_values(table, name) for name in table.columns[1:]))
    return first if len(own) == len(table.sample) and not own & others else None


def _gold(table: Table, options: Options) -> str | None:
    return recognize_columns(table.columns, {"gold": options.gold}).get("gold")


def _workers(table: Table, options: Options) -> list[str]:
    """The columns of workers: those that a pattern such as ``rater_*`` names, or the rest."""
    if options.worker:
        return [name for name in table.columns if fnmatchcase(name, options.worker)]
    aside = {_task(table, options), _gold(table, options), table.task}
    about = set(SYNONYMS["task"])  # a text beside its id
    return [
        name for name in table.columns if name not in aside and normalize_name(name) not in about
    ]


def _values(table: Table, name: str) -> set[Any]:
    return {str(cell) for row in table.sample if (cell := row.get(name)) is not None}
