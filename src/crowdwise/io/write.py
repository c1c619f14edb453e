"""Files out: labels and annotations."""

from __future__ import annotations

import csv
import gzip
import io
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from crowdwise.annotations.table import Annotations
from crowdwise.errors import (
    AnnotationError,
    FormatError,
    MissingExtraError,
    ParameterError,
    explain,
)
from crowdwise.io.atomic import replace_file
from crowdwise.typing import Array

SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
            ".parquet": "parquet", ".pq": "parquet", ".npy": "snorkel"}  # fmt: skip
Writer = Callable[[Any, Any], None]  # takes what to write, and a stream


def write_labels(target: Any, frame: pd.DataFrame, format: str | None = None) -> None:
    """Write a table of labels to a path or a stream.

    ``format`` is csv, tsv, json, jsonl or parquet; by default the path's suffix says it. A
    path that ends in ``.gz`` is packed. The file appears whole or not at all.
    """
    _write(target, frame, format, TABLES)


def refuse_other_tables(path: Any) -> None:
    """Refuse a path whose ending is no kind of table, before the work whose result goes there."""
    _kind(str(path), None, TABLES)


def write_annotations(target: Any, annotations: Annotations, format: str | None = None) -> None:
    """Write annotations to a path or a stream.

    ``format`` is one of ``WRITERS``: csv, tsv, json, jsonl or parquet with one row an
    annotation; ``wide`` (CSV, one column a worker); ``nested`` (JSON, ``{task: {worker:
    label}}``); ``snorkel`` (.npy, class numbers and -1). By default the suffix says it. A
    warning says what the last three have no place for.
    """
    _write(target, annotations, format, WRITERS)


def write_json(target: Any, value: Any) -> None:
    """Write predictions or anything else of plain types as JSON."""
    _write(target, value, "json", {"json": _dump})


def _write(target: Any, value: Any, format: str | None, writers: Mapping[str, Writer]) -> None:
    """Pick the writer, and give it a stream to write to."""
    if hasattr(target, "write"):
        kind = _kind("", format, writers)
        _write_stream(target, value, kind, writers[kind])
        return
    name = str(target)
    kind = _kind(name, format, writers)
    with replace_file(name, binary=True) as file:
        if name.lower().endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                _write_stream(packed, value, kind, writers[kind])
        else:
            _write_stream(file, value, kind, writers[kind])


def _kind(name: str, format: str | None, writers: Mapping[str, Writer]) -> str:
    """The kind of file: as said, as its name ends, or CSV if it ends in nothing."""
    suffix = PurePath(name.lower().removesuffix(".gz")).suffix
    kind = format or (SUFFIXES.get(suffix, suffix) if suffix else "csv")
    if kind not in writers:
        wanted = f"format={format!r}" if format else f"The ending {suffix!r} of {name}"
        raise ParameterError(
            explain(f"{wanted} is no kind of file to write here.", expected=", ".join(writers))
        )
    return kind


def _write_stream(stream: Any, value: Any, kind: str, writer: Writer) -> None:
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


def _csv(
    frame: pd.DataFrame, file: Any, texts: Mapping[str, Any] | None = None, sep: str = ","
) -> None:
    """Write delimited text; ``texts`` are the distinct values of columns, where known."""
    if texts is None:
        columns = [(str(k), own) for k, own in frame.items() if not is_numeric_dtype(own.dtype)]
        texts = {name: own.unique() for name, own in columns}
    for name, values in texts.items():
        warn_of_twins(values, name)
    quoting = _quoting(frame.columns, *texts.values())
    frame.to_csv(file, index=False, lineterminator="\n", sep=sep, quoting=quoting)


def _tsv(frame: pd.DataFrame, file: Any, texts: Mapping[str, Any] | None = None) -> None:
    _csv(frame, file, texts, "\t")


def _quoting(*texts: Iterable[Any]) -> Any:
    """Quotes where they are needed; around all text, if a line seems to end in some of it."""
    ends = any("\r" in text for part in texts for text in part if isinstance(text, str))
    return csv.QUOTE_NONNUMERIC if ends else csv.QUOTE_MINIMAL


def _json(frame: pd.DataFrame, file: Any) -> None:
    _dump(list(_records(frame)), file)


