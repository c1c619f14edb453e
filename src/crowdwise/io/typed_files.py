"""Files with types of their own: JSON, JSONL, Parquet and NumPy."""

from __future__ import annotations

import codecs
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from reprlib import repr as shorten
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from crowdwise.annotations.grouping import is_word
from crowdwise.errors import FormatError, MissingExtraError, explain, plural
from crowdwise.io.document import (
    SAMPLE,
    Document,
    File,
    Matrix,
    Record,
    RecordTable,
    Table,
    Tree,
    to_records,
)
from crowdwise.io.triples import find_records, find_rows
from crowdwise.io.values import Cell
from crowdwise.memory import refuse_too_large, show_bytes
from crowdwise.typing import Array

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

T = TypeVar("T")


def parse_value(value: Cell, name: str, stem: str) -> Document:
    """Make a document of the result of ``json.loads``, or an object of that form."""
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return RecordTable(value, name, stem)
    if isinstance(value, list) and value and all(isinstance(row, list | tuple) for row in value):
        return _parse_rows(value, name, stem)
    if isinstance(value, dict) and value:
        return _parse_object(value, name, stem)
    raise FormatError(
        explain(
            f"{name} holds {'nothing' if value in ([], {}, None) else 'no records'}.",
            expected="a list of objects, or an object of objects such as {task: {worker: label}}",
            fix="export it again, or give another file",
        )
    )


def _parse_rows(value: list[Sequence[Cell]], name: str, stem: str) -> Document:
    """Parse triples or a table of labels; if rows have no titles, a note says which."""
    rows = find_rows(value, name)
    if rows is None:
        matrix = Matrix(_as_grid(value, name), name, stem)
        n_workers = matrix.array.shape[1]
        matrix.notes = (f"each row read as a task, with {plural(n_workers, 'label')}",)
        return matrix
    table = RecordTable(rows, name, stem)
    if len(rows) == len(value):
        table.notes = ("each row read as a task, a worker and a label",)
    return table


class ParquetTable(Table):
    """A Parquet file; columns are read on request."""

    def __init__(self, file: File) -> None:
        super().__init__(file.name, file.stem)
        self.file = file
        self.columns = list(self._open(lambda parquet: parquet.schema_arrow.names))
        self.n_rows = int(self._open(lambda parquet: parquet.metadata.num_rows))

    @property
    def sample(self) -> list[Record]:
        def first(parquet: ParquetFile) -> pd.DataFrame:
            batch = next(parquet.iter_batches(batch_size=SAMPLE), None)
            return _to_pandas(parquet.schema_arrow.empty_table() if batch is None else batch)

        return to_records(self._open(first), self.columns)

    def frame(self, columns: list[str]) -> pd.DataFrame:
        self.refuse_duplicates(columns)
        wanted = list(dict.fromkeys(columns))
        self.refuse_too_many(self.n_rows, wanted)
        read = self._open(lambda parquet: _to_pandas(_as_codes(parquet.read(columns=wanted))))
        return read[wanted]

    def records(self) -> list[Record]:
        self.refuse_too_many(self.n_rows, self.columns)
        return to_records(self._open(lambda parquet: _to_pandas(parquet.read())), self.columns)

    def _open(self, use: Callable[[ParquetFile], T]) -> T:
        try:
            from pyarrow.parquet import ParquetFile
        except ImportError:
            raise MissingExtraError.of(f"Reading {self.name}", "pyarrow", "parquet") from None
        try:
            with self.file.open() as handle:
                return use(ParquetFile(handle))
        except Exception as error:  # damage can cause any error
            raise _damage_error(self.name, error, "a complete Parquet file") from error


def _as_codes(table: pa.Table) -> pa.Table:
    """Return the table with each distinct text of a column stored once."""
    from pyarrow import types

    for place, field in enumerate(table.schema):
        if types.is_string(field.type) or types.is_large_string(field.type):
            table = table.set_column(place, field.name, table[place].dictionary_encode())
    return table


def _to_pandas(table: pa.Table) -> pd.DataFrame:
    plain = table.replace_schema_metadata(None)
    return plain.to_pandas(ignore_metadata=True, integer_object_nulls=True)


