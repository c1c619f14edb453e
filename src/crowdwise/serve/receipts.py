"""Receipts: answers to requests that may be sent again."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import Connection, select

from crowdwise.serve.draft import RefusedError
from crowdwise.serve.schema import RECEIPT
from crowdwise.typing import Json


class Receipts:
    """The answers to the keyed requests of one transaction, and to earlier ones."""

    def __init__(self, connection: Connection, keys: Iterable[str]) -> None:
        self.new: dict[str, tuple[str, Json]] = {}
        self.old: dict[str, tuple[str, Json]] = {}
        wanted = {key for key in keys if key}
        if wanted:
            rows = connection.execute(select(RECEIPT).where(RECEIPT.c.id.in_(wanted)))
            self.old = {row.id: (row.request, json.loads(row.answer)) for row in rows}

    def find(self, key: str, request: str) -> Json | None:
        """Find the earlier answer to a request, None if the request is new."""
        known = self.old.get(key) or self.new.get(key)
        if known is None:
            return None
        if known[0] != request:
            raise RefusedError(
                422,
                "The idempotency key was used for another request.",
                fix="use a new key for every request",
            )
        return known[1]

    def add(self, key: str, request: str, answer: Json) -> None:
        """Add an answer."""
        if key:
            self.new[key] = (request, answer)

    def store(self, connection: Connection) -> None:
        """Write the new receipts."""
        rows = [
            {"id": key, "request": request, "answer": json.dumps(answer)}
            for key, (request, answer) in self.new.items()
        ]
        if rows:
            connection.execute(RECEIPT.insert(), rows)