def _jsonl(frame: pd.DataFrame, file: Any) -> None:
    for record in _records(frame):
        file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")


def _parquet(frame: pd.DataFrame, file: Any) -> None:
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


def _dump(value: Any, file: Any) -> None:
    json.dump(value, file, ensure_ascii=False, indent=1, default=str)
    file.write("\n")


def _records(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Rows as plain values, None for what is missing."""
    columns = [frame[name].astype(object).where(frame[name].notna(), None) for name in frame]
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield dict(zip(map(str, frame.columns), row, strict=True))


def _long(annotations: Annotations) -> pd.DataFrame:
    """One row an annotation, with gold where it is known."""
    frame = annotations.to_frame()
    if annotations.gold is not None:
        names = np.array([*annotations.classes.tolist(), None], dtype=object)  # -1 finds None
        frame["gold"] = names[annotations.gold[annotations.task]]
    return frame


def _texts(annotations: Annotations) -> dict[str, Array]:
    return {"task": annotations.tasks, "worker": annotations.workers, "label": annotations.classes}


def _long_text(write: Callable[[pd.DataFrame, Any, Any], None]) -> Writer:
    """A writer of text, where an empty name would read as missing."""

    def written(annotations: Annotations, file: Any) -> None:
        for names in _texts(annotations).values():
            if names.dtype == object and "" in names.tolist():
                raise AnnotationError(
                    explain(
                        "An empty name cannot be written to a text file.",
                        expected="names of at least one letter",
                        fix="rename it, or write JSON or Parquet",
                    )
                )
        write(_long(annotations), file, _texts(annotations))

    return written


def _wide(annotations: Annotations, file: Any) -> None:
    warn_of_losses(annotations, "A wide table")
    for role, names in _texts(annotations).items():
        warn_of_twins(names, role)
    quoting = _quoting(*_texts(annotations).values())
    annotations.to_matrix(missing=None).to_csv(file, lineterminator="\n", quoting=quoting)


def _nested(annotations: Annotations, file: Any) -> None:
    warn_of_losses(annotations, "{task: {worker: label}}")
    warn_of_twins(annotations.tasks, "task")
    warn_of_twins(annotations.workers, "worker")
    _dump(annotations.to_dict(), file)


def _snorkel(annotations: Annotations, file: Any) -> None:
    warn_of_losses(annotations, "A label matrix")
    np.save(file, annotations.to_snorkel())


def warn_of_losses(annotations: Annotations, layout: str) -> None:
    """Say which columns there is no place for."""
    extra = ("weight", "time", "soft", "gold")
    lost = [name for name in extra if getattr(annotations, name) is not None]
    if lost:
        fact = f"{layout} has no place for {', '.join(lost)}: left out."
        warnings.warn(explain(fact, fix="write csv, json or parquet to keep it"), stacklevel=3)


def warn_of_twins(names: Any, role: str) -> None:
    """Say that names of different types, such as 1 and "1", cannot be told apart as text."""
    values = np.asarray(names, dtype=object)
    own = values[~pd.isna(values)].tolist()
    if len(set(map(type, own))) < 2:
        return
    by_text: dict[str, list[Any]] = {}
    for name in own:
        by_text.setdefault(str(name), []).append(name)
    twins = [alike for alike in by_text.values() if len(alike) > 1]
    if twins:
        shown = " and ".join(map(repr, twins[0]))
        fact = f"{len(twins):,} names in {role} are alike as text, and read back as one."
        fix = "rename them, or write json or jsonl, which keep numbers and text apart"
        warnings.warn(explain(fact, first=shown, fix=fix), stacklevel=3)


BINARY = ("parquet", "snorkel")
TABLES: dict[str, Writer] = {
    "csv": _csv,
    "tsv": _tsv,
    "json": _json,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
WRITERS: dict[str, Writer] = {
    "csv": _long_text(_csv),
    "tsv": _long_text(_tsv),
    "json": lambda annotations, file: _json(_long(annotations), file),
    "jsonl": lambda annotations, file: _jsonl(_long(annotations), file),
    "parquet": lambda annotations, file: _parquet(_long(annotations), file),
    "wide": _wide,
    "nested": _nested,
    "snorkel": _snorkel,
}