def parse_json(file: File) -> Document:
    text = file.read_text()
    try:
        value = load_json(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{"):
            return parse_jsonl(file)
        raise _json_error(file, error.lineno, error) from None
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number too long
        raise _json_error(file, 0, error) from None
    return parse_value(value, file.name, file.stem)


def load_json(text: str) -> Cell:
    """Parse JSON like ``json.loads``, but refuse an object with the same key twice."""
    return json.loads(text, object_pairs_hook=_refuse_twice)


class RepeatedKeyError(ValueError):
    """An object has the same key twice; ``json.loads`` would keep the last."""


def _refuse_twice(pairs: list[tuple[str, Cell]]) -> Record:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        twice = next(key for key, n in times.items() if n > 1)
        given = " and ".join(shorten(value) for key, value in pairs if key == twice)
        raise RepeatedKeyError(f"{twice!r}: {given}")
    return found


def parse_jsonl(file: File) -> Document:
    rows: list[Record] = []
    for number, line in enumerate(file.read_text().split("\n"), start=1):
        try:
            row = load_json(line) if line.strip() else {}
        except (RecursionError, ValueError) as error:
            raise _json_error(file, number, error) from None
        if not isinstance(row, dict):
            raise _json_error(file, number, ValueError(f"a {type(row).__name__}, not an object"))
        rows += [row] if line.strip() else []
    return RecordTable(rows, file.name, file.stem)


def _json_error(file: File, line: int, error: Exception) -> FormatError:
    column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
    what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    if isinstance(error, RepeatedKeyError):
        return FormatError(
            explain(
                f"{file.name} has the same key twice in an object.",
                first=f"line {line:,}: {what}" if line else what,
                expected="each key once, such as one label for each worker of a task",
                fix="keep one of them, or rename the key",
            )
        )
    return FormatError(
        explain(
            f"{file.name} is not valid JSON.",
            first=f"line {line:,}{column}: {what}" if line else what,
            expected="one JSON value, or one object on each line (JSONL)",
            fix="export it again; it may have been cut short",
        )
    )


def _parse_object(value: dict[str, Cell], name: str, stem: str) -> Document:
    inner = list(value.values())
    if len(inner) == 1 and isinstance(inner[0], list):  # {"data": [...]}
        return parse_value(inner[0], name, stem)
    if all(isinstance(part, list) for part in inner) and len(set(map(len, inner))) == 1:
        rows = zip(*inner, strict=True)  # {"task": [...], "worker": [...]}
        return RecordTable([dict(zip(value, row, strict=True)) for row in rows], name, stem)
    records = find_records(value)
    if records is not None:
        return RecordTable(records, name, stem)
    return Tree(value, name, stem)


def _as_grid(rows: list[Sequence[Cell]], name: str) -> Array:
    nested = any(isinstance(cell, list | dict) for row in rows for cell in row)
    if nested or len({len(row) for row in rows}) > 1:
        raise FormatError(
            explain(
                f"{name} is a list of lists that are not a table.",
                expected="one row per task and one cell per worker, null where there is no label",
                fix="write null where a worker gave no label",
            )
        )
    return np.array(rows, dtype=object).reshape(len(rows), -1)


def parse_npy(file: File) -> Document:
    try:
        array = np.load(io.BytesIO(file.read()), allow_pickle=False)
    except Exception as error:  # damage can cause any error
        expected = "a NumPy array of integers, tasks x workers, -1 where there is no label"
        raise _damage_error(file.name, error, expected) from error
    return Matrix(array, file.name, file.stem)


def parse_integers(file: File) -> Array | None:
    """Read a file of integers between spaces, or None if it is not one; gaps are NA etc."""
    start = file.read(1 << 16).removeprefix(codecs.BOM_UTF8).lstrip()
    first = start.split(b"\n")[0].split()
    if len(first) < 2 or not all(_is_integer(cell.decode("latin-1")) for cell in first):
        return None
    refuse_too_large(file.name, 2 * file.size, f"twice its size of {show_bytes(file.size)}")
    try:
        data = file.read().removeprefix(codecs.BOM_UTF8)
        return np.loadtxt(io.BytesIO(data), dtype=np.int64, ndmin=2)
    except ValueError:
        rows = [line.split() for line in file.read_text().splitlines() if line.strip()]
    if len({len(row) for row in rows}) > 1 or not all(_is_integer(c) for row in rows for c in row):
        return None
    return np.array([[None if is_word(c) else int(c) for c in row] for row in rows], dtype=object)


def _is_integer(cell: str) -> bool:
    return cell.removeprefix("-").isdigit() or is_word(cell)


def _damage_error(name: str, error: Exception, expected: str) -> FormatError:
    first = (str(error) or type(error).__name__).splitlines()[0]
    fix = "write it again; it may have been cut short"
    return FormatError(explain(f"{name} cannot be read.", first=first, expected=expected, fix=fix))
