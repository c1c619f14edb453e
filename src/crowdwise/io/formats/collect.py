"""Shared parts of the formats: a collector of annotations, record fields, questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from crowdwise.annotations.grouping import Aside
from crowdwise.errors import FormatError, explain, listing
from crowdwise.io.build import LongTable
from crowdwise.io.document import Document, Record, RecordTable, Table, Tree
from crowdwise.io.values import SCALARS, Cell, encode_values, refuse_nested
from crowdwise.typing import Array

JOIN = " + "
TRUE = ("true", "1", "1.0", "yes", "t")


class Collector:
    """Collects annotations, and counts why records are left out."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.tasks: list[Cell] = []
        self.workers: list[Cell] = []
        self.labels: list[Cell] = []
        self.times: list[Cell] = []
        self.truths: dict[Cell, set[Cell]] = {}
        self.counts: Counter[str] = Counter()
        self.joined: set[str] = set()
        self.like_joined: set[str] = set()  # single labels that look like several joined
        self.aside: Counter[str] = Counter()  # records that are not taken as annotations

    def add(self, task: Cell, worker: Cell, label: Cell, time: Cell = None) -> None:
        """Add an annotation; several labels at once become one label with their names joined."""
        single = join_labels(label)
        if isinstance(label, list) and len(label) > 1:
            self.count("annotations of several labels, joined with ' + '")
            self.joined.add(str(single))
        elif isinstance(single, str) and JOIN in single:
            self.like_joined.add(single)
        self.tasks.append(refuse_nested(task, "task", self.where))
        self.workers.append(worker)
        self.labels.append(single)
        self.times.append(time)

    def take_truth(self, task: Cell, truth: Cell, what: str) -> None:
        """Use a record as the truth of its task, if it has both."""
        if self.add_truth(task, truth):
            self.aside[f"{what} taken as gold"] += 1
        else:
            self.count_left_out(f"{what} without a task or a label")

    def add_truth(self, task: Cell, truth: Cell) -> bool:
        """Add a truth that the export has for a task; returns whether both are given."""
        single = refuse_nested(join_labels(truth), "label", self.where)
        if task is None or single is None:
            return False
        self.truths.setdefault(refuse_nested(task, "task", self.where), set()).add(single)
        return True

    def count(self, what: str) -> None:
        """Count something to be noted about many annotations."""
        self.counts[what] += 1

    def count_left_out(self, what: str) -> None:
        """Count a record that is left out."""
        self.aside[f"{what} left out"] += 1

    def to_long(self, *notes: str, untyped: tuple[str, ...] = ()) -> LongTable:
        """Make the table of all annotations, with notes on what was left out.

        A task with a truth but no annotation gets a row of its own.
        """
        self._refuse_alike()
        gold, labeled = self._single_truths(), set(self.tasks)
        alone = [task for task in gold if task not in labeled]
        for task in alone:
            self.add(task, None, None)
            self.count("tasks with a truth and no annotation")
        columns = {"task": self.tasks, "worker": self.workers, "label": self.labels}
        if any(time is not None for time in self.times):
            columns["time"] = self.times
        if gold:
            columns["gold"] = [gold.get(task) for task in self.tasks]
        frame = pd.DataFrame({k: encode_values(v, k, self.where) for k, v in columns.items()})
        counted = (f"{what}: {n:,}" for what, n in self.counts.items())
        aside = (Aside(what, n) for what, n in self.aside.items())
        return LongTable(frame, (*notes, *counted, *aside), untyped, added=len(alone))

    def _refuse_alike(self) -> None:
        """Refuse a label that looks like several others joined."""
        both = sorted(self.joined & self.like_joined)
        if both:
            raise FormatError(
                explain(
                    f"{self.where} has a label that looks like several labels joined.",
                    first=repr(both[0]),
                    expected=f"labels without {JOIN!r}, which joins the labels of one annotation",
                    fix="rename that label",
                )
            )

    def _single_truths(self) -> dict[Cell, Cell]:
        """Return the truth of each task with one; tasks with two different truths get none."""
        single = {task: next(iter(own)) for task, own in self.truths.items() if len(own) == 1}
        for _ in range(len(self.truths) - len(single)):
            self.count("tasks with two different truths, left without one")
        return single


def get_field(record: Record, path: str) -> Cell:
    """Return a value of a record, by key or path such as ``meta.id``; None if absent."""
    if path in record:
        return record[path]
    value: Cell = record
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def get_first(record: Record, paths: Iterable[str]) -> Cell:
    """Return the first of these values that the record has."""
    return next((value for path in paths if (value := get_field(record, path)) is not None), None)


def list_rows(document: Document, *paths: str) -> list[Record]:
    """List a document's records: its rows, or the first list at one of these paths."""
    if isinstance(document, RecordTable):
        return document.records()
    if not isinstance(document, Tree):
        return []
    found = next(
        (v for path in paths if isinstance(v := get_field(document.value, path), list)), []
    )
    return [row for row in found if isinstance(row, Mapping)]


def find_present(roles: Mapping[str, str], table: Table) -> dict[str, str]:
    """Return the roles whose column the table has."""
    return {role: name for role, name in roles.items() if name in table.columns}


def choose_question(
    asked: str | None,
    choices: Iterable[str],
    where: str,
    what: str = "question",
    option: str = "question",
) -> str:
    """Choose the one question to read: as asked, or the only one."""
    known = list(dict.fromkeys(choices))
    if asked is not None and asked in known:
        return asked
    if asked is None and len(known) == 1:
        return known[0]
    if asked is not None:
        fact = f"{where} has no {what} {asked!r}."
    else:
        fact = f"{where} has {len(known) or 'no'} {what}s to read labels from."
    raise FormatError(
        explain(
            fact,
            found=listing(known, 20) if known else "none",
            expected=f"one {what}",
            fix=f"choose one: {option}='…' in Python, --{option} … on the command line",
        )
    )


def find_true(column: pd.Series) -> Array:
    """Return which cells of a yes/no column say yes."""
    return column.astype(object).map(lambda cell: str(cell).strip().lower() in TRUE).to_numpy(bool)


def join_labels(values: Cell) -> Cell:
    """Join several labels of one annotation into one label; none becomes None."""
    if not isinstance(values, list | tuple | np.ndarray):
        return values
    if all(isinstance(value, SCALARS) for value in values):
        distinct = list({(isinstance(value, bool), value): value for value in values}.values())
        if len(distinct) < 2:
            return distinct[0] if distinct else None
        return JOIN.join(sorted(map(str, distinct)))
    return values
