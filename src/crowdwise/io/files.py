"""Files on disk, plain or packed, and what can be wrong with them."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from crowdwise import progress
from crowdwise.errors import FileError, FormatError, ParameterError, explain

# A packed file may unpack to this many times its size, or to this many bytes if that is more.
RATIO = 200
ROOM = 1 << 30
STEP = 1 << 20

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
READABLE = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".npy")


@dataclass(frozen=True)
class File:
    """The bytes of one file: still on disk, or unpacked in memory."""

    name: str
    path: Path | None = None
    data: bytes = b""

    @property
    def stem(self) -> str:
        """The file's name without folders and without what follows the first dot."""
        return PurePath(self.name).name.split(".")[0]

    @property
    def suffix(self) -> str:
        name = self.name.lower().removesuffix(".gz")
        return PurePath(name).suffix

    @property
    def size(self) -> int:
        return len(self.data) if self.path is None else self.path.stat().st_size

    def open(self) -> BinaryIO:
        return io.BytesIO(self.data) if self.path is None else self.path.open("rb")

    @contextmanager
    def open_shown(self) -> Iterator[BinaryIO]:
        """The file, open; whoever asked for progress sees how much of it was read."""
        what = f"reading {PurePath(self.name).name}"
        with self.open() as handle, progress.reading(handle, what, self.size) as counted:
            yield counted

    def read(self, most: int = -1) -> bytes:
        with explain_read_errors(self.name), self.open() as handle:
            return handle.read(most)

    def text(self) -> str:
        data = self.read()
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise not_utf8(self.name, error, data) from None


def find_files(source: Any) -> list[File]:
    """The files that a path, a folder, an archive, a stream or several of these name."""
    if isinstance(source, list | tuple):
        return [file for part in source for file in find_files(part)]
    if hasattr(source, "read"):
        return _from_stream(source, str(getattr(source, "name", "the stream")))
    if not isinstance(source, str | PathLike):
        raise ParameterError(
            explain(
                f"A {type(source).__name__} cannot be read as annotations.",
                expected="a path, a list of paths, a binary stream, a frame or a list of dicts",
            )
        )
    if not str(source):  # Python takes it for the current folder
        raise ParameterError(
            explain("The path is empty.", expected="the path of a file, or of a folder of files")
        )
    path = Path(source).expanduser()
    with explain_read_errors(path):
        if path.is_dir():
            return _in_folder(path)
        if not path.exists():
            raise FileError(_missing(path))
        if not path.is_file():  # a pipe, say
            with path.open("rb") as stream:
                return _from_stream(stream, str(path))
        with path.open("rb") as handle:
            start = handle.read(4)
        if start[:2] == GZIP or start == ZIP:
            return _unpacked(path.read_bytes(), str(path))
    return [File(str(path), path)]


@contextmanager
def explain_read_errors(name: Any) -> Iterator[None]:
    """Turn what the operating system says about a file into a :class:`FileError`."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        what = error.strerror or str(error)
        raise FileError(
            explain(
                f"{name} cannot be read.",
                first=what,
                expected="a file that this user may read",
                fix="check the path and its permissions",
            )
        ) from error


def not_utf8(name: str, error: UnicodeDecodeError, start: bytes = b"") -> FormatError:
    """The error for text in another encoding."""
    seen = "UTF-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
    return FormatError(
        explain(
            f"The text of {name} is {seen}.",
            first=f"byte {error.object[error.start]:#04x} at {error.start:,}",
            expected="text in UTF-8",
            fix="save it again with the encoding UTF-8",
        )
    )


def _missing(path: Path) -> str:
    near = get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=1)
    return explain(
        f"There is no file {path}.",
        found=f"{path.with_name(near[0])}" if near else "",
        expected="the path of a file, or of a folder with one file per worker",
        fix="check the spelling, and the folder that this runs in",
    )


def _in_folder(folder: Path) -> list[File]:
    inside = sorted(p for p in folder.iterdir() if is_readable(p.name.removesuffix(".gz")))
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


def _from_stream(stream: Any, name: str) -> list[File]:
    with explain_read_errors(name):
        data = stream.read()
    if isinstance(data, str):
        data = data.encode("utf-8")
    return _unpacked(data, name)


def _unpacked(data: bytes, name: str) -> list[File]:
    if data[:2] == GZIP:
        return [File(name, data=_gunzip(data, name))]
    if data[:4] == ZIP:
        return _unzip(data, name)
    return [File(name, data=data)]


def _gunzip(data: bytes, name: str) -> bytes:
    with _damage(name), gzip.GzipFile(fileobj=io.BytesIO(data)) as handle:
        return _bounded(handle, name, _limit(len(data)))


def _unzip(data: bytes, name: str) -> list[File]:
    """The readable files of an archive, named after their places in it."""
    files: list[File] = []
    left = _limit(len(data))
    with _damage(name), zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in sorted(n for n in archive.namelist() if is_readable(PurePath(n).name)):
            with archive.open(member) as handle:
                content = _bounded(handle, f"{name}/{member}", left)
            left -= len(content)
            files.append(File(f"{name}/{member}", data=content))
        excel = any(member.startswith("xl/") for member in archive.namelist())
    if not files:
        raise FormatError(
            explain(
                f"{name} is an archive without a file of annotations.",
                found="an Excel workbook" if excel else "",
                expected=f"files that end in {', '.join(READABLE)}",
                fix="save its sheet as CSV in UTF-8" if excel else "name the file itself",
            )
        )
    return files


def _limit(packed: int) -> int:
    return max(ROOM, RATIO * packed)


def _bounded(handle: Any, name: str, limit: int) -> bytes:
    """Everything in the stream, unless it is more than ``limit``."""
    parts, total = [], 0
    while part := handle.read(STEP):
        total += len(part)
        if total > limit:
            raise FormatError(
                explain(
                    f"{name} unpacks to more than {limit:,} bytes.",
                    expected=f"at most {RATIO} times the packed size, or {ROOM:,} bytes",
                    fix="if that is no mistake, unpack it first and read the plain file",
                )
            )
        parts.append(part)
    return b"".join(parts)


@contextmanager
def _damage(name: str) -> Iterator[None]:
    try:
        yield
    except (
        EOFError,
        OSError,
        zlib.error,
        zipfile.BadZipFile,
        NotImplementedError,  # a method of packing that Python does not know
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
