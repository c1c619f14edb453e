"""Streams, gzip and zip, read into memory within limits."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import PurePath
from typing import IO, Any, cast

from crowdwise.errors import CrowdwiseError, FileError, FormatError, MissingExtraError, explain
from crowdwise.io.document import READABLE, File, explain_read_errors, refuse_endless
from crowdwise.memory import available_memory, show_bytes

# A compressed file may unpack to this many times its size, or to this many bytes if larger.
RATIO = 200
ROOM = 1 << 30
STEP = 1 << 20

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
LOG, SAMPLES = "header.json", "samples/"  # in every .eval of Inspect
WORKBOOK = "xl/workbook.xml"  # in every .xlsx
ZSTANDARD = 93  # compression of Inspect logs, built into Python from 3.14 on


def is_readable(name: str) -> bool:
    """Return whether a file of this name is read from a folder or an archive.

    Hidden files are not, nor those that accompany data: readme, license, Parquet index.
    """
    plain = name.lower()
    beside = plain.startswith(("readme", "license")) and plain.endswith(".txt")
    index = plain.startswith("_") and plain.endswith((".parquet", ".pq"))
    return plain.endswith(READABLE) and not (plain.startswith(".") or beside or index)


def read_stream(stream: IO[Any], name: str) -> list[File]:
    """Read a stream to its end; in a terminal, the user ends it."""
    if not getattr(stream, "isatty", bool)():
        refuse_endless(_find_mode(stream), name)
    with explain_read_errors(name):
        data = _read_bounded(stream, room := _find_room(), _too_long(name, room))
    return unpack(data, name)


def _find_mode(stream: IO[Any]) -> int:
    """Return the kind of file behind a stream; 0 if there is none."""
    with suppress(AttributeError, OSError, ValueError):
        return os.fstat(stream.fileno()).st_mode
    return 0


def _find_room() -> int:
    """Return how many bytes can be read into memory: half of it, for joining parts."""
    there = available_memory()
    return sys.maxsize if there is None else there // 2


def _too_long(name: str, room: int) -> FileError:
    return FileError(
        explain(
            f"{name} needs more memory than there is.",
            first=f"it has more than {show_bytes(room)}",
            fix="read a part of it, or use a machine with more memory",
        )
    )


def unpack(data: bytes, name: str) -> list[File]:
    if data[:2] == GZIP:
        plain = _gunzip(data, name)
        if plain[:2] == GZIP or plain[:4] == ZIP:
            raise FormatError(
                explain(
                    f"{name} is packed twice.",
                    expected="a gzip file of a plain one, or a zip",
                    fix="unpack it once, and read the result",
                )
            )
        return [File(name, data=plain)]
    if data[:4] == ZIP:
        return _unzip(data, name)
    return [File(name, data=data)]


def _gunzip(data: bytes, name: str) -> bytes:
    with _explain_damage(name), gzip.GzipFile(fileobj=io.BytesIO(data)) as handle:
        return _read_bounded(handle, *_limit(name, len(data)))


def _unzip(data: bytes, name: str) -> list[File]:
    """Return the readable files of an archive, named by their paths in it."""
    files: list[File] = []
    left, error = _limit(name, len(data))
    with _explain_damage(name), _open_zip(data, name) as archive:
        if WORKBOOK in archive.namelist():
            _refuse_bomb(archive, left, error)
            return [File(name, data=data)]
        if LOG in archive.namelist():
            return [File(name, data=_join_log(archive, left, error))]
        for member in sorted(n for n in archive.namelist() if is_readable(PurePath(n).name)):
            with archive.open(member) as handle:
                content = _read_bounded(handle, left, error)
            left -= len(content)
            files.append(File(f"{name}/{member}", data=content))
        sheet = any(member.startswith("META-INF/manifest") for member in archive.namelist())
    if not files:
        raise FormatError(
            explain(
                f"{name} is an archive without a file of annotations.",
                found="an OpenDocument file" if sheet else "",
                expected=f"files that end in {', '.join(READABLE)}",
                fix="save its sheet as CSV or .xlsx" if sheet else "give the file itself",
            )
        )
    return files


def _open_zip(data: bytes, name: str) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(io.BytesIO(data))
    packed = {member.compress_type for member in archive.infolist()}
    if sys.version_info >= (3, 14) or ZSTANDARD not in packed:
        return archive
    try:
        backport: Any = import_module("backports.zstd.zipfile")
    except ImportError:
        raise MissingExtraError.of(f"Unpacking {name}", "backports.zstd", "zstd") from None
    return cast("zipfile.ZipFile", backport.ZipFile(io.BytesIO(data)))


def _join_log(archive: zipfile.ZipFile, limit: int, error: CrowdwiseError) -> bytes:
    """Join an Inspect log into one JSON object: its header, and its samples in a list."""
    parts = []
    for member in [LOG, *sorted(n for n in archive.namelist() if n.startswith(SAMPLES))]:
        with archive.open(member) as handle:
            parts.append(_read_bounded(handle, limit, error))
        limit -= len(parts[-1])
    head = parts[0].strip().removesuffix(b"}").rstrip()
    comma = b"" if head.endswith(b"{") else b", "
    return head + comma + b'"samples": [' + b",".join(parts[1:]) + b"]}"


def _refuse_bomb(archive: zipfile.ZipFile, limit: int, error: CrowdwiseError) -> None:
    for member in archive.infolist():
        with archive.open(member) as handle:
            limit -= len(_read_bounded(handle, limit, error))


def _limit(name: str, packed: int) -> tuple[int, CrowdwiseError]:
    """Return how many bytes a packed file may unpack to, and the error beyond that."""
    usual, room = max(ROOM, RATIO * packed), _find_room()
    if room < usual:
        return room, _too_long(name, room)
    return usual, FormatError(
        explain(
            f"{name} unpacks to more than {usual:,} bytes.",
            expected=f"at most {RATIO} times the packed size, or {ROOM:,} bytes",
            fix="if the size is right, unpack it first and read the plain file",
        )
    )


def _read_bounded(handle: IO[Any] | gzip.GzipFile, limit: int, error: CrowdwiseError) -> bytes:
    """Read the whole stream, unless it is longer than ``limit``."""
    parts, total = [], 0
    while part := handle.read(STEP):
        part = part.encode("utf-8") if isinstance(part, str) else part
        total += len(part)
        if total > limit:
            raise error
        parts.append(part)
    return b"".join(parts)


@contextmanager
def _explain_damage(name: str) -> Iterator[None]:
    try:
        yield
    except (CrowdwiseError, MemoryError):
        raise
    except Exception as error:  # each kind of compression has its own errors
        raise FormatError(
            explain(
                f"{name} cannot be unpacked.",
                first=str(error),
                expected="a complete gzip or zip file without a password",
                fix="download or copy it again; it may have been cut short",
            )
        ) from error
