"""Open: from a path, folder, archive or stream to documents."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path, PurePath
from typing import IO, Any

from crowdwise.errors import FileError, FormatError, ParameterError, explain
from crowdwise.io.document import READABLE, Document, File, Matrix, explain_read_errors
from crowdwise.io.excel import parse_excel
from crowdwise.io.text import TextTable
from crowdwise.io.typed_files import (
    ParquetTable,
    parse_integers,
    parse_json,
    parse_jsonl,
    parse_npy,
)

# A compressed file may unpack to this many times its size, or to this many bytes if more.
RATIO = 200
ROOM = 1 << 30
STEP = 1 << 20

# Tables of a set in a folder: its annotations, and what is no part of them.
VOTES = ("votes", "annotations")
BESIDE = ("truth", "gold", "features", "items", "labels", "split", "workers")

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
BINARY = {b"PAR1": "parquet", b"\x93NUM": "npy", ZIP: "xlsx"}
WORKBOOK = "xl/workbook.xml"  # in every .xlsx
SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "json", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet", ".npy": "npy", ".xlsx": "xlsx",
    ".manifest": "jsonl",
}  # fmt: skip

# How files begin that are known and not read, what they are, and what to do.
OTHERS = (
    ((b"\xd0\xcf\x11\xe0",), "an old Excel workbook (.xls)", "save it as .xlsx, or as CSV"),
    ((b"<!doctype html", b"<html"), "a web page, perhaps one that asks to log in",
     "download the export itself"),
    ((b"<?xml", b"<annotation"), "XML, as of CVAT or Pascal VOC, which mark parts of images",
     "if each part is a task, write rows of task, worker, label"),
    ((b"%pdf",), "a PDF", "export a table"),
)  # fmt: skip


def open_document(file: File, container: str | None = None) -> Document:
    """Parse a file; its first bytes say what it is, then its name."""
    notes, file = file.notes, file.to_utf8()
    start = file.read(1 << 12)
    if not start.removeprefix(b"\xef\xbb\xbf").strip():
        raise FormatError(
            explain(f"{file.name} is empty.", expected="a table, or the export of a labeling tool")
        )
    kind = container or BINARY.get(start[:4]) or SUFFIXES.get(file.suffix)
    kind = kind or _guess_container(start, file)
    if kind == "jsonl" and start.lstrip().startswith(b"["):
        kind = "json"
    _refuse_others(start, file)
    document = CONTAINERS[kind](file)
    document.notes = (*notes, *document.notes)
    return document


def _refuse_others(start: bytes, file: File) -> None:
    """Refuse what is known, but not read, whatever its name ends in."""
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
    """The files behind a path, a folder, an archive, a stream, or several of these."""
    if isinstance(source, list | tuple):
        return [file for part in source for file in find_files(part)]
    if hasattr(source, "read"):
        return _read_stream(source, str(getattr(source, "name", "the stream")))
    if not isinstance(source, str | PathLike):
        raise ParameterError(
            explain(
                f"A {type(source).__name__} cannot be read as annotations.",
                expected="a path, a list of paths, a binary stream, a frame or a list of dicts",
            )
        )
    if not str(source):  # which Python would take for the current folder
        raise ParameterError(
            explain("The path is empty.", expected="the path of a file, or of a folder of files")
        )
    path = Path(source).expanduser()
    with explain_read_errors(path):
        if path.is_dir():
            return _list_folder(path)
        if not path.exists():
            raise FileError(_explain_missing(path))
        if not path.is_file():  # a pipe, say
            with path.open("rb") as stream:
                return _read_stream(stream, str(path))
        with path.open("rb") as handle:
            start = handle.read(4)
        if start[:2] == GZIP or start == ZIP:
            return _unpack(path.read_bytes(), str(path))
    return [File(str(path), path)]


def _explain_missing(path: Path) -> str:
    near = get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=1)
    return explain(
        f"There is no file {path}.",
        found=f"{path.with_name(near[0])}" if near else "",
        expected="the path of a file, or of a folder with one file per worker",
        fix="check the spelling, and the folder that this is run in",
    )


def list_folder(folder: Path) -> list[Path]:
    """What is read when the folder is, those files in folders of theirs too.

    In a folder as :func:`crowdwise.simulate.write_set` makes it, that is the votes alone.
    """
    inside = sorted(p for p in folder.iterdir() if is_readable(p.name.removesuffix(".gz")))
    votes = [path for path in inside if _stem(path) in VOTES]
    if len(votes) == 1 and all(_stem(path) in (*VOTES, *BESIDE) for path in inside):
        return votes
    return [file for path in inside for file in (list_folder(path) if path.is_dir() else [path])]


def _stem(path: Path) -> str:
    return path.name.lower().partition(".")[0]


def _list_folder(folder: Path) -> list[File]:
    inside = list_folder(folder)
    if len(inside) == 1 and _stem(inside[0]) in VOTES:
        note = f"of the folder {folder} only {inside[0].name} is read"
        return [replace(file, notes=(note,)) for file in find_files(inside[0])]
    if not inside:
        raise FileError(
            explain(
                f"The folder {folder} has no file of annotations.",
                expected=f"files that end in {', '.join(READABLE)}, plain or .gz",
                fix="name the file itself",
            )
        )
    return [file for path in inside for file in find_files(path)]


def is_readable(name: str) -> bool:
    """Whether a file of this name is taken from a folder or an archive."""
    plain = name.lower()
    return not plain.startswith((".", "_", "readme", "license")) and plain.endswith(READABLE)


def _read_stream(stream: IO[Any], name: str) -> list[File]:
    with explain_read_errors(name):
        data = stream.read()
    if isinstance(data, str):
        data = data.encode("utf-8")
    return _unpack(data, name)


def _unpack(data: bytes, name: str) -> list[File]:
    if data[:2] == GZIP:
        plain = _gunzip(data, name)
        if plain[:2] == GZIP or plain[:4] == ZIP:
            raise FormatError(
                explain(
                    f"{name} is packed twice.",
                    expected="a gzip file of a plain one, or a zip",
                    fix="unpack it once, and read what comes out",
                )
            )
        return [File(name, data=plain)]
    if data[:4] == ZIP:
        return _unzip(data, name)
    return [File(name, data=data)]


def _gunzip(data: bytes, name: str) -> bytes:
    with _explain_damage(name), gzip.GzipFile(fileobj=io.BytesIO(data)) as handle:
        return _read_bounded(handle, name, _limit(len(data)))


def _unzip(data: bytes, name: str) -> list[File]:
    """The readable files of an archive, named after their places in it."""
    files: list[File] = []
    left = _limit(len(data))
    with _explain_damage(name), zipfile.ZipFile(io.BytesIO(data)) as archive:
        if WORKBOOK in archive.namelist():
            _refuse_bomb(archive, name, left)
            return [File(name, data=data)]
        for member in sorted(n for n in archive.namelist() if is_readable(PurePath(n).name)):
            with archive.open(member) as handle:
                content = _read_bounded(handle, f"{name}/{member}", left)
            left -= len(content)
            files.append(File(f"{name}/{member}", data=content))
        sheet = any(member.startswith("META-INF/manifest") for member in archive.namelist())
    if not files:
        raise FormatError(
            explain(
                f"{name} is an archive without a file of annotations.",
                found="an OpenDocument file" if sheet else "",
                expected=f"files that end in {', '.join(READABLE)}",
                fix="save its sheet as CSV or .xlsx" if sheet else "name the file itself",
            )
        )
    return files


def _refuse_bomb(archive: zipfile.ZipFile, name: str, limit: int) -> None:
    for member in archive.infolist():
        with archive.open(member) as handle:
            limit -= len(_read_bounded(handle, name, limit))


def _limit(packed: int) -> int:
    return max(ROOM, RATIO * packed)


def _read_bounded(handle: IO[bytes] | gzip.GzipFile, name: str, limit: int) -> bytes:
    """Everything in the stream, unless it is more than ``limit``."""
    parts, total = [], 0
    while part := handle.read(STEP):
        total += len(part)
        if total > limit:
            raise FormatError(
                explain(
                    f"{name} unpacks to more than {limit:,} bytes.",
                    expected=f"at most {RATIO} times the packed size, or {ROOM:,} bytes",
                    fix="if that is right, unpack it first and read the plain file",
                )
            )
        parts.append(part)
    return b"".join(parts)


@contextmanager
def _explain_damage(name: str) -> Iterator[None]:
    try:
        yield
    except (
        EOFError,
        OSError,
        zlib.error,
        zipfile.BadZipFile,
        NotImplementedError,  # a compression method that Python does not know
        RuntimeError,  # a password
        ValueError,
    ) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(
            explain(
                f"{name} cannot be unpacked.",
                first=str(error),
                expected="a whole gzip or zip file without a password",
                fix="download or copy it again; it may have been cut short",
            )
        ) from error


def _guess_container(start: bytes, file: File) -> str:
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if b"\0" in start and start[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError(
            explain(
                f"{file.name} is a binary file of an unknown kind.",
                first=f"it begins with {start[:8]!r}",
                expected=f"one of {', '.join(CONTAINERS)}, plain, gzip or zip",
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
