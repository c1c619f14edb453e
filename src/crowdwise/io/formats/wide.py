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
from crowdwise.annotations.wide import columns_from_matrix, find_scale
from crowdwise.errors import AnnotationError, explain, listing, plural
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Table
from crowdwise.io.recognize import (
    SYNONYMS,
    Format,
    normalize_name,
    recognize_columns,
    require_columns,
)
from crowdwise.io.values import blank_words, encode_column, parse_numbers

UNNAMED = ("", "Unnamed: 0", "index")
MOST_NAMES = 20  # columns listed in a note
SOME_LABELS = 3  # fewer labels that are in no other column may be due to chance
MOST_LABELS = 100  # more distinct values than this in the first rows are not labels


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


def warn_odd_columns(built: Annotations, where: str) -> None:
    """Warn about columns that share no label with any other; they may not be workers."""
    n_classes = max(built.n_classes, 1)
    pairs = np.unique(built.worker.astype(np.int64) * n_classes + built.label)
    worker, label = np.divmod(pairs, n_classes)
    shared = np.bincount(label, minlength=n_classes)[label] > 1
    often = np.flatnonzero(np.bincount(built.worker, minlength=built.n_workers) >= SOME_LABELS)
    strange = np.setdiff1d(often, worker[shared])
    if len(strange) and len(np.unique(worker)) > 1:
        first = built.classes[label[worker == strange[0]]]
        fact = f"{where} has columns of labels that no other column has, which may not be workers"
        warnings.warn(
            explain(
                f"{fact}: {listing(built.workers[strange])}.",
                first=f"{listing(built.workers[strange[:1]])} holds {listing(first, 3)}",
                expected="columns of workers that use the same labels",
                fix="name the worker columns: worker='rater_*' in Python, --worker 'rater_*' "
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
    if options.worker:
        return [name for name in table.columns if fnmatchcase(name, options.worker)]
    aside = {_find_task(table, options), _find_gold(table, options), table.task}
    about = set(SYNONYMS["task"])  # such as a text beside its id
    left = [name for name in table.columns if name not in aside]
    return [name for name in left if normalize_name(name) not in about]


def _sample_values(table: Table, name: str) -> set[str]:
    cells = (row.get(name) for row in table.sample)
    return {str(cell) for cell in cells if cell is not None and not is_word(cell)}


FORMAT = Format("wide", __doc__, Table, parse, matches=matches)
