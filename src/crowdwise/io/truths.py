"""Known truths by task, in any shape that people have them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from crowdwise.annotations.columns import recognise
from crowdwise.annotations.frames import native_frame, series
from crowdwise.errors import AnnotationError, explain


def truth_by_task(truth: Any) -> pd.Series:
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
    roles = recognise(columns, given)
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
    frame = native_frame(table)
    if frame is None:
        raise AnnotationError(
            explain(
                f"A {type(table).__name__} does not say which task a truth is for.",
                expected="a mapping or series by task, or a frame with task and label",
            )
        )
    where = "The table of truths"
    task, label = truth_columns(frame.columns, where, {}, lambda name: series(frame, name))
    return pd.Series(series(frame, label).array, index=pd.Index(series(frame, task)))
