"""Conversion of anything that can be read as annotations."""

from __future__ import annotations

import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from crowdwise import memory
from crowdwise.annotations import Annotations, drop_weightless
from crowdwise.annotations.frames import as_narwhals
from crowdwise.annotations.missing import leave_out_missing, warn_missing
from crowdwise.annotations.names import is_whole, locate, parse_whole
from crowdwise.annotations.wide import Nested, columns_from_dict, columns_from_matrix
from crowdwise.errors import AnnotationError, explain, plural
from crowdwise.inference.engines.engine import CELL
from crowdwise.io.reader import read, read_frame
from crowdwise.io.triples import find_records, find_rows, orient_labels, refuse_triples
from crowdwise.typing import AnnotationsLike, Array, FeaturesLike, Ints


def as_annotations(data: AnnotationsLike) -> Annotations:
    """Convert annotations in any form: frame, wide table, triples, nested dict, file or matrix.

    A frame is recognized as a file would be, including columns of weights, times and truths;
    one that matches nothing else is a wide table, whose index names the tasks unless a column
    does. A warning lists the words that were read as missing.
    """
    if isinstance(data, Annotations):
        return data
    found = _accept(data)
    warn_missing(found.notes, 3)
    return found


def refuse_too_many(name: str, needed: float, votes: Annotations, fix: str) -> None:
    """Refuse to fit a method that needs more bytes of memory than there are."""
    if needed > memory.LARGE:
        sizes = f"{plural(votes.n_tasks, 'task')}, {plural(votes.n_workers, 'worker')} and "
        sizes += plural(votes.n_classes, "class", "classes")
        memory.refuse_too_large(name, needed, sizes, fix, AnnotationError)


def refuse_too_many_classes(name: str, votes: Annotations, *, tables: bool) -> None:
    """Refuse to train a model whose tasks and classes, or worker tables, exceed the memory."""
    needed = 24 * votes.n_tasks * votes.n_classes
    if tables:  # one confusion matrix per worker
        needed += CELL * votes.n_workers * votes.n_classes**2
    fix = "merge rare classes, or give workers with few labels one name"
    refuse_too_many(name, needed, votes, fix)


def in_rows_of(X: FeaturesLike, annotations: object) -> FeaturesLike:
    """Return X without row numbers if annotations are an array, whose tasks have no names.

    Both can then be cut and shuffled together, as scikit-learn does: rows are matched by
    position, whatever index pandas has kept. An index called ``task`` still has names.
    """
    bare = isinstance(annotations, np.ndarray | list | tuple) or hasattr(annotations, "toarray")
    if not bare or not isinstance(X, pd.DataFrame) or X.index.name == "task":
        return X
    numbers = pd.api.types.is_integer_dtype(X.index.dtype)
    rows = annotations.shape[0] if hasattr(annotations, "shape") else len(annotations)  # type: ignore[arg-type]
    alike = numbers and rows == len(X)  # triples usually have more rows
    return X.reset_index(drop=True) if alike else X


def _accept(data: AnnotationsLike) -> Annotations:
    if isinstance(data, str | Path):
        return read(data)
    if isinstance(data, Mapping) and not hasattr(data, "columns"):
        records = find_records(data)
        return _accept_nested(data) if records is None else read(records)
    if isinstance(data, pd.DataFrame) and isinstance(data.columns, pd.RangeIndex):
        refuse_triples(data.to_numpy(), "The frame")
        return _accept_matrix(data)  # unnamed columns mean an array
    if isinstance(data, pd.DataFrame) or as_narwhals(data) is not None:
        return read_frame(data)
    if isinstance(data, Sequence | np.ndarray) or hasattr(data, "toarray"):
        rows = find_rows(data, "The list") if isinstance(data, list | tuple) else None
        if isinstance(data, np.ndarray):
            refuse_triples(data, "The array")
        return _accept_matrix(data) if rows is None else read(rows)
    raise AnnotationError(
        explain(
            f"A {type(data).__name__} cannot be read as annotations.",
            expected="Annotations, a frame, a wide array, (task, worker, label) triples, "
            "{task: {worker: label}} or a path",
            fix="see docs/formats.md for every shape that can be read",
        )
    )


