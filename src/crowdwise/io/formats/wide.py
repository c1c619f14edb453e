"""A wide table, one row per task and one column per worker."""

import warnings
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NoReturn

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from crowdwise.annotations import Annotations
from crowdwise.annotations.grouping import is_word, note_words
from crowdwise.annotations.names import NUMBER, is_whole, parse_whole
from crowdwise.annotations.wide import columns_from_matrix, find_scale
from crowdwise.errors import AnnotationError, explain, listing, plural
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Table
from crowdwise.io.recognize import (
    REQUIRED,
    SYNONYMS,
    Format,
    normalize_name,
    recognize_columns,
    require_columns,
)
from crowdwise.io.triples import refuse_triples, sounds_like
from crowdwise.io.values import blank_words, encode_column, parse_numbers
from crowdwise.typing import Array

UNNAMED = ("", "Unnamed: 0", "index")
MOST_NAMES = 20  # columns listed in a note
SOME_LABELS = 3  # fewer labels that are in no other column may be due to chance
IF = "if each row is a task, name the format: wide"
MOST_LABELS = 100  # more distinct values than this in the first rows are not labels
# Columns made from those of the workers.
SUMMARIES = (
    "majority", "majorityvote", "majoritylabel", "consensus", "consensuslabel", "final",
    "finallabel", "finalanswer", "aggregated", "aggregatedlabel", "adjudicated", "adjudication",
    "total", "sum", "mean", "average", "avg", "median", "mode", "count", "nvotes", "nlabels",
    "nannotators", "agreement", "confidence",
)  # fmt: skip


def matches(document: Table) -> bool:
    """Return whether columns other than the task share values, as workers do."""
    return not _find_long_roles(document) and _share_values(document)


def may_be_wide(table: Table) -> bool:
    """Return whether column names leave it open, or the values look like workers' labels.

    Some words for a worker or a label, such as "model", may be a worker's own name.
    """
    words, task = _find_long_roles(table), _find_task(table, ReadOptions())
    if len(words) != 1:
        return not words
    once = task is None or table.frame([task])[task].is_unique
    return once and _share_values(table)


def _find_long_roles(document: Table) -> set[str]:
    """Return the roles that only a long table has columns for."""
    return {"worker", "label"} & recognize_columns(document.columns, {"task": document.task}).keys()


def _share_values(table: Table) -> bool:
    values = (_sample_values(table, name) for name in _find_workers(table, ReadOptions()))
    known = [own for own in values if own]
    times = Counter(value for own in known for value in own)
    shared = all(any(times[value] > 1 for value in own) for own in known)
    return len(known) > 1 and shared and len(times) <= MOST_LABELS


def parse(document: Table, options: ReadOptions) -> LongTable:
    """Return one row for each cell with a label."""
    task, gold = _find_task(document, options), _find_gold(document, options)
    if task is not None and options.task is None:
        _refuse_rows_of_workers(task, document.name)
    workers = _find_workers(document, options)
    named = {role: name for role, name in (("task", task), ("gold", gold)) if name is not None}
    if not workers and options.worker is None:
        _refuse_no_workers(document)
    worker = next(iter(workers), options.worker or "")
    require_columns(named | {"worker": worker}, document.columns, document.name, ())
    frame = document.frame([*workers, *named.values()])
    cells = [*workers, gold] if gold else workers
    labels, words = _take_columns(document, frame, cells, "label", options.words)
    grid, scale = frame[workers], find_scale(frame[workers]) is not None
    if not scale:
        grid = pd.DataFrame(dict(enumerate(labels[: len(workers)]))).to_numpy()
    own = np.arange(len(frame))
    if task is not None:
        own = _take_columns(document, frame, [task], "task")[0][0]
    titles = dict(zip(document.columns, document.titles, strict=True))
    names = [titles[worker] for worker in workers]
    if not options.named and options.worker is None:
        _refuse_no_names(document, workers, labels[: len(workers)])
        _refuse_transposed(own, names, document.name)
    columns = columns_from_matrix(grid, options.missing, tasks=own, workers=names)
    built = Annotations.from_columns(columns)  # words were handled already
    if options.worker is None:
        warn_odd_columns(built, document.name)
    notes = (*_note_columns(document, workers, task, gold), *note_words(words))
    long = LongTable.from_annotations(built, notes, scale=scale)
    if gold is None:
        return long
    truths = labels[-1].array.take(built.task)
    return replace(long, frame=long.frame.assign(gold=truths), guessed=True)


def _note_columns(
    table: Table, workers: list[str], task: str | None, gold: str | None
) -> tuple[str, ...]:
    """Note how each column was used, or that it was not."""
    left = [name for name in table.columns if name not in {*workers, task, gold}]
    whence = "row number" if task is None else f"column {task!r}"
    n_workers = plural(len(workers), "column")
    notes = [f"task from {whence}", f"workers from {n_workers}: {listing(workers, MOST_NAMES)}"]
    notes += [f"gold from column {gold!r}"] if gold else []
    notes += [f"columns left out: {listing(left, MOST_NAMES)}"] if left else []
    return tuple(notes)


def warn_odd_columns(built: Annotations, where: str, role: str = "worker") -> None:
    """Warn about columns that share no label with any other, and may have another role."""
    codes, names = (built.worker, built.workers) if role == "worker" else (built.task, built.tasks)
    n_classes = max(built.n_classes, 1)
    pairs = np.unique(codes.astype(np.int64) * n_classes + built.label)
    column, label = np.divmod(pairs, n_classes)
    shared = np.bincount(label, minlength=n_classes)[label] > 1
    often = np.flatnonzero(np.bincount(codes, minlength=len(names)) >= SOME_LABELS)
    strange = np.setdiff1d(often, column[shared])
    if len(strange) and len(np.unique(column)) > 1:
        first = built.classes[label[column == strange[0]]]
        fact = f"{where} has columns of labels that no other column has, which may not be {role}s"
        like = {"worker": "rater_*", "task": "Image *"}[role]
        warnings.warn(
            explain(
                f"{fact}: {listing(names[strange])}.",
                first=f"{listing(names[strange[:1]])} holds {listing(first, 3)}",
                expected=f"columns of {role}s that use the same labels",
                fix=f"name the {role} columns: {role}='{like}' in Python, --{role} '{like}' "
                "in a shell; or leave out the others",
            ),
            stacklevel=2,
        )


