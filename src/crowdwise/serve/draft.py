"""A draft: the events and leases that a transaction is about to add."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from crowdwise.errors import CrowdwiseError, explain
from crowdwise.serve import events
from crowdwise.serve.board import Board
from crowdwise.serve.events import Event
from crowdwise.serve.schema import EVENT, LEASE


class RefusedError(CrowdwiseError, ValueError):
    """A request that is refused, with the HTTP status."""

    def __init__(self, status: int, what: str, **parts: str) -> None:
        super().__init__(explain(what, **parts))
        self.status = status


@dataclass
class Draft:
    """New events and leases that are not stored yet, and lookups among them."""

    board: Board
    now: float = field(default_factory=time.monotonic)
    at: float = field(default_factory=time.time)
    events: list[Event] = field(default_factory=list)
    leases: list[tuple[str, int]] = field(default_factory=list)  # worker and task
    replaced: list[tuple[str, str]] = field(default_factory=list)  # older leases, by name
    pending: dict[tuple[str, str, str], Event] = field(default_factory=dict)

    def add(self, kind: str, actor: str, *, task: str = "", worker: str = "", **more: Any) -> Event:
        """Append an event."""
        seq = self.board.seq + len(self.events) + 1
        made = Event(seq, self.at, kind, actor, task, worker, **more)
        self.events.append(made)
        self.pending[kind, task, worker] = made
        return made

    def find(self, kind: str, task: str, worker: str = "") -> Event | None:
        """Find this draft's event about a task and a worker, if there is one."""
        return self.pending.get((kind, task, worker))

    def give(self, worker: str, task: int) -> None:
        """Assign a task to a worker at once."""
        if self.board.leases.was_offered(worker, task):
            self.replaced.append((worker, self.board.tasks.list[task]))
        self.board.leases.give(worker, task, self.now + self.board.settings.lease)
        self.leases.append((worker, task))

    def store(self, connection: Connection) -> None:
        """Write the events and leases."""
        events.append(connection, self.events)
        names, seconds = self.board.tasks.list, self.board.settings.lease
        ended = [(one.worker, one.task) for one in self.events if one.kind in RELEASING]
        given = [(worker, names[task]) for worker, task in self.leases]
        delete_leases(connection, ended + self.replaced)
        rows = [{"worker": who, "task": what, "seconds": seconds} for who, what in given]
        if rows:
            found = connection.execute(LEASE.insert().returning(LEASE.c.id), rows)
            self.board.last_lease = max(self.board.last_lease, *found.scalars())

    def keep(self) -> None:
        """Apply the events to the board, now that they are stored."""
        for one in self.events:
            self.board.apply(one)

    def drop(self) -> None:
        """Undo the leases, which could not be stored."""
        with self.board.lock:
            for worker, task in self.leases:
                self.board.leases.take_back(worker, task)


RELEASING = (events.LABEL, events.SKIP)
NEWEST = select(  # one query, since there is mostly nothing to read
    select(func.max(EVENT.c.seq)).scalar_subquery(), select(func.max(LEASE.c.id)).scalar_subquery()
)


def delete_leases(connection: Connection, pairs: Iterable[tuple[str, str]]) -> None:
    """Remove leases from the table."""
    rows = [{"who": worker, "what": task} for worker, task in pairs]
    if rows:
        match = (LEASE.c.worker == bindparam("who")) & (LEASE.c.task == bindparam("what"))
        connection.execute(LEASE.delete().where(match), rows)


def catch_up(connection: Connection, board: Board) -> None:
    """Bring the board up to date with events stored by other processes."""
    last_event, last_lease = connection.execute(NEWEST).one()
    if (last_event or 0) > board.seq:
        for one in events.read_after(connection, board.seq):
            board.apply(one)
    if (last_lease or 0) > board.last_lease:
        now = time.monotonic()
        newer = select(LEASE).where(LEASE.c.id > board.last_lease).order_by(LEASE.c.id)
        with board.lock:
            for row in connection.execute(newer):
                task = board.tasks.number[row.task]
                board.leases.give(row.worker, task, now + row.seconds)
                board.last_lease = row.id
