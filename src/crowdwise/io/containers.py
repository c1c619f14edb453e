"""Bytes to content: which kind of file it is, and what it says."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.errors import FormatError, MissingExtraError, explain
from crowdwise.io.content import SAMPLE, Content, Matrix, Records, Table, Tree, as_dicts
from crowdwise.io.files import File
from crowdwise.io.text_table import TextTable
from crowdwise.typing import Array

BINARY = {b"PAR1": "parquet", b"\x93NUM": "npy"}
SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "json", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet", ".npy": "npy",
}  # fmt: skip


def open_content(file: File, container: str | None = None) -> Content:
    """Parse a file; what it is shows in its first bytes, then in its name."""
    start = file.read(1 << 12)
    if not start.removeprefix(b"\xef\xbb\xbf").strip():
        raise FormatError(
            explain(f"{file.name} is empty.", expected="a table, or the export of a labeling tool")
        )
    kind = container or BINARY.get(start[:4]) or SUFFIXES.get(file.suffix) or _guess(start, file)
    if kind == "jsonl" and start.lstrip().startswith(b"["):
        kind = "json"
    return CONTAINERS[kind](file)


def from_value(value: Any, name: str, stem: str) -> Content:
    """Content from what ``json.loads`` returned, or from an object of that shape."""
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return Records(value, name, stem)
    if isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        return Matrix(_grid(value, name), name, stem)
    if isinstance(value, dict) and value:
        return _from_dict(value, name, stem)
    raise FormatError(
        explain(
            f"{name} holds {'nothing' if value in ([], {}, None) else 'no records'}.",
            expected="a list of objects, or an object of objects such as {task: {worker: label}}",
        )
    )


class ParquetTable(Table):
    """A Parquet file; columns are read when they are asked for."""

    def __init__(self, file: File) -> None:
        super().__init__(file.name, file.stem)
        self.file = file
        self.columns = list(self._open(lambda parquet: parquet.schema_arrow.names))

    @property
    def sample(self) -> list[dict[str, Any]]:
        def first(parquet: Any) -> Any:
            batch = next(parquet.iter_batches(batch_size=SAMPLE), None)
            return _to_pandas(parquet.schema_arrow.empty_table() if batch is None else batch)

        return as_dicts(self._open(first), self.columns)

    def frame(self, columns: list[str]) -> pd.DataFrame:
        self.refuse_twins(columns)
        wanted = list(dict.fromkeys(columns))
        return self._open(lambda parquet: _to_pandas(parquet.read(columns=wanted))[wanted])

    def records(self) -> list[dict[str, Any]]:
        return as_dicts(self._open(lambda parquet: _to_pandas(parquet.read())), self.columns)

    def _open(self, use: Callable[[Any], Any]) -> Any:
        try:
            from pyarrow.parquet import ParquetFile
        except ImportError:
            raise MissingExtraError.of(f"Reading {self.name}", "pyarrow", "parquet") from None
        try:
            with self.file.open() as handle:
                return use(ParquetFile(handle))
        except Exception as error:  # a damaged footer can trip Arrow in any way
            raise _unreadable(self.name, error, "a whole Parquet file") from error


def _to_pandas(table: Any) -> pd.DataFrame:
    plain = table.replace_schema_metadata(None)
    return plain.to_pandas(ignore_metadata=True, integer_object_nulls=True)


def _guess(start: bytes, file: File) -> str:
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if b"\0" in start and start[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError(
            explain(
                f"{file.name} is a binary file of a kind that is not known.",
                first=f"it begins with {start[:8]!r}",
                expected=f"one of {', '.join(CONTAINERS)}, plain, gzip or zip",
            )
        )
    return "json" if text[:1] in (b"{", b"[") else "csv"


def _csv(file: File) -> Content:
    numbers = _integers(file) if file.suffix in (".txt", "") else None
    return TextTable(file) if numbers is None else Matrix(numbers, file.name, file.stem)


def _tsv(file: File) -> Content:
    return TextTable(file, "\t")


def _json(file: File) -> Content:
    text = file.text()
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{"):
            return _jsonl(file)
        raise _bad_json(file, error.lineno, error) from None
    except (RecursionError, ValueError) as error:  # nested too deep, a number too long
        raise _bad_json(file, 1, error) from None
    return from_value(value, file.name, file.stem)


def _jsonl(file: File) -> Content:
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(file.text().split("\n"), start=1):
        try:
            row = json.loads(line) if line.strip() else None
        except (RecursionError, ValueError) as error:
            raise _bad_json(file, number, error) from None
        if row is not None and not isinstance(row, dict):
            raise _bad_json(file, number, ValueError(f"a {type(row).__name__}, not an object"))
        rows += [row] if row is not None else []
    return Records(rows, file.name, file.stem)


def _bad_json(file: File, line: int, error: Exception) -> FormatError:
    column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
    what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return FormatError(
        explain(
            f"{file.name} is not valid JSON.",
            first=f"line {line:,}{column}: {what}",
            expected="one JSON value, or one object on each line (JSONL)",
            fix="export it again; it may have been cut short",
        )
    )


def _from_dict(value: dict[str, Any], name: str, stem: str) -> Content:
    inner = list(value.values())
    if len(inner) == 1 and isinstance(inner[0], list):  # {"data": [...]}
        return from_value(inner[0], name, stem)
    if all(isinstance(part, list) for part in inner) and len(set(map(len, inner))) == 1:
        rows = zip(*inner, strict=True)  # {"task": [...], "worker": [...]}
        return Records([dict(zip(value, row, strict=True)) for row in rows], name, stem)
    return Tree(value, name, stem)


def _grid(rows: list[list[Any]], name: str) -> Array:
    nested = any(isinstance(cell, list | dict) for row in rows for cell in row)
    if nested or len({len(row) for row in rows}) > 1:
        raise FormatError(
            explain(
                f"{name} is a list of lists that make no rectangle.",
                expected="one row per task and one cell per worker, null where there is no label",
            )
        )
    return np.array(rows, dtype=object).reshape(len(rows), -1)


def _npy(file: File) -> Content:
    try:
        array = np.load(io.BytesIO(file.read()), allow_pickle=False)
    except Exception as error:  # a damaged header can trip NumPy in any way
        expected = "a NumPy array of integers, tasks x workers, -1 where there is no label"
        raise _unreadable(file.name, error, expected) from error
    return Matrix(array, file.name, file.stem)


def _integers(file: File) -> Array | None:
    """A matrix written as integers between spaces, if the file is one."""
    first = file.read(1 << 16).split(b"\n")[0].split()
    if len(first) < 2 or not all(cell.lstrip(b"-").isdigit() for cell in first):
        return None
    try:
        return np.loadtxt(io.BytesIO(file.read()), dtype=np.int64, ndmin=2)
    except ValueError:
        return None


def _unreadable(name: str, error: Exception, expected: str) -> FormatError:
    first = (str(error) or type(error).__name__).splitlines()[0]
    fix = "write it again; it may have been cut short"
    return FormatError(explain(f"{name} cannot be read.", first=first, expected=expected, fix=fix))


CONTAINERS: dict[str, Callable[[File], Content]] = {
    "csv": _csv,
    "tsv": _tsv,
    "json": _json,
    "jsonl": _jsonl,
    "parquet": ParquetTable,
    "npy": _npy,
}