def _accept_nested(data: Nested) -> Annotations:
    """Read a dict of dicts; a warning says if workers were outside, as in a wide frame's."""
    if all(isinstance(labels, Mapping) for labels in data.values()):
        own, note = orient_labels(data, "The dict")
        if own is not data:
            warnings.warn(f"{note[0].upper()}{note[1:]}, as in a wide frame's.", stacklevel=5)
        data = own
    return Annotations.from_columns(leave_out_missing(columns_from_dict(data), "auto"))


def _accept_matrix(data: object) -> Annotations:
    return Annotations.from_columns(leave_out_missing(columns_from_matrix(data), "auto"))


def align_to_model(
    annotations: Annotations,
    workers: Array,
    classes: Array,
    unknown: str,
    idle: Sequence[int] | Ints = (),
) -> tuple[Annotations, bool]:
    """Align annotations with the workers and classes of a fitted model.

    Also returns whether any workers are unknown to the model; they all get the number after
    the last known one. ``unknown`` says what to do with them: ``"error"``, ``"ignore"``
    or ``"average"``. Workers with ``idle`` numbers had no labels, so they count as unknown.
    """
    annotations = drop_weightless(annotations)
    label = locate(classes, annotations.classes)
    _refuse_unknown(label[annotations.label], "label", annotations, classes)
    place = locate(workers, annotations.workers)
    if len(idle):
        place[np.isin(place, idle)] = -1
    worker = place[annotations.worker]
    unseen = worker < 0
    refuse_other_type(annotations.workers[place < 0], set(workers.tolist()), "worker")
    if unseen.any() and unknown == "error":
        _refuse_unknown(worker, "worker", annotations, np.delete(workers, idle))
    soft = annotations.soft
    if soft is not None:
        wide = np.zeros((len(soft), len(classes)), dtype=soft.dtype)
        wide[:, label[label >= 0]] = soft[:, label >= 0]
        soft = wide
    known = replace(
        annotations,
        workers=workers,
        classes=classes,
        worker=np.where(unseen, len(workers), worker).astype(np.int32),
        label=label[annotations.label].astype(np.int32),
        soft=soft,
        gold=None,
    )
    if unseen.any() and unknown == "ignore":
        return known.filter(~unseen), False
    return known, bool(unseen.any())


def refuse_other_type(names: Array, known: Container[object], role: str) -> None:
    """Refuse new names that a model knows as text where they are numbers, or as numbers."""
    alike = [name for name in names.tolist() if name not in known and _of_other_type(name) in known]
    if alike:
        raise AnnotationError(
            explain(
                f"{plural(len(alike), role)} of the model would be new here: "
                "their names have another type.",
                first=f"{alike[0]!r}, in the model {_of_other_type(alike[0])!r}",
                expected="names of one type, numbers or text",
                fix=f"convert them, as in frame.astype({{{role!r}: str}}), or fit again",
            )
        )


def _of_other_type(name: object) -> object:
    return parse_whole(str(name)) if is_whole(name) else str(name)


def _refuse_unknown(codes: Ints, role: str, annotations: Annotations, known: Array) -> None:
    bad = codes < 0
    if bad.any():
        row = int(bad.argmax())
        cell = {
            "task": annotations.tasks[annotations.task[row]],
            "worker": annotations.workers[annotations.worker[row]],
            "label": annotations.classes[annotations.label[row]],
        }
        raise AnnotationError.unknown(
            role,
            n_bad=int(bad.sum()),
            n_rows=len(bad),
            first=", ".join(f"{name}={value!r}" for name, value in cell.items()),
            known=list(known),
            fix=f"fit again with these {role}s, or drop the rows that name them",
        )
