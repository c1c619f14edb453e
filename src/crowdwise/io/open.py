"""Open: from a path, folder, archive or stream to documents."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from crowdwise.errors import FileError, FormatError, ParameterError, explain
from crowdwise.io.document import (
    READABLE,
    Document,
    File,
    Matrix,
    Table,
    explain_read_errors,
    refuse_endless,
)
from crowdwise.io.excel import parse_excel
from crowdwise.io.text import TextTable
from crowdwise.io.typed_files import (
    ParquetTable,
    parse_integers,
    parse_json,
    parse_jsonl,
    parse_npy,
)
from crowdwise.io.unpack import GZIP, ZIP, is_readable, read_stream, unpack
from crowdwise.memory import refuse_too_large, show_bytes

# Minimum memory of a file as a multiple of its size; tables are estimated by their rows.
TIMES = {"json": 5, "jsonl": 5, "npy": 2}

# Files of a set in a folder: its annotations, and those that are not part of them.
VOTES = ("votes", "annotations")
BESIDE = ("truth", "gold", "features", "items", "labels", "split", "workers")

BINARY = {b"PAR1": "parquet", b"\x93NUM": "npy", ZIP: "xlsx"}
SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "json", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet", ".npy": "npy", ".xlsx": "xlsx",
    ".manifest": "jsonl",
}  # fmt: skip

# Signatures of known file types that cannot be read, with a description and advice.
OTHERS = (
    ((b"\xd0\xcf\x11\xe0",), "an old Excel workbook (.xls)", "save it as .xlsx, or as CSV"),
    ((b"<!doctype html", b"<html"), "a web page, perhaps one that asks to log in",
     "download the export itself"),
    ((b"<?xml", b"<annotation"), "XML, as of CVAT or Pascal VOC, which mark parts of images",
     "if each part is a task, write rows of task, worker, label"),
    ((b"%pdf",), "a PDF", "export a table"),
)  # fmt: skip

# Byte-order marks of encodings other than UTF-8.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
MOSTLY = 0.4  # share of zeros in every other byte from which text without a mark is UTF-16


def open_document(file: File, container: str | None = None) -> Document:
    """Parse a file; its first bytes determine its kind, then its name."""
    notes, file = file.notes, to_utf8(file)
    start = file.read(1 << 12)
    if not start.removeprefix(b"\xef\xbb\xbf").strip():
        raise FormatError(
            explain(
                f"{file.name} is empty.",
                expected="a table, or the export of a labeling tool",
                fix="export it again",
            )
        )
    kind = container or BINARY.get(start[:4]) or SUFFIXES.get(file.suffix)
    kind = kind or _guess_container(start, file)
    if kind in TIMES:
        times = TIMES[kind]
        size = show_bytes(file.size)
        refuse_too_large(file.name, times * file.size, f"{times} times its size of {size}")
    if kind == "jsonl" and start.lstrip().startswith(b"["):
        kind = "json"
    _refuse_others(start, file)
    document = CONTAINERS[kind](file)
    document.notes = (*notes, *document.notes)
    return document


def read_table(path: str | PathLike[str], expected: str) -> pd.DataFrame:
    """Read all columns of a table in a file, with unchanged values."""
    document = open_document(find_files(path)[0])
    if not isinstance(document, Table):
        raise FormatError(
            explain(
                f"{document.name} is not a table.",
                expected=expected,
                fix="write a table, such as a CSV file with a row of names",
            )
        )
    return document.frame(list(document.columns)).astype(object)


def to_utf8(file: File) -> File:
    """Return the file, or a copy in UTF-8 if it is text in UTF-16 or UTF-32."""
    encoding = find_encoding(file.read(1 << 12))
    if encoding is None:
        return file
    refuse_too_large(file.name, 2 * file.size, f"twice its {show_bytes(file.size)} of text")
    data = file.read()
    try:
        return File(file.name, data=data.decode(encoding).encode("utf-8"))
    except UnicodeError as error:
        raise FormatError(
            explain(
                f"{file.name} looks like text in {encoding.upper()}, but is not.",
                first=str(error).splitlines()[0],
                expected="text in UTF-8, UTF-16 or UTF-32",
                fix="save it again with the encoding UTF-8; it may have been cut short",
            )
        ) from None


def find_encoding(start: bytes) -> str | None:
    """Detect UTF-16 or UTF-32 by a mark, or by zeros in every other byte; else None."""
    for mark, encoding in MARKS.items():
        if start.startswith(mark):
            return encoding
    places = [start[k::2].count(0) / max(len(start[k::2]), 1) for k in (0, 1)]
    if max(places) < MOSTLY or min(places) > 0 or len(start) < 4:
        return None
    return "utf-16-be" if places[0] else "utf-16-le"


def _refuse_others(start: bytes, file: File) -> None:
    """Refuse known types that cannot be read, whatever the file's extension."""
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    for marks, what, fix in OTHERS:
        if first.startswith(marks):
            raise FormatError(
                explain(
                    f"{file.name} is {what}.",
                    expected=f"one of {', '.join(CONTAINERS)}, plain, gzip or zip",
                    fix=fix,
                )
            )


