"""Writing labels and annotations to a path or a stream."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import PurePath
from typing import IO, Any, Literal, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from crowdwise import progress
from crowdwise.annotations.table import Annotations
from crowdwise.errors import (
    AnnotationError,
    FormatError,
    MissingExtraError,
    ParameterError,
    explain,
)
from crowdwise.io.atomic import replace_file
from crowdwise.io.digits import round_floats
from crowdwise.io.losses import (
    warn_about_duplicates,
    warn_about_losses,
    warn_about_spaces,
    warn_about_words,
)
from crowdwise.io.values import guard_values
from crowdwise.typing import Array

SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
            ".parquet": "parquet", ".pq": "parquet", ".npy": "snorkel"}  # fmt: skip
ROWS = 100_000  # written at a time
DIGITS = 6  # of numbers in result tables
T = TypeVar("T")
Target: TypeAlias = str | PathLike[str] | IO[str] | IO[bytes]
Writer: TypeAlias = Callable[[T, IO[Any]], None]  # text or bytes, as the kind asks


def write_labels(
    target: Target, frame: pd.DataFrame, format: str | None = None, *, digits: int | None = DIGITS
) -> None:
    """Write a table of labels to a path or a stream.

    ``format`` is csv, tsv, json, jsonl or parquet; by default the path's extension decides. A
    path ending in ``.gz`` is compressed. The file appears whole or not at all. In CSV and
    TSV, numbers that are not whole have this many ``digits``; None keeps them all.
    """
    if digits is not None and _find_kind(_name_of(target), format, TABLES) in ("csv", "tsv"):
        frame = round_floats(frame, digits)
    _write(target, frame, format, TABLES)


def _name_of(target: Target) -> str:
    return "" if hasattr(target, "write") else str(target)


def refuse_other_tables(path: str | PathLike[str]) -> None:
    """Refuse a path without the extension of a table, before any work is done."""
    _find_kind(str(path), None, TABLES)


def write_annotations(target: Target, annotations: Annotations, format: str | None = None) -> None:
    """Write annotations to a path or a stream.

    ``format`` is one of ``WRITERS``: csv, tsv, json, jsonl or parquet with one row per
    annotation; ``wide`` (CSV, one column per worker); ``nested`` (JSON, ``{task: {worker:
    label}}``); ``snorkel`` (.npy, class numbers and -1). By default the extension decides. A
    warning says what the last three cannot hold.
    """
    warn_about_words(annotations.classes)
    _write(target, annotations, format, WRITERS)


def write_json(target: Target, value: object) -> None:
    """Write predictions or any other plain values as JSON."""
    _write(target, value, "json", {"json": _dump})


def _write(target: Target, value: T, format: str | None, writers: Mapping[str, Writer[T]]) -> None:
    """Choose the writer, and give it a stream to write to."""
    if not isinstance(target, str | PathLike) and hasattr(target, "write"):
        kind = _find_kind("", format, writers)
        _write_stream(target, value, kind, writers[kind])
        return
    name = str(target)
    kind = _find_kind(name, format, writers)
    with replace_file(name, binary=True) as file:
        if name.lower().endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                _write_stream(packed, value, kind, writers[kind])
        else:
            _write_stream(file, value, kind, writers[kind])


def _find_kind(name: str, format: str | None, writers: Iterable[str]) -> str:
    """Find the kind of file: as given, by its extension, or CSV without one."""
    suffix = PurePath(name.lower().removesuffix(".gz")).suffix
    kind = format or (SUFFIXES.get(suffix, suffix) if suffix else "csv")
    if kind not in writers:
        wanted = f"format={format!r}" if format else f"The suffix {suffix!r} of {name}"
        raise ParameterError(
            explain(
                f"{wanted} is not a format that can be written here.",
                expected=", ".join(writers),
                fix="change the extension, or give the format: --to csv",
            )
        )
    return kind


def _write_stream(stream: Any, value: T, kind: str, writer: Writer[T]) -> None:
    """Write text to a stream of text or bytes, or bytes to one of bytes."""
    is_text = isinstance(stream, io.TextIOBase)
    if kind in BINARY:
        writer(value, stream.buffer if is_text and hasattr(stream, "buffer") else stream)
    elif is_text:
        writer(value, stream)
    else:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        try:
            writer(value, text)
        finally:
            text.detach()  # flushes, and leaves the stream open


def _write_csv(
    frame: pd.DataFrame, file: IO[str], texts: Mapping[str, Array] | None = None, sep: str = ","
) -> None:
    """Write delimited text; ``texts`` are the distinct values of columns, if known."""
    if texts is None:
        columns = [(str(k), own) for k, own in frame.items() if not is_numeric_dtype(own.dtype)]
        texts = {name: own.unique() for name, own in columns}
    for name, values in texts.items():
        warn_about_duplicates(values, name)
    quoting = _choose_quoting(frame.columns, *texts.values())
    frame = _guard_formulas(frame, texts)
    options: Any = {"index": False, "lineterminator": "\n", "sep": sep, "quoting": quoting}
    with progress.bar("writing", len(frame), "row") as bar:
        for start in range(0, max(len(frame), 1), ROWS):
            part = frame.iloc[start : start + ROWS]
            part.to_csv(file, header=start == 0, **options)
            bar.advance(len(part))


def _guard_formulas(frame: pd.DataFrame, texts: Mapping[str, Array]) -> pd.DataFrame:
    """Put an apostrophe before anything a spreadsheet would run, including titles."""
    for name, values in texts.items():
        if changed := guard_values(values):
            own = frame[name].astype(object)
            frame = frame.assign(**{name: own.map(changed).where(own.isin(changed), own)})
    return frame.rename(columns=guard_values(frame.columns))


def _write_tsv(
    frame: pd.DataFrame, file: IO[str], texts: Mapping[str, Array] | None = None
) -> None:
    _write_csv(frame, file, texts, "\t")


def _choose_quoting(*texts: Iterable[object]) -> Literal[0, 2]:
    """Quote where needed; quote all text if some of it has a carriage return."""
    ends = any("\r" in text for part in texts for text in part if isinstance(text, str))
    return csv.QUOTE_NONNUMERIC if ends else csv.QUOTE_MINIMAL


def _write_json(frame: pd.DataFrame, file: IO[str]) -> None:
    """Write a list of records one by one, giving the same text as the whole list at once."""
    opening = "["
    for record in _list_records(frame):
        text = json.dumps(record, ensure_ascii=False, indent=1, default=str)
        indented = text.replace("\n", "\n ")
        file.write(f"{opening}\n {indented}")
        opening = ","
    file.write("\n]\n" if len(frame) else "[]\n")


def _write_jsonl(frame: pd.DataFrame, file: IO[str]) -> None:
    for record in _list_records(frame):
        file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")


def _write_parquet(frame: pd.DataFrame, file: IO[bytes]) -> None:
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError.of("Writing Parquet", "pyarrow", "parquet") from None
    try:
        frame.to_parquet(file, index=False)
    except pa.ArrowException as error:
        raise FormatError(
            explain(
                "A column cannot be written to Parquet.",
                first=str(error).splitlines()[0],
                expected="values of one type in every column",
                fix="write CSV or JSON instead",
            )
        ) from error


def _dump(value: object, file: IO[str]) -> None:
    json.dump(value, file, ensure_ascii=False, indent=1, default=str)
    file.write("\n")


def _list_records(frame: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield rows as plain values, with None for missing ones."""
    columns = [frame[name].astype(object).where(frame[name].notna(), None) for name in frame]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row in progress.track(rows, "writing", len(frame), "row"):
        yield dict(zip(map(str, frame.columns), row, strict=True))


