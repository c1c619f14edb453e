"""Write the log to a file, and rebuild a database from one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields, replace
from math import isfinite

from crowdwise.errors import FormatError, explain
from crowdwise.serve import events
from crowdwise.serve.actions import check_name
from crowdwise.serve.board import Board
from crowdwise.serve.database import Database
from crowdwise.serve.events import Event
from crowdwise.serve.settings import Settings
from crowdwise.typing import Json

SECRET = (events.TOKEN, events.REVOKE)  # logged without the digests of their keys
TYPES: Json = {"seq": int, "at": int | float, "turn": int, "body": dict}  # others are text
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
    """Read events from lines of JSON; a gap, a change of order or an unknown kind is an error.

    Digests of tokens are left out: a log grants no access.
    """
    for number, line in enumerate(lines, start=1):
        try:
            row: Json = json.loads(line)
            one = check_types(Event(**row))
        except (ValueError, TypeError, RecursionError) as error:
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
        yield replace(one, body={}) if one.kind in SECRET else one


def check_types(one: Event) -> Event:
    """Return the event, unless a field has another type."""
    for field in fields(one):
        value, expected = getattr(one, field.name), TYPES.get(field.name, str)
        if not isinstance(value, expected) or isinstance(value, bool):
            raise TypeError(f"{field.name} is {value!r}")
    if not isfinite(one.at):
        raise ValueError(f"at is {one.at}")
    return one


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
        refuse_contradiction(board, one)
        board.apply(one)
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        what = f"Event {one.seq}, of the kind {one.kind!r}, contradicts the events before it."
        raise FormatError(
            explain(
                what,
                first=f"{type(error).__name__}: {error}".splitlines()[0],
                fix="restore the log from a backup; nothing was changed",
            )
        ) from None


def refuse_contradiction(board: Board, one: Event) -> None:
    """Refuse what a board would take, but the service would never have stored."""
    number = board.tasks.number.get(one.task, -1)
    labeled = number in board.labeled.get(one.worker, {})
    if one.kind == events.TASK:
        check_name("task", one.task)
    if one.kind == events.LABEL:
        check_name("worker", one.worker)
    if (one.kind == events.TASK and number >= 0) or (one.kind == events.LABEL and labeled):
        raise ValueError(f"{one.task!r} exists already")
    if one.kind == events.GOLD and one.label and one.label not in board.classes:
        raise ValueError(f"{one.label!r} is not a class")
    if one.kind == events.PROJECT:
        old, new = board.settings.classes, Settings.from_body(one.body).classes
        if not all(isinstance(name, str) for name in new) or new[: len(old)] != old:
            raise ValueError("classes were removed or reordered")
    about = {
        events.PROJECT: (events.PROJECT, -1, ""),
        events.GOLD: (events.GOLD, number, ""),
        events.LABEL: (events.LABEL, number, one.worker),
        events.WITHDRAW: (events.LABEL, number, one.worker),
    }.get(one.kind)
    turn = 0 if about is None else board.turns.get(about, 0)
    if one.turn != turn:
        raise ValueError(f"turn {one.turn} instead of {turn}")