def _refuse_no_workers(table: Table) -> NoReturn:
    raise AnnotationError(
        explain(
            f"{table.name} has no columns left for workers.",
            found=", ".join(table.columns),
            expected="one column per worker, beside those for the task and the truth",
            fix="name them: worker='rater_*', or task=, worker=, label= of a long table",
        )
    )


def _refuse_no_names(table: Table, workers: list[str], labels: list[pd.Series]) -> None:
    """Refuse a first line that may be data, and unnamed columns that may be a long table's."""
    names = [name for name in table.columns if name not in ("", table.task)]
    numbers = [name.removeprefix("column_") for name in names]  # as polars names them
    counted = any(numbers == [str(first + k) for k in range(len(names))] for first in (0, 1))
    if counted and len(names) == len(REQUIRED):
        cells = table.frame(names).astype(object).apply(pd.to_numeric, errors="coerce")
        refuse_triples(cells.to_numpy(), table.name, f"name its columns {listing(REQUIRED)}; {IF}")
    if not table.untyped or counted or "" in table.columns:  # pandas leaves out an index's name
        return
    known = {str(label) for column in labels for label in column.dropna().unique()}
    if all(map(NUMBER.fullmatch, names)) or known.issuperset(workers):
        raise AnnotationError(
            explain(
                f"The first line of {table.name} may be data: its cells read like those below.",
                first=listing(names),
                expected="the names of the columns in the first line",
                fix="add a line of names, such as task,worker,label; if these are the names of "
                "workers, name the format: wide",
            )
        )


def _refuse_transposed(tasks: Array, workers: list[object], where: str) -> None:
    """Refuse a table whose columns are named like tasks, or its rows like workers."""
    rows, columns = tasks.tolist(), list(workers)
    turned = any(
        sounds_like(own, role) and not sounds_like(other, role)
        for own, other, role in ((columns, rows, "task"), (rows, columns, "worker"))
    )
    if turned:
        raise AnnotationError(
            explain(
                f"{where} seems to have one row per worker, and one column per task.",
                found=f"rows {listing(rows, 3)}; columns {listing(columns, 3)}",
                expected="one row per task, and one column per worker",
                fix="transpose it (frame.T); if rows are tasks, say which columns are workers: "
                "worker='*' in Python, --worker '*' in a shell",
            )
        )


def _refuse_rows_of_workers(task: str, where: str) -> None:
    """Refuse a table whose rows are named by a word for workers."""
    if normalize_name(task) in SYNONYMS["worker"]:
        raise AnnotationError(
            explain(
                f"The rows of {where} are named {task!r}, like workers.",
                expected="one row per task, and one column per worker",
                fix=f"transpose it (frame.T); if they are tasks, name the column: task={task!r}",
            )
        )


def _take_columns(
    table: Table,
    frame: pd.DataFrame,
    names: list[str],
    role: str,
    words: frozenset[str] = frozenset(),
) -> tuple[list[pd.Series], Counter[str]]:
    """Convert columns of one role to one type: numbers or objects; also list words left out."""
    found: Counter[str] = Counter()
    numbers = all(map(is_numeric_dtype, frame[names].dtypes))
    if numbers and not table.untyped:
        return [frame[name] for name in names], found
    columns = []
    for name in names:
        column, own = blank_words(encode_column(frame[name], role, table.name), words)
        columns.append(column)
        found += own
    plain = parse_numbers(*columns) if table.untyped else columns
    return [column.astype(object) for column in plain], found


def _find_task(table: Table, options: ReadOptions) -> str | None:
    """Find the task column: as given, recognized, or the first if it has no repeats.

    With a single row nothing can repeat, so the first column is not used then.
    """
    known = recognize_columns(table.columns, {"task": options.task or table.task}).get("task")
    first = next(iter(table.columns), "")
    if known is not None or first in UNNAMED:
        return first if known is None else known
    own = _sample_values(table, first)
    if len(own) < 2:
        return None
    others = set().union(*(_sample_values(table, name) for name in table.columns[1:]))
    return first if len(own) == len(table.sample) and not own & others else None


def _find_gold(table: Table, options: ReadOptions) -> str | None:
    return recognize_columns(table.columns, {"gold": options.gold}).get("gold")


def _find_workers(table: Table, options: ReadOptions) -> list[str]:
    """List the worker columns: those matching a pattern such as ``rater_*``, or the rest."""
    aside = {_find_task(table, options), _find_gold(table, options), table.task}
    if options.worker:
        asked = [name for name in table.columns if fnmatchcase(name, options.worker)]
        return [name for name in asked if name not in aside or name == options.worker]
    about = {*SYNONYMS["task"], *SUMMARIES}  # such as a text beside its id
    left = [name for name in table.columns if name not in aside]
    return [name for name in left if normalize_name(name) not in about]


def _sample_values(table: Table, name: str) -> set[str]:
    cells = (row.get(name) for row in table.sample)
    texts = (str(cell) for cell in cells if cell is not None and not is_word(cell))
    return {str(parse_whole(text)) if is_whole(text) else text for text in texts}


FORMAT = Format("wide", __doc__, Table, parse, matches=matches)