def _to_long(annotations: Annotations) -> pd.DataFrame:
    """Return one row per annotation, with gold if known."""
    frame = annotations.to_frame()
    if annotations.gold is not None:
        names = np.array([*annotations.classes.tolist(), None], dtype=object)  # -1 selects None
        frame["gold"] = names[annotations.gold[annotations.task]]
    return frame


def _list_texts(annotations: Annotations) -> dict[str, Array]:
    return {"task": annotations.tasks, "worker": annotations.workers, "label": annotations.classes}


def _make_long_writer(
    write: Callable[[pd.DataFrame, IO[str], Mapping[str, Array]], None],
) -> Writer[Annotations]:
    """Make a writer of text that refuses empty names, which would be read as missing."""

    def write_text(annotations: Annotations, file: IO[str]) -> None:
        for names in _list_texts(annotations).values():
            if names.dtype == object and "" in names.tolist():
                raise AnnotationError(
                    explain(
                        "An empty name cannot be written to a text file.",
                        expected="names that are not empty",
                        fix="rename it, or write JSON or Parquet",
                    )
                )
        write(_to_long(annotations), file, _list_texts(annotations))

    return write_text


def _write_wide(annotations: Annotations, file: IO[str]) -> None:
    warn_about_losses(annotations, "A wide table")
    warn_about_spaces(annotations.workers)
    for role, names in _list_texts(annotations).items():
        warn_about_duplicates(names, role)
    quoting = _choose_quoting(*_list_texts(annotations).values())
    matrix = annotations.to_matrix(missing="")  # None would make floats of integers
    if changed := guard_values(annotations.classes):
        matrix = matrix.map(lambda label: changed.get(label, label))
    for axis, names in ((0, annotations.tasks), (1, annotations.workers)):
        if changed := guard_values(names):
            guarded = [changed.get(name, name) for name in names.tolist()]
            matrix = matrix.set_axis(
                pd.Index(guarded, dtype=object, tupleize_cols=False), axis=axis
            )
    matrix.rename_axis(index="task").to_csv(file, lineterminator="\n", quoting=quoting)


def _write_nested(annotations: Annotations, file: IO[str]) -> None:
    warn_about_losses(annotations, "{task: {worker: label}}")
    warn_about_duplicates(annotations.tasks, "task")
    warn_about_duplicates(annotations.workers, "worker")
    _dump(annotations.to_dict(), file)


def _write_snorkel(annotations: Annotations, file: IO[bytes]) -> None:
    warn_about_losses(annotations, "A label matrix")
    np.save(file, annotations.to_snorkel())


BINARY = ("parquet", "snorkel")
TABLES: dict[str, Writer[pd.DataFrame]] = {
    "csv": _write_csv,
    "tsv": _write_tsv,
    "json": _write_json,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}
WRITERS: dict[str, Writer[Annotations]] = {
    "csv": _make_long_writer(_write_csv),
    "tsv": _make_long_writer(_write_tsv),
    "json": lambda annotations, file: _write_json(_to_long(annotations), file),
    "jsonl": lambda annotations, file: _write_jsonl(_to_long(annotations), file),
    "parquet": lambda annotations, file: _write_parquet(_to_long(annotations), file),
    "wide": _write_wide,
    "nested": _write_nested,
    "snorkel": _write_snorkel,
}
