"""The initial content of a project: a table of tasks, or labels in any readable format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError, FormatError, explain
from crowdwise.io import read
from crowdwise.io.open import read_table
from crowdwise.serve.actions import Action, AddLabels, AddTasks
from crowdwise.typing import Json

CONTENT = ("text", "image")  # columns shown to workers
BATCH = 5_000  # rows per transaction
ACTOR = "import"


@dataclass(frozen=True)
class Start:
    """Tasks with their content, labels that exist already, and truths."""

    classes: tuple[str, ...] = ()
    tasks: dict[str, Json] = field(default_factory=dict)
    labels: list[tuple[str, str, str]] = field(default_factory=list)  # task, worker, label
    gold: list[tuple[str, str]] = field(default_factory=list)

    def to_actions(self) -> Iterator[Action]:
        """Yield the actions that store it; what the database has already is not stored again."""
        tasks = list(self.tasks.items())
        for start in range(0, len(tasks), BATCH):
            yield AddTasks(ACTOR, tasks[start : start + BATCH])
        for start in range(0, len(self.gold), BATCH):
            yield AddTasks(ACTOR, [], self.gold[start : start + BATCH])
        for start in range(0, len(self.labels), BATCH):
            yield AddLabels(ACTOR, self.labels[start : start + BATCH])


def read_project(path: Path) -> Start:
    """Read tasks or labels from a file; repeated labels by one worker of a task count once."""
    frame = read_tasks(path)
    if frame is not None and "label" not in frame:
        return begin_with_tasks(frame, path)
    try:
        votes = read(path, repeats="last")
    except CrowdwiseError as error:
        if frame is None:
            raise
        raise FormatError(
            explain(
                f"{path} has neither tasks nor labels.",
                found=", ".join(map(str, frame.columns)),
                expected="a column task, with text or image; or task, worker and label",
                fix="rename the columns",
            )
        ) from error
    return begin_with_labels(votes, frame)


def read_tasks(path: Path) -> pd.DataFrame | None:
    """Read a table with a column of tasks; None if the file is something else."""
    if path.suffix.lower() not in (".csv", ".tsv"):
        return None
    try:
        frame = read_table(path, "the columns task, text, image and gold")
    except CrowdwiseError:  # which reading it as labels will say
        return None
    frame.columns = frame.columns.str.strip().str.lower()
    if not frame.columns.is_unique:
        raise FormatError(
            explain(
                f"{path} has a column more than once.",
                first=repr(frame.columns[frame.columns.duplicated()][0]),
                expected="different names, whatever their case",
                fix="rename or remove one of them",
            )
        )
    return frame.where(frame.notna(), "").astype(str) if "task" in frame else None


def begin_with_tasks(frame: pd.DataFrame, path: Path) -> Start:
    doubled = frame["task"][frame["task"].duplicated()]
    if len(doubled):
        raise FormatError(
            explain(
                f"{path} has more than one row for a task.",
                first=f"{doubled.iloc[0]!r}",
                expected="one row for each task",
                fix="remove the repeated rows, or rename the tasks",
            )
        )
    truths = frame["gold"] if "gold" in frame else pd.Series("", index=frame.index)
    gold = [(task, label) for task, label in zip(frame["task"], truths, strict=True) if label]
    classes = tuple(dict.fromkeys(label for _, label in gold))
    return Start(classes, content_of(frame), [], gold)


def begin_with_labels(votes: Annotations, frame: pd.DataFrame | None) -> Start:
    tasks, workers, classes = (
        list(map(str, names.tolist())) for names in (votes.tasks, votes.workers, votes.classes)
    )
    content = {} if frame is None else content_of(frame)
    rows = zip(votes.task.tolist(), votes.worker.tolist(), votes.label.tolist(), strict=True)
    labels = [(tasks[t], workers[w], classes[k]) for t, w, k in rows]
    gold = []
    if votes.gold is not None:
        gold = [(tasks[t], classes[k]) for t, k in enumerate(votes.gold.tolist()) if k >= 0]
    return Start(tuple(classes), {name: content.get(name, {}) for name in tasks}, labels, gold)


def content_of(frame: pd.DataFrame) -> dict[str, Json]:
    """Collect what workers see of each task."""
    columns = [name for name in CONTENT if name in frame]
    found: dict[str, Json] = {}
    for row in frame[["task", *columns]].drop_duplicates("task").itertuples(index=False):
        task, *values = row
        found[task] = {name: own for name, own in zip(columns, values, strict=True) if own}
    return found
