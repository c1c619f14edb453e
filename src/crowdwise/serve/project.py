"""The initial content of a project: a table of tasks, or labels in any readable format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.grouping import WORDS
from crowdwise.annotations.names import is_whole, note_spaces, parse_whole
from crowdwise.errors import CrowdwiseError, FormatError, explain, listing
from crowdwise.io import read
from crowdwise.io.open import read_table
from crowdwise.io.values import blank_words, encode_column, parse_numbers
from crowdwise.serve.actions import Action, AddLabels, AddTasks, check_name
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
    notes: tuple[str, ...] = ()  # how the file was understood, and what was left out

    def check_names(self) -> None:
        """Refuse names that cannot be stored, before anything is."""
        workers = dict.fromkeys(worker for _, worker, _ in self.labels)
        for what, names in (("task", self.tasks), ("worker", workers), ("class", self.classes)):
            for name in names:
                check_name(what, name)

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
    left = [name for name in frame if name not in ("task", "gold", *CONTENT)]
    notes = [f"columns left out: {listing(left)}"] if left else []
    gold: list[tuple[str, str]] = []
    if "gold" in frame:
        truths, words = read_truths(frame["gold"])
        gold = list(zip(frame["task"][truths.notna()], truths.dropna(), strict=True))
        notes += [f"truths taken as missing: {listing(words)}"] if words else []
    classes = tuple(dict.fromkeys(label for _, label in gold))
    notes += note_spaces(np.array(classes, dtype=object), "classes")
    return Start(classes, content_of(frame), [], gold, tuple(notes))


def read_truths(column: pd.Series) -> tuple[pd.Series, list[str]]:
    """Read truths as in other files: 7.0 is 7, and NA is missing; returns such words, too."""
    known, words = blank_words(encode_column(column.where(column != "", None)), WORDS)
    whole = parse_numbers(known)[0].astype(object)
    return whole.map(str, na_action="ignore"), list(words)


def begin_with_labels(votes: Annotations, frame: pd.DataFrame | None) -> Start:
    refuse_unequal(votes)
    tasks, workers, classes = (
        list(map(str, names.tolist())) for names in (votes.tasks, votes.workers, votes.classes)
    )
    content = {} if frame is None else content_of(frame)
    if votes.tasks.dtype.kind == "i":  # whose text may be 7.0
        content = {str(parse_whole(name)): own for name, own in content.items() if is_whole(name)}
    rows = zip(votes.task.tolist(), votes.worker.tolist(), votes.label.tolist(), strict=True)
    labels = [(tasks[t], workers[w], classes[k]) for t, w, k in rows]
    gold = []
    if votes.gold is not None:
        gold = [(tasks[t], classes[k]) for t, k in enumerate(votes.gold.tolist()) if k >= 0]
    found = {name: content.get(name, {}) for name in tasks}
    notes = votes.notes
    if any(content.values()) and (bare := sum(not own for own in found.values())):
        notes += (f"tasks without {' and '.join(CONTENT)}: {bare:,}",)
    return Start(tuple(classes), found, labels, gold, notes)


def refuse_unequal(votes: Annotations) -> None:
    """Refuse labels that count more or less than others, since each label here counts once."""
    unequal = votes.weight is not None and bool((votes.weight != 1).any())
    if unequal or votes.soft is not None:
        raise FormatError(
            explain(
                "The labels of a project count once each, and these do not.",
                found="weights" if unequal else "probabilities of classes",
                expected="one label on each row",
                fix="leave out that column, and rows of weight 0",
            )
        )


def content_of(frame: pd.DataFrame) -> dict[str, Json]:
    """Collect what workers see of each task."""
    columns = [name for name in CONTENT if name in frame]
    found: dict[str, Json] = {}
    for row in frame[["task", *columns]].drop_duplicates("task").itertuples(index=False):
        task, *values = row
        found[task] = {name: own for name, own in zip(columns, values, strict=True) if own}
    return found
