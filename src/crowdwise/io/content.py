"""What a file holds once it is parsed, before anybody knows which tool wrote it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.errors import FormatError, explain
from crowdwise.typing import Array

SAMPLE = 200


class Content:
    """One of a table, records, a tree or a matrix; ``name`` and ``stem`` are its file's."""

    untyped = False  # whether all values are text that may stand for numbers
    columns: Sequence[str] = ()
    task: str | None = None  # the column that names the tasks, where its own name need not say so

    def __init__(self, name: str, stem: str) -> None:
        self.name, self.stem = name, stem

    @property
    def sample(self) -> list[dict[str, Any]]:
        """The first rows, with None for an empty cell."""
        return []


class Table(Content, ABC):
    """Rows and named columns."""

    @property
    def titles(self) -> Sequence[Any]:
        """The names of the columns as they are, which need not be text."""
        return self.columns

    @abstractmethod
    def frame(self, columns: list[str]) -> pd.DataFrame:
        """These columns of all rows."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """All rows as dicts."""

    def refuse_twins(self, columns: list[str]) -> None:
        """Refuse to take a column whose name another one has too."""
        times = Counter(self.columns)
        twins = [name for name in columns if times[name] > 1]
        if twins:
            raise FormatError(
                explain(
                    f"{self.name} has the column {twins[0]!r} more than once.",
                    expected="a name of its own for every column that is used",
                    fix="rename or remove one of them",
                )
            )


class Frame(Table):
    """A pandas frame."""

    def __init__(
        self,
        frame: Any,
        name: str = "The frame",
        stem: str = "frame",
        *,
        task: str | None = None,
    ) -> None:
        super().__init__(name, stem)
        self.whole, self.task = frame, task
        self.columns = list(map(str, frame.columns))

    @property
    def titles(self) -> Sequence[Any]:
        return list(self.whole.columns)

    @cached_property
    def sample(self) -> list[dict[str, Any]]:
        return as_dicts(self.whole.head(SAMPLE), self.columns)

    def frame(self, columns: list[str]) -> pd.DataFrame:
        self.refuse_twins(columns)
        place = {name: number for number, name in enumerate(self.columns)}
        places = [place[name] for name in dict.fromkeys(columns)]
        chosen = self.whole.iloc[:, places].reset_index(drop=True)
        return chosen.set_axis(list(dict.fromkeys(columns)), axis=1)

    def records(self) -> list[dict[str, Any]]:
        return as_dicts(self.whole, self.columns)


class Records(Table):
    """A list of dicts, which need not all have the same keys."""

    def __init__(self, rows: list[dict[str, Any]], name: str, stem: str) -> None:
        super().__init__(name, stem)
        self.rows = rows
        self.columns = list(dict.fromkeys(str(key) for row in rows for key in row))

    @property
    def sample(self) -> list[dict[str, Any]]:
        return self.rows[:SAMPLE]

    def frame(self, columns: list[str]) -> pd.DataFrame:
        cells = {}
        for name in dict.fromkeys(columns):
            cells[name] = np.empty(len(self.rows), dtype=object)
            cells[name][:] = [row.get(name) for row in self.rows]
        return pd.DataFrame(cells)

    def records(self) -> list[dict[str, Any]]:
        return self.rows


class Tree(Content):
    """A JSON object that is no list of records."""

    def __init__(self, value: dict[str, Any], name: str, stem: str) -> None:
        super().__init__(name, stem)
        self.value = value

    @property
    def sample(self) -> list[dict[str, Any]]:
        values = list(self.value.values())[:SAMPLE]
        return [value for value in values if isinstance(value, dict)]


class Matrix(Content):
    """An array of numbers, one row a task and one column a worker."""

    def __init__(self, array: Array, name: str, stem: str) -> None:
        super().__init__(name, stem)
        self.array = array


@dataclass(frozen=True)
class Options:
    """What the caller said about a file; it overrules whatever is recognised."""

    task: str | None = None
    worker: str | None = None
    label: str | None = None
    weight: str | None = None
    time: str | None = None
    gold: str | None = None
    question: str | None = None
    missing: Any = "auto"
    rejected: bool = False

    @property
    def asked(self) -> str | None:
        """The question or column that holds the labels."""
        return self.question or self.label

    @property
    def columns(self) -> dict[str, str]:
        """The columns that are named, by their role."""
        roles = ("task", "worker", "weight", "time", "gold")
        named = {role: getattr(self, role) for role in roles} | {"label": self.asked}
        return {role: name for role, name in named.items() if name is not None}


@dataclass(frozen=True)
class Long:
    """One row an annotation, in columns task, worker, label, and weight, time, gold if known."""

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    untyped: tuple[str, ...] = ()  # columns whose text may stand for whole numbers
    names: dict[str, Any] = field(default_factory=dict)  # tasks and workers in their own order
    soft: dict[Any, str] | None = None  # the column of each class's probability
    guessed: bool = False  # whether columns were taken by their names alone

    def without(self, rows: Array, what: str) -> Long:
        """The table less these rows, with a note that says how many there were."""
        if not rows.any():
            return self
        note = f"{what} left out: {int(rows.sum()):,}"
        kept = self.frame.loc[~rows].reset_index(drop=True)
        return replace(self, frame=kept, notes=(*self.notes, note))


def as_dicts(frame: Any, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows as dicts, with None for an empty cell."""
    cells = frame.astype(object).to_numpy(copy=True)
    cells[pd.isna(cells)] = None
    return [dict(zip(columns, row, strict=True)) for row in cells.tolist()]
