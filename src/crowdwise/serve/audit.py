"""Write the log to a file, and rebuild a database from one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from crowdwise.errors import FormatError, explain
from crowdwise.serve import events
from crowdwise.serve.board import Board
from crowdwise.serve.database import Database
from crowdwise.serve.events import Event
from crowdwise.typing import Json

SECRET = (events.TOKEN, events.REVOKE)  # logged without the digests of their keys
BATCH = 10_000


def write_events(database: Database, after: int = 0) -> Iterator[str]:
    """Yield every event as a line of JSON, in order, without the digests of tokens."""
    with database.reading() as connection:
        for one in events.read_after(connection, after):
            row = asdict(one)
            if one.kind in SECRET:
                row["body"] = {}
            yield json.dumps(row, ensure_ascii=False) + "\n"


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Read events from lines of JSON; a gap, a change of order or an unknown kind is an error."""
    for number, line in enumerate(lines, start=1):
        try:
            row: Json = json.loads(line)
            one = Event(**row)
        except (ValueError, TypeError) as error:
            raise FormatError(
                explain(
                    "A line of the log is not an event.",
                    first=f"line {number}: {error}",
                    fix="restore the log from a backup; nothing was changed",
                )
            ) from None
        if one.seq != number or one.kind not in events.KINDS:
            raise FormatError(
                explain(
                    "The log has a gap or is out of order.",
                    first=f"line {number}: event {one.seq!r}, kind {one.kind!r}",
                    expected="all events from 1 on, in order",
                    fix="restore the log from a backup; nothing was changed",
                )
            )
        yield one


def replay(database: Database, lines: Iterable[str]) -> Board:
    """Fill an empty database from a log, checking that each event follows from those before.

    Tokens cannot be restored, since a log has no digests. Their events keep their places but
    grant no access.
    """
    board = Board()
    with database.exclusive() as connection:
        if events.count_events(connection):
            raise FormatError(
                explain(
                    "The database is not empty.",
                    expected="an empty database to restore a log into",
                    fix="choose another with --database",
                )
            )
        batch: list[Event] = []
        for one in read_events(lines):
            check(board, one)
            batch.append(one)
            if len(batch) == BATCH:
                events.append(connection, batch)
                batch = []
        events.append(connection, batch)
    return board


def check(board: Board, one: Event) -> None:
    """Apply an event to a board, or raise an error if it cannot have happened."""
    try:
        board.apply(one)
    except (KeyError, IndexError, ValueError) as error:
        what = f"Event {one.seq}, of the kind {one.kind!r}, contradicts the events before it."
        raise FormatError(
            explain(
                what,
                first=f"{type(error).__name__}: {error}",
                fix="restore the log from a backup; nothing was changed",
            )
        ) from None
