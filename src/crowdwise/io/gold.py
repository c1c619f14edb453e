"""Known truths from a file of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations.frames import as_narwhals, take_series
from crowdwise.annotations.table import Annotations
from crowdwise.errors import AnnotationError, FormatError, explain, listing
from crowdwise.io.build import encode_values, is_whole, parse_names, parse_whole
from crowdwise.io.document import Document, Table, Tree
from crowdwise.io.open import find_files, open_document
from crowdwise.io.recognize import recognize_columns
from crowdwise.typing import Ints


def add_gold_file(
    annotations: Annotations, path: Any, *, task: str | None = None, label: str | None = None
) -> Annotations:
    """The annotations with the truths of a table of task and label, in any kind of file.

    Names are compared as text, in which 1.0 and true are 1. Truths of tasks that are not in
    ``annotations`` are passed over; labels that no worker gave are added to the classes.
    """
    content = open_document(find_files(path)[0])
    tasks, truths = _pairs(content, task, label)
    place = _places(annotations.tasks.tolist(), tasks)
    told = truths.codes >= 0
    known = (place >= 0) & told
    if not known.any():
        named = tasks[told].unique()
        raise AnnotationError(
            explain(
                f"None of the {len(named):,} truths in {content.name} is for a task of "
                "the annotations.",
                first=f"the file names {listing(named, 3) or 'no truth at all'}",
                expected=f"tasks such as {listing(annotations.tasks, 3)}",
            )
        )
    place, truths = place[known], truths[known].remove_unused_categories()
    classes = _all_classes(annotations, truths)
    code = _places(classes, truths)
    repeated(annotations.tasks[place], [classes[own] for own in code], content.name)
    gold = np.full(annotations.n_tasks, -1, dtype=np.int32)
    gold[place] = code
    note = f"gold of {int((gold >= 0).sum()):,} tasks from {content.name}"
    return _with_classes(annotations, classes, gold, note)


def _pairs(
    content: Document, task: str | None, label: str | None
) -> tuple[pd.Categorical, pd.Categorical]:
    """Tasks and their truths, row by row."""
    where = content.name
    if isinstance(content, Tree):
        rows = [list(content.value), list(content.value.values())]
    elif isinstance(content, Table):
        given = {"task": task, "label": label}
        columns = truth_columns(
            content.columns, where, given, lambda name: content.frame([name])[name]
        )
        frame = content.frame(list(columns))
        rows = [frame[name].astype(object).tolist() for name in columns]
    else:
        raise FormatError(explain(f"{where} is no table.", expected="task and label"))
    return encode_values(rows[0], "task", where), encode_values(rows[1], "label", where)


def _places(names: Sequence[Any], column: pd.Categorical) -> Ints:
    """Where each value of a column stands among names, -1 where it does not."""
    exact = {str(name): number for number, name in enumerate(names)}
    alike = {_plain(name): number for number, name in enumerate(names)}
    found = [exact.get(str(own), alike.get(_plain(own), -1)) for own in column.categories]
    return np.array([*found, -1])[column.codes]


def _plain(name: Any) -> str:
    """A name as text that is the same for 1, 1.0 and true."""
    text = str(int(name)) if isinstance(name, bool | np.bool_) else str(name)
    return str(parse_whole(text)) if is_whole(text) else text


def _all_classes(annotations: Annotations, truths: pd.Categorical) -> list[Any]:
    """The classes, and after them the truths that are no class yet."""
    own = annotations.classes.tolist()
    strange = truths[_places(own, truths) < 0].unique()
    numbers = all(isinstance(name, int) for name in own)
    new = sorted({_plain(name) if numbers else str(name) for name in strange})
    return own + (parse_names(new) if numbers else new)


def _with_classes(
    annotations: Annotations, classes: list[Any], gold: Any, note: str
) -> Annotations:
    soft = annotations.soft
    if soft is not None:
        soft = np.pad(soft, ((0, 0), (0, len(classes) - soft.shape[1])))
    return Annotations.from_codes(
        annotations.task,
        annotations.worker,
        annotations.label,
        tasks=annotations.tasks,
        workers=annotations.workers,
        classes=classes,
        weight=annotations.weight,
        time=annotations.time,
        soft=soft,
        gold=gold,
        notes=(*annotations.notes, note),
    )


def collect_truths(truth: Any) -> pd.Series:
    """Known truths as a series by task, each task once; a table's gold comes before its label."""
    if isinstance(truth, Mapping):
        truth = pd.Series(truth)
    if not isinstance(truth, pd.Series):
        truth = _from_table(truth)
    truth = truth.dropna()
    if truth.index.has_duplicates:
        truth = truth[~repeated(truth.index, truth)]
    return truth


def repeated(tasks: Any, labels: Any, where: str = "The table of truths") -> Any:
    """Which rows repeat a truth; a task that has two different ones is refused."""
    columns = {"task": pd.Index(tasks).tolist(), "label": pd.Series(labels).tolist()}
    pairs = pd.DataFrame(columns, dtype=object)
    distinct = pairs.drop_duplicates()
    twice = distinct[distinct["task"].duplicated()]
    if len(twice):
        task = twice["task"].iloc[0]
        found = distinct["label"][[own == task for own in distinct["task"]]]
        raise AnnotationError(
            explain(
                f"{where} has two different truths for {twice['task'].nunique():,} tasks.",
                first=f"task={task!r}: {' and '.join(map(repr, found))}",
                expected="one truth per task",
                fix="keep one of them, or take the truth of such a task out",
            )
        )
    return pairs.duplicated().to_numpy()


def truth_columns(
    columns: Any, where: str, given: Mapping[str, str | None], column: Callable[[str], pd.Series]
) -> tuple[str, str]:
    """The columns that hold the task and its truth: gold, or label where gold is empty."""
    roles = recognize_columns(columns, given)
    label, gold = roles.get("label"), roles.get("gold")
    if gold and not given.get("label") and (label is None or column(gold).notna().any()):
        label = gold
    if "task" not in roles or label is None:
        raise AnnotationError.missing_column(
            "label" if "task" in roles else "task",
            where=where,
            found=columns,
            fix="give a table with the columns task and label",
        )
    return roles["task"], label


def _from_table(table: Any) -> pd.Series:
    frame = as_narwhals(table)
    if frame is None:
        raise AnnotationError(
            explain(
                f"A {type(table).__name__} does not say which task a truth is for.",
                expected="a mapping or series by task, or a frame with task and label",
            )
        )
    where = "The table of truths"
    task, label = truth_columns(frame.columns, where, {}, lambda name: take_series(frame, name))
    return pd.Series(take_series(frame, label).array, index=pd.Index(take_series(frame, task)))
