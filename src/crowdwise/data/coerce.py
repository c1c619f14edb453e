"""Whatever people have, as annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from crowdwise.data.annotations import Annotations
from crowdwise.data.frames import guess_roles
from crowdwise.data.names import as_names, positions
from crowdwise.errors import AnnotationError, explain, listing
from crowdwise.typing import Array, Ints


def as_annotations(data: Any) -> Annotations:
    """Take annotations in any shape: a frame, wide table, nested dict, file or matrix."""
    if isinstance(data, Annotations):
        return data
    if isinstance(data, str | Path):
        return Annotations.read(data)
    if isinstance(data, Mapping) and not hasattr(data, "columns"):
        return Annotations.from_dict(data)
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        roles = guess_roles(data, {})
        if {"task", "worker", "label"} <= roles.keys():
            return Annotations.from_frame(data, roles["task"], roles["worker"], roles["label"])
        return Annotations.from_matrix(data)
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
    value for each task. Truths of tasks that are not in ``annotations`` are passed over.
    """
    tasks, labels = _pairs(gold, annotations)
    place = positions(annotations.tasks, tasks)
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
    code = positions(annotations.classes, labels[known])
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


def aligned(
    annotations: Annotations, workers: Array, classes: Array, unknown: str
) -> tuple[Annotations, bool]:
    """The annotations with the workers and classes of a fitted model.

    Returns whether a worker unknown to the model remains; it has the number after the
    last known one. ``unknown`` says what to do with such workers: ``"error"``,
    ``"ignore"`` or ``"average"``.
    """
    label = positions(classes, annotations.classes)
    _refuse(label[annotations.label], "label", annotations, classes)
    worker = positions(workers, annotations.workers)[annotations.worker]
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
    if isinstance(gold, Mapping):
        gold = pd.Series(gold)
    frame = nw.from_native(gold, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        roles = guess_roles(gold, {})
        label = roles.get("label") or roles.get("gold")
        if "task" not in roles or label is None:
            raise AnnotationError.missing_column(
                "label" if "task" in roles else "task",
                where="The gold table",
                found=frame.columns,
                fix="give a table with the columns task and label",
            )
        table = frame.to_pandas()
        gold = pd.Series(table[label].to_numpy(), index=table[roles["task"]].to_numpy())
    if not isinstance(gold, pd.Series):
        values = np.asarray(gold)
        if values.shape != (annotations.n_tasks,):
            raise AnnotationError(
                explain(
                    f"The gold labels have shape {values.shape}.",
                    expected=f"one per task ({annotations.n_tasks:,}), or a mapping by task",
                )
            )
        gold = pd.Series(values, index=annotations.tasks)
        if values.dtype.kind in "if" and -1 not in annotations.classes:
            gold = gold[gold != -1]
    gold = gold.dropna()
    return as_names(gold.index), as_names(gold)
