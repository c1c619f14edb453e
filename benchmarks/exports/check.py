"""Whether a reading of an export is right: no traceback, nothing lost, nothing made up."""

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import crowdwise as cw
from crowdwise import Annotations, CrowdwiseError
from crowdwise.annotations.grouping import count_aside
from crowdwise.io import reader, recognize
from exports.pen import Export

PARTS = re.compile(r"\n  (expected|fix): ")


class Named(io.BytesIO):
    """Bytes that pretend to be a file of some name."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


def read_one(export: Export, format: str | None = None) -> Annotations | CrowdwiseError:
    """The annotations, or our own error; any other error escapes."""
    options = {"format": format} if format else export.options
    with warnings.catch_warnings(action="ignore"):
        try:
            return cw.read(Named(export.data, export.name), **options)
        except CrowdwiseError as error:
            return error


@contextmanager
def without_a_net() -> Iterator[None]:
    """Let errors of the parsers through that ``read`` would word as errors of the file."""
    with patch.object(reader, "MALFORMED", ()), patch.object(recognize, "MALFORMED", ()):
        yield


def check(export: Export) -> str:
    """What is wrong with the reading of an export; nothing if it is right."""
    try:
        with without_a_net():
            taken = read_one(export)
    except Exception as error:
        return f"traceback: {type(error).__name__}: {error}"
    if isinstance(taken, CrowdwiseError):
        return _check_error(taken, export)
    if export.foreign:
        return f"read, but must be refused: {taken}, {taken.notes}"
    return "" if export.records is None else _check_records(taken, export)


def _check_records(taken: Annotations, export: Export) -> str:
    """Whether annotations and notes add up to the records, and the clean votes are there."""
    noted = count_aside(taken.notes)
    if taken.n_annotations + noted != export.records:
        found = f"{taken.n_annotations} annotations and {noted} noted"
        return f"{export.records} records, but {found}: {taken.notes}"
    frame = taken.to_frame()
    kept = _count(zip(frame["task"], frame["worker"], frame["label"], strict=True))
    lost = _count(export.clean) - kept
    if lost and "repeats" not in export.options:
        return f"lost {dict(lost)}: {taken.notes}"
    extra = kept - _count(export.votes)
    if extra and export.clean == export.votes and "rejected" not in export.options:
        return f"made up {dict(extra)}: {taken.notes}"
    return ""


def read_as(export: Export, *names: str) -> str:
    """The first error that is not ours, where the export is taken for these formats."""
    for name in names:
        try:
            read_one(export, name)
        except Exception as error:
            return f"traceback as {name}: {type(error).__name__}: {error}"
    return ""


def _check_error(error: CrowdwiseError, export: Export) -> str:
    message = str(error)
    if not PARTS.search(message):
        return f"an error without what is expected or what to do: {message}"
    if export.foreign and export.foreign not in message:
        return f"refused, but not as {export.foreign!r}: {message}"
    spoiled = len(export.clean) < len(export.votes) or export.records is None
    if not export.foreign and not spoiled and export.clean:
        return f"refused, but clean: {message}"
    return ""


def _count(rows: Any) -> Counter[tuple[str, ...]]:
    return Counter(tuple(str(cell).lower().removesuffix(".0") for cell in row) for row in rows)
