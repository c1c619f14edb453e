"""Access tokens: who holds them, and what they allow.

A token is ``cw_ID_SECRET``. Only the digest of the secret is stored, and compared in constant
time; the secret has 256 random bits, so a fast digest is enough.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from enum import IntEnum

from crowdwise.serve.events import Event

NOBODY = hashlib.sha256(b"nobody").hexdigest()  # to compare with if there is no such key


class Role(IntEnum):
    """The permissions of a key; each role includes those before it."""

    WORKER = 1  # gets tasks, labels them, and sees their own labels
    LEAD = 2  # sees all labels and exports them, adds tasks
    ADMIN = 3  # makes keys, changes the project, reads the whole log


@dataclass(frozen=True)
class Key:
    """A token that was issued."""

    id: str
    name: str  # of the worker or other person
    role: Role
    digest: str

    @classmethod
    def from_event(cls, event: Event) -> Key:
        return cls(event.task, event.worker, Role[event.label.upper()], event.body["digest"])


def make_token() -> tuple[str, str, str]:
    """Make a token; returns it with its public id and the digest to store."""
    number, secret = secrets.token_hex(6), secrets.token_hex(32)
    return f"cw_{number}_{secret}", number, digest_of(secret)


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def find_key(keys: dict[str, Key], token: str) -> Key | None:
    """Find the key of a token, None if the token is not valid."""
    prefix, _, rest = token.partition("_")
    number, _, secret = rest.partition("_")
    key = keys.get(number) if prefix == "cw" else None
    expected = NOBODY if key is None else key.digest
    is_right = hmac.compare_digest(digest_of(secret), expected)
    return key if is_right else None
