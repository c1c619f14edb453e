"""Events, in one form for tables and files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field

from sqlalchemy import Connection, func, select

from crowdwise.serve.schema import EVENT
from crowdwise.typing import Json

BATCH = 10_000  # events read at a time

# Kinds of events, with what they record.
PROJECT = "project"  # settings, in the body
TASK = "task"  # a task, with its content in the body
GOLD = "gold"  # the truth of a task, in label; "" if it is withdrawn
LABEL = "label"  # a worker's label of a task
WITHDRAW = "withdraw"  # a worker withdraws a label
SKIP = "skip"  # a worker skips a task
TOKEN = "token"  # a key for a worker, lead or admin; its digest is in the body
REVOKE = "revoke"  # a token is no longer valid
KINDS = (PROJECT, TASK, GOLD, LABEL, WITHDRAW, SKIP, TOKEN, REVOKE)


@dataclass(frozen=True, slots=True)
class Event:
    """An event. ``seq`` numbers all events from 1."""

    seq: int
    at: float
    kind: str
    actor: str
    task: str = ""
    worker: str = ""
    label: str = ""
    turn: int = 0
    body: Json = field(default_factory=dict)

    def to_row(self) -> Json:
        """Return the event as a row of the table."""
        text = json.dumps(self.body, ensure_ascii=False) if self.body else ""
        return asdict(self) | {"body": text}


FIELDS = tuple(EVENT.c.keys())  # columns have the names of the fields


def append(connection: Connection, events: Iterable[Event]) -> None:
    """Write events to the table."""
    rows = [one.to_row() for one in events]
    if rows:
        connection.execute(EVENT.insert(), rows)


def read_after(connection: Connection, seq: int) -> Iterator[Event]:
    """Yield every event after a number, in order."""
    wanted = select(EVENT).where(EVENT.c.seq > seq).order_by(EVENT.c.seq)
    for row in connection.execute(wanted.execution_options(yield_per=BATCH)):
        values: Json = dict(zip(FIELDS, row, strict=True))
        values["body"] = json.loads(values["body"]) if values["body"] else {}
        yield Event(**values)


def count_events(connection: Connection) -> int:
    """Count the events."""
    return int(connection.execute(select(func.count()).select_from(EVENT)).scalar() or 0)
