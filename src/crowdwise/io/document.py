"""A file: its bytes, the caller's options, and its parsed content."""

from __future__ import annotations

import io
import stat
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import BinaryIO

import numpy as np
import pandas as pd

from crowdwise import progress
from crowdwise.annotations.grouping import WORDS
from crowdwise.errors import FileError, FormatError, explain
from crowdwise.io.values import Cell
from crowdwise.memory import refuse_too_large
from crowdwise.typing import Array

CELL = 8  # minimum number of bytes per cell in memory
LITTLE = 1 << 16  # bytes that are always affordable and fast to read
SAMPLE = 200  # rows inspected to recognize a format
READABLE = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson", ".manifest", ".parquet",
            ".pq", ".npy", ".xlsx", ".eval")  # fmt: skip
Record = Mapping[str, Cell]  # one row


@dataclass(frozen=True)
class File:
    """The bytes of one file: still on disk, or unpacked in memory."""

    name: str
    path: Path | None = None
    data: bytes = b""
    notes: tuple[str, ...] = ()  # on why it was chosen

    @property
    def stem(self) -> str:
        """The file's name without folders and without the extensions for its kind."""
        plain = remove_ending(PurePath(self.name).name, (".gz",))
        return remove_ending(plain, READABLE)

    @property
    def suffix(self) -> str:
        return PurePath(remove_ending(self.name.lower(), (".gz",))).suffix

    @property
    def size(self) -> int:
        return len(self.data) if self.path is None else self.path.stat().st_size

    def open(self) -> BinaryIO:
        return io.BytesIO(self.data) if self.path is None else self.path.open("rb")

    @contextmanager
    def open_shown(self) -> Iterator[BinaryIO]:
        """Open the file; its progress is shown if asked for."""
        if self.size < LITTLE:
            with self.open() as handle:
                yield handle
            return
        what = f"reading {PurePath(self.name).name}"
        with self.open() as handle, progress.reading(handle, what, self.size) as counted:
            yield counted

    def read(self, most: int = -1) -> bytes:
        with explain_read_errors(self.name), self.open() as handle:
            return handle.read(most)

    def read_text(self) -> str:
        data = self.read()
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise not_utf8(self.name, error) from None


def remove_ending(name: str, endings: Iterable[str]) -> str:
    """Remove the first of these endings that the name has, in any case; never all of it."""
    found = (end for end in endings if name.lower().endswith(end) and len(name) > len(end))
    return name[: -len(end)] if (end := next(found, "")) else name


@contextmanager
def explain_read_errors(name: str | Path) -> Iterator[None]:
    """Turn errors of the operating system about a file into a :class:`FileError`."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            explain(
                f"{name} cannot be read.",
                first=error.strerror or str(error),
                expected="a file that this user may read",
                fix="check the path and its permissions",
            )
        ) from error


def refuse_endless(mode: int, name: str, *, pipes: bool = True) -> None:
    """Refuse devices, which may never end, sockets, and pipes unless allowed."""
    device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
    pipe = stat.S_ISFIFO(mode) and not pipes
    if device or pipe or stat.S_ISSOCK(mode):
        raise FileError(
            explain(
                f"{name} is a {'device' if device else 'pipe' if pipe else 'socket'}, not a file.",
                expected="a file",
                fix="copy the content to a file",
            )
        )


def not_utf8(name: str, error: UnicodeDecodeError) -> FormatError:
    """Return the error for text in another encoding."""
    return FormatError(
        explain(
            f"The text of {name} is not UTF-8.",
            first=f"byte {error.object[error.start]:#04x} at {error.start:,}",
            expected="text in UTF-8 or UTF-16",
            fix="save it again with the encoding UTF-8",
        )
    )


@dataclass(frozen=True)
class ReadOptions:
    """What the caller said about a file; it overrides what is recognized."""

    task: str | None = None
    worker: str | None = None
    label: str | None = None
    weight: str | None = None
    time: str | None = None
    gold: str | None = None
    question: str | None = None
    missing: Cell = "auto"
    rejected: bool = False
    words: frozenset[str] = WORDS  # text that means "no label"
    named: bool = False  # whether the caller named the format
    score: str | None = None

    @property
    def asked(self) -> str | None:
        """The question or column with the labels."""
        return self.question or self.label

    @property
    def columns(self) -> dict[str, str]:
        """The columns given by the caller, by role."""
        named = {
            "task": self.task,
            "worker": self.worker,
            "weight": self.weight,
            "time": self.time,
            "gold": self.gold,
            "score": self.score,
            "label": self.asked,
        }
        return {role: name for role, name in named.items() if name is not None}


class Document:
    """A table, records, a tree or a matrix; ``name`` and ``stem`` are its file's."""

    untyped = False  # whether all values are text that may be numbers
    columns: Sequence[str] = ()
    notes: tuple[str, ...] = ()  # on what was changed while reading it
    task: str | None = None  # the column of task names, if its own name does not say so

    def __init__(self, name: str, stem: str) -> None:
        self.name, self.stem = name, stem

    @property
    def sample(self) -> Sequence[Record]:
        """The first rows, with None for empty cells."""
        return []


