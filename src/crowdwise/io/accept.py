"""Whatever people have, as annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations.frames import as_narwhals
from crowdwise.annotations.names import as_names, locate, unmask
from crowdwise.annotations.table import Annotations
from crowdwise.errors import AnnotationError, explain, listing
from crowdwise.io.gold import collect_truths
from crowdwise.io.reader import read, read_frame
from crowdwise.typing import Array, Ints


def as_annotations(data: Any) -> Annotations:
    """Take annotations in any shape: a frame, wide table, nested dict, file or matrix.

    A frame is recognised as a file would be, its columns of weights, times and truths
    included; one that looks like nothing else is a wide table, whose index names the tasks
    unless a column does.
    """
    if isinstance(data, Annotations):
        return data
    if isinstance(data, str | Path):
        return read(data)
    if isinstance(data, Mapping) and not hasattr(data, "columns"):
        return Annotations.from_dict(data)
    if isinstance(data, pd.DataFrame) and isinstance(data.columns, pd.RangeIndex):
        return Annotations.from_matrix(data)  # columns that nobody named are an array's
    if isinstance(data, pd.DataFrame) or as_narwhals(data) is not None:
        return read_frame(data)
    if isinstance(data, Sequence | np.ndarray) or hasattr(data, "toarray"):
        return Annotations.from_matrix(data)
    raise AnnotationError(
        explain(
            f"A {type(data).__name__} cannot be read as annotations.",
            expected="Annotations, a frame, a wide array, {task: {worker: label}} or a path",
        )
    )


def as_gold(gold: Any, annotations: Annotations) -> Ints:
    """Class number of each task's known truth, ``-1`` where it is unknown.

    Takes a mapping or series by task, a frame with the columns task and label, or one
    value for each task. Truths of tasks that are not in ``annotations`` are passed over, and
    so is a truth of ``-1`` where that is no class. ``annotations.gold`` itself is taken for
    the class numbers that it holds; a copy of it is refused, as its numbers look like names.
    """
    if annotations.gold is not None and gold is annotations.gold:
        return annotations.gold.copy()
    tasks, labels = _pairs(gold, annotations)
    place = locate(annotations.tasks, tasks)
    if len(place) and (place < 0).all():
        raise AnnotationError(
            explain(
                f"None of the {len(place):,} gold labels is for a task of the annotations.",
                first=f"gold names {listing(tasks, 3)}",
                expected=f"tasks such as {listing(annotations.tasks, 3)}",
                fix="check that both use the same ids, and the same type (numbers or text)",
            )
        )
    known = place >= 0
    code = locate(annotations.classes, labels[known])
    if (code < 0).any():
        raise AnnotationError.unknown(
            "label",
            n_bad=int((code < 0).sum()),
            n_rows=len(code),
            first=f"gold label {labels[known][int((code < 0).argmax())]!r}",
            known=list(annotations.classes),
            fix="declare all classes when the annotations are made, with classes=[…]",
        )
    codes = np.full(annotations.n_tasks, -1, dtype=np.int32)
    codes[place[known]] = code
    return codes


def align_to_model(
    annotations: Annotations, workers: Array, classes: Array, unknown: str
) -> tuple[Annotations, bool]:
    """The annotations with the workers and classes of a fitted model.

    Returns whether a worker unknown to the model remains; it has the number after the
    last known one. ``unknown`` says what to do with such workers: ``"error"``,
    ``"ignore"`` or ``"average"``.
    """
    label = locate(classes, annotations.classes)
    _refuse(label[annotations.label], "label", annotations, classes)
    worker = locate(workers, annotations.workers)[annotations.worker]
    strange = worker < 0
    if strange.any() and unknown == "error":
        _refuse(worker, "worker", annotations, workers)
    soft = annotations.soft
    if soft is not None:
        wide = np.zeros((len(soft), len(classes)), dtype=soft.dtype)
        wide[:, label[label >= 0]] = soft[:, label >= 0]
        soft = wide
    known = replace(
        annotations,
        workers=workers,
        classes=classes,
        worker=np.where(strange, len(workers), worker).astype(np.int32),
        label=label[annotations.label].astype(np.int32),
        soft=soft,
        gold=None,
    )
    if strange.any() and unknown == "ignore":
        return known.filter(~strange), False
    return known, bool(strange.any())


def _refuse(codes: Ints, role: str, annotations: Annotations, known: Array) -> None:
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


def _pairs(gold: Any, annotations: Annotations) -> tuple[Array, Array]:
    """The tasks whose truth is known, and their truths."""
    if isinstance(gold, Mapping | pd.Series) or as_narwhals(gold) is not None:
        known = collect_truths(gold)
    else:
        known = pd.Series(_one_each(gold, annotations), index=annotations.tasks).dropna()
    if -1 not in annotations.classes:
        known = known[(known != -1).to_numpy(bool)]
    return as_names(known.index), as_names(known)


def _one_each(gold: Any, annotations: Annotations) -> Array:
    """Truths that are in the order of the tasks."""
    values = unmask(gold)
    if values.shape != (annotations.n_tasks,):
        raise AnnotationError(
            explain(
                f"The gold labels have shape {values.shape}.",
                expected=f"one per task ({annotations.n_tasks:,}), or a mapping by task",
            )
        )
    _refuse_numbers(values, annotations)
    return values


def _refuse_numbers(values: Array, annotations: Annotations) -> None:
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
