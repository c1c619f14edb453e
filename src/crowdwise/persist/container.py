"""A file of named arrays, a text about them, and a checksum over both."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import crowdwise
from crowdwise.errors import FileError, FormatError, ParameterError, explain
from crowdwise.io.atomic import replace_file
from crowdwise.io.document import explain_read_errors
from crowdwise.typing import Array

FORMAT = "crowdwise model"
VERSION = 1  # of the file's layout; raised when older code can no longer read it
MOST_TEXT = 90_000_000  # safetensors refuses to read a header of 100 MB


@dataclass(frozen=True)
class Content:
    """The content of a file."""

    text: str
    arrays: Mapping[str, Array]
    writer: str = crowdwise.__version__  # version of crowdwise that wrote it


def write_container(path: str | Path, content: Content) -> None:
    """Write a file, whole or not at all."""
    import safetensors.numpy  # imported here, since most sessions save nothing

    if len(content.text) > MOST_TEXT:
        raise ParameterError(
            f"The model's parameters take {len(content.text):,} characters of text.\n"
            f"  expected: {MOST_TEXT:,} at most\n  fix:      give arrays instead of lists and dicts"
        )
    metadata = {
        "format": FORMAT,
        "format_version": str(VERSION),
        "crowdwise_version": content.writer,
        "model": content.text,
    }
    metadata["sha256"] = checksum(metadata, content.arrays)
    data = safetensors.numpy.save(dict(content.arrays), metadata)
    with replace_file(path, binary=True) as file:
        file.write(data)


def read_container(path: str | Path) -> Content:
    """Read a file made by :func:`write_container`; anything else is a :class:`FormatError`."""
    from safetensors import SafetensorError, safe_open

    path = Path(path).expanduser()
    with explain_read_errors(path):
        if not path.is_file():
            what = f"There is no file {path}."
            if path.exists():
                what = f"{path} is {'a folder' if path.is_dir() else 'a device or a pipe'}."
            raise FileError(
                explain(
                    what,
                    expected="a file with a saved model",
                    fix="give the file that save wrote",
                )
            )
        try:
            with safe_open(path, framework="np") as file:
                metadata = file.metadata() or {}
                _refuse_foreign(path, metadata)
                arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118  it is not a dict
        except (SafetensorError, AttributeError, TypeError, ValueError) as error:
            if isinstance(error, FormatError):
                raise
            raise damaged(path, _describe_start(path) or str(error)) from error
    if metadata.pop("sha256", None) != checksum(metadata, arrays) or "model" not in metadata:
        raise damaged(path, "the contents do not match their checksum")
    return Content(metadata["model"], arrays, metadata.get("crowdwise_version", "unknown"))


def is_model(path: str | Path) -> bool:
    """Return whether a file begins like one written by :func:`write_container`."""
    with suppress(OSError, ValueError), Path(path).expanduser().open("rb") as file:
        return _has_header(file.read(40))
    return False


def _has_header(start: bytes) -> bool:
    return start[8:].startswith(b'{"__metadata__"')  # the header's length comes first


def _describe_start(path: Path) -> str:
    """Describe the beginning of a file without tensors."""
    with path.open("rb") as file:
        start = file.read(40)
    if start[8:9] == b"{" or not start:
        return ""
    text = start.partition(b"\n")[0].decode("utf-8", "replace")
    return f"it is not a model; it starts with {text!r}"


def checksum(metadata: Mapping[str, str], arrays: Mapping[str, Array]) -> str:
    """Compute SHA-256 of everything in a file, in a fixed order."""
    digest = hashlib.sha256()
    for name, text in sorted(metadata.items()):
        digest.update(repr((name, text)).encode("utf-8", "surrogatepass"))
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def damaged(path: str | Path, what: str) -> FormatError:
    """Return the error for a damaged file of ours, or for one that is not ours."""
    return FormatError(
        explain(
            f"{path} is not a complete crowdwise model.",
            first=f"{what:.200}",
            expected="a file written by save, complete and unchanged",
            fix="copy or download it again, or save the model again",
        )
    )


def _refuse_foreign(path: Path, metadata: Mapping[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise damaged(path, "it has tensors, but they are not marked as a crowdwise model")
    number = metadata.get("format_version", "")
    if not (number.isdecimal() and len(number) < 10):
        raise damaged(path, f"its format number is {number!r}")
    if not 1 <= int(number) <= VERSION:
        writer = metadata.get("crowdwise_version", "unknown")
        raise FormatError(
            explain(
                f"{path} has format {number}, written by crowdwise {writer:.40}.",
                expected=f"a format from 1 to {VERSION}, which crowdwise "
                f"{crowdwise.__version__} reads",
                fix="pip install --upgrade crowdwise",
            )
        )
