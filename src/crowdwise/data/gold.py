"""Known truths from a file of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise.data.annotations import Annotations
from crowdwise.data.columns import recognise
from crowdwise.data.containers import open_content
from crowdwise.data.content import Content, Table, Tree
from crowdwise.data.files import files_of
from crowdwise.data.values import refuse_nested, typed_names
from crowdwise.errors import AnnotationError, FormatError, explain, listing


def with_gold_file(
    annotations: Annotations, path: Any, *, task: str | None = None, label: str | None = None
) -> Annotations:
    """The annotations with the truths of a table of task and label, in any kind of file.

    Names are compared as text. Truths of tasks that are not in ``annotations`` are passed
    over; labels that no worker gave are added to the classes.
    """
    content = open_content(files_of(path)[0])
    truths = _pairs(content, task, label)
    place = {str(name): number for number, name in enumerate(annotations.tasks.tolist())}
    known = {place[name]: truth for name, truth in truths.items() if name in place}
    if not known:
        raise AnnotationError(
            explain(
                f"None of the {len(truths):,} truths in {content.name} is for a task of the "
                "annotations.",
                first=f"the file names {listing(list(truths), 3)}",
                expected=f"tasks such as {listing(annotations.tasks, 3)}",
            )
        )
    classes = _all_classes(annotations, set(known.values()))
    code = {str(name): number for number, name in enumerate(classes)}
    gold = np.full(annotations.n_tasks, -1, dtype=np.int32)
    gold[list(known)] = [code[truth] for truth in known.values()]
    note = f"gold of {len(known):,} tasks from {content.name}"
    return _with_classes(annotations, classes, gold, note)


def _pairs(content: Content, task: str | None, label: str | None) -> dict[str, str]:
    """Task and truth as text."""
    if isinstance(content, Tree):
        pairs = list(content.value.items())
    elif isinstance(content, Table):
        roles = recognise(content.columns, {"task": task, "label": label})
        truth = label or roles.get("gold") or roles.get("label")
        if "task" not in roles or truth is None:
            raise AnnotationError.missing_column(
                "label" if "task" in roles else "task",
                where=content.name,
                found=content.columns,
                fix="give a table with the columns task and label",
            )
        frame = content.frame([roles["task"], truth]).dropna().astype(object)
        pairs = list(zip(frame[roles["task"]], frame[truth], strict=True))
    else:
        raise FormatError(explain(f"{content.name} is no table.", expected="task and label"))
    where = content.name
    return {
        str(refuse_nested(name, "task", where)): str(refuse_nested(truth, "label", where))
        for name, truth in pairs
        if truth is not None
    }


def _all_classes(annotations: Annotations, truths: set[str]) -> list[Any]:
    """The classes, and after them the truths that are no class yet."""
    own = annotations.classes.tolist()
    new = sorted(truths - set(map(str, own)))
    numbers = all(isinstance(name, int) for name in own)
    return own + (typed_names(new) if numbers else new)


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
