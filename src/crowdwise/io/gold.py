"""Known truths to learn from or to score by: in memory, or in a file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from os import PathLike

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations, StoredAnnotations
from crowdwise.annotations.frames import as_narwhals
from crowdwise.annotations.grouping import find_words, note_words
from crowdwise.annotations.names import as_names, is_whole, locate, parse_whole, unmask
from crowdwise.annotations.order import as_numbers
from crowdwise.annotations.truth_names import compare_classes, note_unseen_truths
from crowdwise.errors import AnnotationError, FormatError, explain, listing, plural
from crowdwise.inference.engines.files import KnownTasks
from crowdwise.io.document import Document, Table, Tree
from crowdwise.io.open import find_files, open_document
from crowdwise.io.truths import (
    align_truths,
    collect_truths,
    explain_no_shared_task,
    find_repeats,
    find_truth_columns,
)
from crowdwise.io.values import blank_words, encode_values, parse_names
from crowdwise.typing import Array, GoldLike, Ints, Names


def as_gold(gold: GoldLike, annotations: Annotations) -> Ints:
    """Return the class number of each task's known truth, ``-1`` if it is unknown.

    Accepts a mapping or series by task, a frame with the columns task and label, or one
    value for each task. Truths of tasks that are not in ``annotations`` are ignored, and
    so is a truth of ``-1`` unless that is a class. ``annotations.gold`` itself is read as
    class numbers; a copy of it is refused, because its numbers look like names.
    """
    if annotations.gold is not None and gold is annotations.gold:
        return annotations.gold.copy()
    place, labels = find_truths(gold, annotations)
    code = locate(annotations.classes, labels)
    if (code < 0).any():
        raise AnnotationError.unknown(
            "label",
            n_bad=int((code < 0).sum()),
            n_rows=len(code),
            first=f"gold label {labels[int((code < 0).argmax())]!r}",
            known=list(annotations.classes),
            fix="declare all classes when the annotations are made, with classes=[…]; or "
            + compare_classes(labels, annotations.classes)["fix"],
        )
    codes = np.full(annotations.n_tasks, -1, dtype=np.int32)
    codes[place] = code
    return codes


def as_stored_gold(gold: GoldLike, stored: StoredAnnotations) -> KnownTasks:
    """Return task numbers and classes of known truths for annotations on disk.

    Accepts truths by task. The names of the tasks are read as a stream.
    """
    if not isinstance(gold, Mapping | pd.Series) and as_narwhals(gold) is None:
        raise AnnotationError(
            explain(
                "Gold labels of annotations on disk must say which tasks they belong to.",
                found=f"a {type(gold).__name__}",
                fix="give a dict, a series indexed by task, or a frame with columns task and label",
            )
        )
    wanted, names, numbers, first = collect_truths(gold).index, [], [], 0
    for chunk in stored.task_names():
        here = locate(wanted, as_names(chunk)) >= 0
        if not first:  # others too, for error messages, and to tell tasks from row numbers
            here[np.flatnonzero(~here)[:3]] = True
        names.append(chunk[here])
        numbers.append(first + np.flatnonzero(here))
        first += len(chunk)
    empty = np.zeros(0, dtype=np.int32)
    columns, classes = (empty, empty, empty), stored.classes
    some = Annotations.from_codes(*columns, tasks=np.concatenate(names), classes=classes)
    code = as_gold(gold, some)
    return KnownTasks(np.concatenate(numbers)[code >= 0], code[code >= 0])


def find_truths(truth: GoldLike, annotations: Annotations) -> tuple[Ints, Array]:
    """Return which tasks have a known truth, and the truths; see :func:`as_gold`."""
    if not isinstance(truth, Mapping | pd.Series) and as_narwhals(truth) is None:
        truth = pd.Series(_check_one_each(truth, annotations), index=annotations.tasks)
    place, known = align_truths(truth, annotations.tasks)
    if -1 not in annotations.classes:
        given = (known != -1).to_numpy(bool)
        place, known = place[given], known[given]
    return place, as_names(known)


def _check_one_each(gold: GoldLike, annotations: Annotations) -> Array:
    """Check truths given in the order of the tasks."""
    values = unmask(gold)
    if values.shape != (annotations.n_tasks,):
        raise AnnotationError(
            explain(
                f"The gold labels have shape {values.shape}.",
                expected=f"one per task ({annotations.n_tasks:,}), or a mapping by task",
                fix="give a dict, or a series indexed by task",
            )
        )
    _refuse_class_numbers(values, annotations)
    return values


def _refuse_class_numbers(values: Array, annotations: Annotations) -> None:
    """Refuse a copy of ``annotations.gold``, whose class numbers would be read as names."""
    own = annotations.gold
    if own is None or values.dtype.kind not in "iu" or not np.array_equal(values, own):
        return
    known = own[own >= 0]
    other = annotations.classes[known] != known
    if other.any():
        number = int(known[other.argmax()])
        raise AnnotationError(
            explain(
                "The gold labels are the class numbers in annotations.gold, not names of classes.",
                first=f"{number}, which stands for {listing(annotations.classes[[number]])}",
                expected="labels as workers give them",
                fix="use annotations.gold_labels",
            )
        )


def add_gold_file(
    annotations: Annotations,
    path: str | PathLike[str],
    *,
    task: str | None = None,
    label: str | None = None,
) -> Annotations:
    """Return the annotations with truths from a table of task and label, in any kind of file.

    Names are compared as text, in which 1.0 and true are 1. Truths of tasks that are not in
    ``annotations`` are ignored; labels that no worker gave are added to the classes.
    """
    name, place, truths, notes = _read_known(annotations, path, task, label)
    classes = _list_classes(annotations, truths)
    code = _locate_text(classes, truths)
    true = as_names([classes[own] for own in code])
    find_repeats(annotations.tasks[place], true, name)
    gold = np.full(annotations.n_tasks, -1, dtype=np.int32)
    gold[place] = code
    note = f"gold of {plural(int((gold >= 0).sum()), 'task')} from {name}"
    unseen = note_unseen_truths(true, annotations.classes)
    return _replace_gold(annotations, classes, gold, (note, *notes, *unseen))


def read_truths(
    annotations: Annotations,
    path: str | PathLike[str],
    *,
    task: str | None = None,
    label: str | None = None,
) -> pd.Series:
    """Read truths by task: classes if all of them are, else numbers or text as given.

    Unlike :func:`add_gold_file`, it does not change the classes, so a truth may be a number such
    as people's mean rating.
    """
    name, place, truths, _ = _read_known(annotations, path, task, label)
    classes = annotations.classes.tolist()
    code = _locate_text(classes, truths)
    values = [classes[own] for own in code] if (code >= 0).all() else truths.tolist()
    if (code < 0).any() and (numbers := as_numbers(as_names(values))) is not None:
        values = numbers.tolist()
    repeated = find_repeats(annotations.tasks[place], as_names(values), name)
    index = pd.Index(annotations.tasks[place], name="task", tupleize_cols=False)
    return pd.Series(values, index)[~repeated]


def _read_known(
    annotations: Annotations, path: str | PathLike[str], task: str | None, label: str | None
) -> tuple[str, Ints, pd.Categorical, tuple[str, ...]]:
    """Return file name, task numbers, their truths, and notes on missing truths."""
    document = open_document(find_files(path)[0])
    tasks, truths = _read_pairs(document, task, label)
    column, words = blank_words(pd.Series(truths), find_words("auto", annotations.classes))
    truths = column.array
    place = _locate_text(annotations.tasks.tolist(), tasks)
    given = truths.codes >= 0
    known = (place >= 0) & given
    if not given.any():
        raise AnnotationError(
            explain(
                f"{document.name} has no truths.",
                found=plural(len(given), "row"),
                expected="rows with a task and its true label",
                fix="fill in the truths, or leave this file out",
            )
        )
    if not known.any():
        fact = f"No truth in {document.name} is for a task of the annotations."
        raise explain_no_shared_task(fact, np.asarray(tasks[given].unique()), annotations.tasks)
    kept = truths[known].remove_unused_categories()
    notes = list(note_words(words, "truths"))
    bare = tasks.codes < 0
    for what, rows in (("without a task", bare), ("of other tasks", ~bare & (place < 0))):
        n = int((given & rows).sum())
        notes += [f"truths {what} not used: {n:,}"] if n else []
    return document.name, place[known], kept, tuple(notes)


def _read_pairs(
    document: Document, task: str | None, label: str | None
) -> tuple[pd.Categorical, pd.Categorical]:
    """Read tasks and their truths, row by row."""
    where = document.name
    if isinstance(document, Tree):
        rows = [list(document.value), list(document.value.values())]
    elif isinstance(document, Table):
        given = {"task": task, "label": label}
        columns = find_truth_columns(
            document.columns, where, given, lambda name: document.frame([name])[name]
        )
        frame = document.frame(list(columns))
        rows = [frame[name].astype(object).tolist() for name in columns]
    else:
        raise FormatError(
            explain(
                f"{where} is not a table.",
                expected="task and label",
                fix="write a table with a column of tasks and one of labels",
            )
        )
    return encode_values(rows[0], "task", where), encode_values(rows[1], "label", where)


def _locate_text(names: Names, column: pd.Categorical) -> Ints:
    """Return the position of each value of a column among names, -1 if it is not one."""
    exact = {str(name): number for number, name in enumerate(names)}
    alike = {_normalize_text(name): number for number, name in enumerate(names)}
    found = [exact.get(str(own), alike.get(_normalize_text(own), -1)) for own in column.categories]
    return np.array([*found, -1])[column.codes]


def _normalize_text(name: Hashable) -> str:
    """Return a name as text that is the same for 1, 1.0 and true."""
    text = str(int(name)) if isinstance(name, bool | np.bool_) else str(name)
    return str(parse_whole(text)) if is_whole(text) else text


def _list_classes(annotations: Annotations, truths: pd.Categorical) -> list[Hashable]:
    """List the classes, followed by truths that are not a class yet."""
    own = annotations.classes.tolist()
    unseen = truths[_locate_text(own, truths) < 0].unique()
    numbers = all(isinstance(name, int) for name in own)
    new = sorted({_normalize_text(name) if numbers else str(name) for name in unseen})
    return own + (parse_names(new) if numbers else new)


def _replace_gold(
    annotations: Annotations, classes: list[Hashable], gold: Ints, notes: tuple[str, ...]
) -> Annotations:
    soft = annotations.soft
    if soft is not None:
        soft = np.pad(soft, ((0, 0), (0, len(classes) - soft.shape[1])))
    return replace(
        annotations,
        classes=as_names(classes),
        label=annotations.label.astype(np.min_scalar_type(-len(classes))),
        soft=soft,
        gold=gold,
        notes=(*annotations.notes, *notes),
    )