class Table(Document, ABC):
    """Rows and named columns."""

    @property
    def titles(self) -> Sequence[object]:
        """The names of the columns unchanged, which may not be text."""
        return self.columns

    @abstractmethod
    def frame(self, columns: list[str]) -> pd.DataFrame:
        """Return these columns of all rows."""

    @abstractmethod
    def records(self) -> list[Record]:
        """Return all rows as dicts."""

    def refuse_too_many(self, n_rows: int, columns: Sequence[str]) -> None:
        """Refuse to read more cells than fit into memory."""
        if (needed := CELL * n_rows * len(columns)) > LITTLE:
            why = f"about {n_rows:,} rows of {len(columns):,} columns to read"
            refuse_too_large(self.name, needed, why)

    def refuse_duplicates(self, columns: list[str]) -> None:
        """Refuse to read a column whose name occurs twice."""
        times = Counter(self.columns)
        twice = [name for name in columns if times[name] > 1]
        if twice:
            what = f"{self.name} has the column {twice[0]!r} more than once."
            fix = "rename or remove one of them"
            if not twice[0]:
                what = f"{self.name} has {times['']} columns without a name."
                fix = "name all columns in the first row, without merged cells"
            expected = "a different name for every column that is used"
            raise FormatError(explain(what, expected=expected, fix=fix))


class FrameTable(Table):
    """A pandas frame."""

    def __init__(
        self,
        frame: pd.DataFrame,
        name: str = "The frame",
        stem: str = "frame",
        *,
        task: str | None = None,
    ) -> None:
        super().__init__(name, stem)
        self.whole, self.task = frame, task
        self.columns = list(map(str, frame.columns))

    @property
    def titles(self) -> Sequence[object]:
        return list(self.whole.columns)

    @cached_property
    def sample(self) -> list[Record]:
        return to_records(self.whole.head(SAMPLE), self.columns)

    def frame(self, columns: list[str]) -> pd.DataFrame:
        self.refuse_duplicates(columns)
        place = {name: number for number, name in enumerate(self.columns)}
        places = [place[name] for name in dict.fromkeys(columns)]
        chosen = self.whole.iloc[:, places].reset_index(drop=True)
        return chosen.set_axis(list(dict.fromkeys(columns)), axis=1)

    def records(self) -> list[Record]:
        return to_records(self.whole, self.columns)


class RecordTable(Table):
    """A list of dicts, which may have different keys."""

    def __init__(self, rows: list[Record], name: str, stem: str) -> None:
        super().__init__(name, stem)
        self.rows = rows
        self.columns = list(dict.fromkeys(str(key) for row in rows for key in row))

    @property
    def sample(self) -> list[Record]:
        return self.rows[:SAMPLE]

    def frame(self, columns: list[str]) -> pd.DataFrame:
        cells = {}
        for name in dict.fromkeys(columns):
            cells[name] = np.empty(len(self.rows), dtype=object)
            cells[name][:] = [row.get(name) for row in self.rows]
        return pd.DataFrame(cells, dtype=object)

    def records(self) -> list[Record]:
        return self.rows


class Tree(Document):
    """A JSON object that is not a list of records."""

    def __init__(self, value: dict[str, Cell], name: str, stem: str) -> None:
        super().__init__(name, stem)
        self.value = value

    @property
    def sample(self) -> list[Record]:
        values = list(self.value.values())[:SAMPLE]
        return [value for value in values if isinstance(value, dict)]


JSON = (RecordTable, Tree)  # from JSON, unless it is an array of labels


class Matrix(Document):
    """An array of labels, one row per task and one column per worker."""

    def __init__(self, array: Array, name: str, stem: str) -> None:
        super().__init__(name, stem)
        self.array = array


def to_records(frame: pd.DataFrame, columns: Sequence[str]) -> list[Record]:
    """Return the rows as dicts, with None for empty cells."""
    cells = frame.astype(object).to_numpy(copy=True)
    cells[pd.isna(cells)] = None
    return [dict(zip(columns, row, strict=True)) for row in cells.tolist()]
