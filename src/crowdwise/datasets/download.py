"""Downloads: each file is fetched once, verified, then put in place whole.

A file is written under a temporary name, unique so that two processes never share it, checked
against its size and sha256, and only then moved to its final name. Whatever goes wrong, the cache
has the right file or none.
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from secrets import token_hex
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from crowdwise.datasets.registry import RemoteFile
from crowdwise.errors import CrowdwiseError, DownloadError, FileError, explain
from crowdwise.progress import Bar

BLOCK = 1 << 16
TIMEOUT = 30.0  # seconds without any data
ATTEMPTS = 3  # per address, each resuming where the last one stopped
PATIENCE = 0.5  # seconds before the second attempt, doubled before each later one
STALE = 3600.0  # seconds after which a temporary file is abandoned


def cache_folder() -> Path:
    """Return where files are kept: ``$CROWDWISE_CACHE``, or the platform's cache folder."""
    chosen = os.environ.get("CROWDWISE_CACHE")
    if chosen:
        return Path(chosen).expanduser() / "datasets"
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "crowdwise" / "datasets"


def path_of(file: RemoteFile) -> Path:
    """Return where the file is, or will be, in the cache."""
    return cache_folder() / file.stored_name


def is_intact(file: RemoteFile) -> bool:
    """Return whether the cache has the file, byte for byte."""
    path = path_of(file)
    try:
        if path.stat().st_size != file.size:
            return False
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest() == file.sha256
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise FileError(
            explain(f"{path} cannot be read.", first=str(error), fix="check its permissions")
        ) from error


def fetch_file(file: RemoteFile, bar: Bar) -> Path:
    """Return the file's path in the cache, fetching it from mirror or publisher if needed."""
    target = path_of(file)
    if is_intact(file):
        return target
    with filling_cache(target) as handle:
        problems = []
        for url in addresses(file):
            problem = _fetch_from(url, file, handle, bar)
            if not problem:
                break
            problems.append(f"{url}: {problem}")
        else:
            raise DownloadError(
                explain(
                    f"{file.name} could not be fetched; nothing was kept.",
                    first="\n            ".join(problems),
                    expected=f"{file.size:,} bytes with sha256 {file.sha256}",
                    fix="check the network and try again, or set CROWDWISE_MIRROR to a folder "
                    f"or address that holds {file.stored_name}",
                )
            )
    return target


def addresses(file: RemoteFile) -> list[str]:
    """List where to look, in order: ``$CROWDWISE_MIRROR`` (address or folder), the publisher."""
    mirror = os.environ.get("CROWDWISE_MIRROR", "")
    if not mirror:
        return [file.url]
    if "://" not in mirror:
        mirror = Path(mirror).expanduser().resolve().as_uri()
    return [f"{mirror.rstrip('/')}/{file.stored_name}", file.url]


@contextmanager
def filling_cache(target: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that becomes ``target`` if all goes well."""
    part = target.with_name(f"{target.name}.{os.getpid()}-{token_hex(4)}.part")
    try:
        with _explaining():
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_stale(target)
            with part.open("x+b") as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _remove_stale(target: Path) -> None:
    """Remove leftovers of processes that were killed."""
    for part in target.parent.glob(f"{target.name}.*.part"):
        try:
            if time.time() - part.stat().st_mtime > STALE:
                part.unlink()
        except FileNotFoundError:  # another process was faster
            continue


@contextmanager
def _explaining() -> Iterator[None]:
    """Explain errors of writing to the cache."""
    try:
        yield
    except CrowdwiseError:
        raise
    except OSError as error:
        raise FileError(
            explain(
                f"The cache {cache_folder()} cannot be written; nothing was kept.",
                first=str(error),
                expected="a folder with free space that this process may write to",
                fix="free some space, or set CROWDWISE_CACHE to another folder",
            )
        ) from error


def _fetch_from(url: str, file: RemoteFile, handle: IO[bytes], bar: Bar) -> str:
    """Fill ``handle`` from one address; returns what is wrong with it, if anything."""
    problem = ""
    received = _Received(handle, bar)
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PATIENCE * 2 ** (attempt - 1))
        problem, again = _attempt(url, file, received)
        if not problem:
            return ""
        if not again:
            break
    received.restart()
    return problem


def _attempt(url: str, file: RemoteFile, received: "_Received") -> tuple[str, bool]:
    """Try once; returns the problem, if any, and whether to try again."""
    try:
        _receive(url, file, received)
    except FileError:  # the disk, not the network
        raise
    except HTTPError as error:
        error.close()
        if error.code == 416:  # the server has nothing more to send
            return received.fault(file), False
        return f"{error.code} {error.reason}", error.code >= 500 or error.code in (408, 429)
    except URLError as error:
        return _reason(error.reason), isinstance(error.reason, TimeoutError | ConnectionError)
    except ValueError as error:  # a malformed address
        return str(error), False
    except (HTTPException, OSError) as error:
        return _reason(error), True
    return received.fault(file), received.size < file.size


class _Received:
    """The part of a file received so far: on disk, hashed and counted."""

    def __init__(self, handle: IO[bytes], bar: Bar) -> None:
        self.handle = handle
        self.bar = bar
        self.size = 0
        self.hash = hashlib.sha256()

    def add(self, block: bytes) -> None:
        with _explaining():
            self.handle.write(block)
        self.hash.update(block)
        self.size += len(block)
        self.bar.advance(len(block))

    def restart(self) -> None:
        self.bar.advance(-self.size)
        with _explaining():
            self.handle.seek(0)
            self.handle.truncate()
        self.size = 0
        self.hash = hashlib.sha256()

    def fault(self, file: RemoteFile) -> str:
        """Describe how the file differs from what was expected; empty if it does not."""
        if self.size != file.size:
            return f"received {self.size:,} bytes"
        if self.hash.hexdigest() != file.sha256:
            return f"received other contents, with sha256 {self.hash.hexdigest()}"
        return ""


def _receive(url: str, file: RemoteFile, received: _Received) -> None:
    """Receive a file, continuing where the last attempt stopped if the server allows it."""
    headers = {"User-Agent": "crowdwise", "Accept-Encoding": "identity"}
    if received.size:
        headers["Range"] = f"bytes={received.size}-"
    with urlopen(Request(url, headers=headers), timeout=TIMEOUT) as answer:
        if received.size and not _continues(answer, received.size):
            received.restart()
        while block := answer.read(BLOCK):
            received.add(block)
            if received.size > file.size:  # not the right file, and possibly endless
                return


def _continues(answer: HTTPResponse, start: int) -> bool:
    """Return whether the server sends the part that was requested."""
    return str(answer.headers.get("Content-Range", "")).startswith(f"bytes {start}-")


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT:g} seconds"
    return str(error) or type(error).__name__