def find_files(source: Any) -> list[File]:
    """Find the files behind a path, a folder, an archive, a stream, or several of these."""
    if isinstance(source, list | tuple):
        return [file for part in source for file in find_files(part)]
    if hasattr(source, "read"):
        return read_stream(source, str(getattr(source, "name", "the stream")))
    if not isinstance(source, str | PathLike):
        raise ParameterError(
            explain(
                f"A {type(source).__name__} cannot be read as annotations.",
                expected="a path, a list of paths, a binary stream, a frame or a list of dicts",
                fix="pass a path, or the result of json.loads",
            )
        )
    if not str(source):  # Python would use the current folder
        raise ParameterError(
            explain(
                "The path is empty.",
                expected="the path of a file, or of a folder of files",
                fix="give the path",
            )
        )
    path = Path(source).expanduser()
    with explain_read_errors(path):
        if path.is_dir():
            return _list_folder(path)
        if not path.exists():
            raise FileError(_explain_missing(path))
        refuse_endless(path.stat().st_mode, str(path))
        if not path.is_file():  # such as a pipe
            with path.open("rb") as stream:
                return read_stream(stream, str(path))
        with path.open("rb") as handle:
            start = handle.read(4)
        if start[:2] == GZIP or start == ZIP:
            size = path.stat().st_size
            refuse_too_large(str(path), size, f"its packed size of {show_bytes(size)}")
            return unpack(path.read_bytes(), str(path))
    return [File(str(path), path)]


def _explain_missing(path: Path) -> str:
    near = get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=1)
    return explain(
        f"There is no file {path}.",
        found=f"{path.with_name(near[0])}" if near else "",
        expected="the path of a file, or of a folder with one file per worker",
        fix="check the spelling, and the current folder",
    )


def list_folder(folder: Path, new: Path | None = None) -> list[Path]:
    """List the files to read for a folder, including those in its folders.

    For a folder made by :func:`crowdwise.simulate.write_set`, these are the votes alone.
    ``new`` is a file that may not exist yet.
    """
    names = {*folder.iterdir(), *([new] if new is not None and new.parent == folder else [])}
    inside = sorted(path for path in names if is_readable(path.name.removesuffix(".gz")))
    votes = [path for path in inside if _stem(path) in VOTES]
    if len(votes) == 1 and all(_stem(path) in (*VOTES, *BESIDE) for path in inside):
        return votes
    return [file for path in inside for file in _list_inside(path, new)]


def _list_inside(path: Path, new: Path | None) -> list[Path]:
    return list_folder(path, new) if path.is_dir() else [path]


def _stem(path: Path) -> str:
    return path.name.lower().partition(".")[0]


def _list_folder(folder: Path) -> list[File]:
    inside = list_folder(folder)
    for path in inside:
        refuse_endless(path.stat().st_mode, str(path), pipes=False)
    if len(inside) == 1 and _stem(inside[0]) in VOTES:
        note = f"of the folder {folder} only {inside[0].name} is read"
        return [replace(file, notes=(note,)) for file in find_files(inside[0])]
    if not inside:
        raise FileError(
            explain(
                f"The folder {folder} has no file of annotations.",
                expected=f"files that end in {', '.join(READABLE)}, plain or .gz",
                fix="give the file itself",
            )
        )
    return [file for path in inside for file in find_files(path)]


def _guess_container(start: bytes, file: File) -> str:
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if b"\0" in start and start[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError(
            explain(
                f"{file.name} is a binary file of an unknown kind.",
                first=f"it starts with {start[:8]!r}",
                expected=f"one of {', '.join(CONTAINERS)}, plain, gzip or zip",
                fix="export it as CSV or JSON",
            )
        )
    return "json" if text[:1] in (b"{", b"[") else "csv"


def _open_csv(file: File) -> Document:
    numbers = parse_integers(file) if file.suffix in (".txt", "") else None
    return TextTable(file) if numbers is None else Matrix(numbers, file.name, file.stem)


CONTAINERS: dict[str, Callable[[File], Document]] = {
    "csv": _open_csv,
    "tsv": lambda file: TextTable(file, "\t"),
    "json": parse_json,
    "jsonl": parse_jsonl,
    "parquet": ParquetTable,
    "npy": parse_npy,
    "xlsx": parse_excel,
}
