"""JSON lines files written page by page; an interrupted write can resume."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from crowdwise.errors import FileError, explain
from crowdwise.typing import Json

PART = ".part"  # suffix of an unfinished file


def write_pages(path: Path, source: str, records: Callable[[int], Iterable[Json]]) -> int:
    """Write records with an ``id`` to JSON lines; ``records(after)`` yields those beyond an id.

    Until all are written they are kept in a ``.part`` file, and the next pull from the same
    source resumes from it. Returns the number of records.
    """
    mark = hashlib.sha256(source.encode()).hexdigest()[:8]
    part = path.with_name(f"{path.name}.{mark}{PART}")
    try:
        after, count = find_end(part)
        # Half a character stands in the file as the server sent it, for ``read`` to refuse.
        with part.open("a", encoding="utf-8", errors="backslashreplace") as file:
            for record in records(after):
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                file.flush()
                count += 1
        part.replace(path)
    except OSError as error:
        if isinstance(error, FileError) or error.strerror is None:
            raise
        raise FileError(
            explain(
                f"{path} cannot be written: {error.strerror}.",
                fix="check the folder, its permissions and the disk",
            )
        ) from error
    return count


def find_end(part: Path) -> tuple[int, int]:
    """Return the last id in an unfinished file and its count; a partial last line is cut off."""
    if not part.exists():
        return 0, 0
    lines = part.read_bytes().split(b"\n")
    whole = [line for line in lines[:-1] if line]
    try:
        last = int(json.loads(whole[-1])["id"]) if whole else 0
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileError(
            explain(
                f"{part} is not what an interrupted pull leaves.",
                expected="JSON lines with an id",
                fix="delete it, and pull again",
            )
        ) from error
    part.write_bytes(b"".join(line + b"\n" for line in whole))
    return last, len(whole)
