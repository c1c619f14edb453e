"""Keys to the service: who holds them, and what they open.

A token is ``cw_ID_SECRET``. Only the digest of the secret is kept, and compared in constant time;
the secret has 256 random bits, so that a fast digest is enough.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from enum import IntEnum

from crowdwise.serve.events import TOKEN, Event

NOBODY = hashlib.sha256(b"nobody").hexdigest()  # compared with where there is no such key


class Role(IntEnum):
    """What a key opens: a role may do all that the roles before it may."""

    WORKER = 1  # gets tasks, labels them, and sees the own labels
    LEAD = 2  # sees all labels and exports them, adds tasks
    ADMIN = 3  # makes keys, changes the project, reads the whole log


@dataclass(frozen=True)
class Key:
    """A token that was handed out."""

    id: str
    name: str  # of the worker or person
    role: Role
    digest: str

    @classmethod
    def from_event(cls, event: Event) -> Key:
        return cls(event.task, event.worker, Role[event.label.upper()], event.body["digest"])


def make_token() -> tuple[str, str, str]:
    """A new token, its public number, and the digest that is kept."""
    number, secret = secrets.token_hex(6), secrets.token_hex(32)
    return f"cw_{number}_{secret}", number, digest_of(secret)


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def find_key(keys: dict[str, Key], token: str) -> Key | None:
    """The key of a token, None if it opens nothing."""
    prefix, _, rest = token.partition("_")
    number, _, secret = rest.partition("_")
    key = keys.get(number) if prefix == "cw" else None
    expected = NOBODY if key is None else key.digest
    is_right = hmac.compare_digest(digest_of(secret), expected)
    return key if is_right else None


def token_event(seq: int, at: float, actor: str, key: Key) -> Event:
    """The event that makes a key valid."""
    body = {"digest": key.digest}
    return Event(seq, at, TOKEN, actor, key.id, key.name, key.role.name.lower(), 0, body)
