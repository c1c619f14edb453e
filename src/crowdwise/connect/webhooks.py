"""Signed webhooks: send events to another program, or receive them.

A request carries ``Crowdwise-Signature: t=SECONDS,v1=HEX``, the HMAC-SHA256 of ``SECONDS.BODY``
under a shared secret. The body holds ``event``, ``data`` and ``key``, which is the same for every
attempt to send an event; the header ``Idempotency-Key`` repeats it, for those who only count.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from uuid import uuid4

from crowdwise.connect.link import Link
from crowdwise.errors import CrowdwiseError, FormatError, ParameterError, explain
from crowdwise.typing import Json

SIGNATURE, KEY = "Crowdwise-Signature", "Idempotency-Key"
TOLERANCE = 300.0  # seconds of clock difference and transit
SHORTEST = 16  # characters in a secret
MOST_KEYS = 100_000  # remembered


class SignatureError(CrowdwiseError, ValueError):
    """A request was not signed with our secret, or too long ago."""


def sign(secret: str, body: bytes, at: float) -> str:
    """Sign a body at a time, in seconds since 1970.

    >>> sign("a secret of 24 characters", b"{}", 1_700_000_000.5)[:26]
    't=1700000000,v1=f5a7517f79'
    """
    moment = str(int(at))
    digest = hmac.new(check_secret(secret), moment.encode() + b"." + body, hashlib.sha256)
    return f"t={moment},v1={digest.hexdigest()}"


def verify(secret: str, body: bytes, signature: str, now: float | None = None) -> None:
    """Refuse a body that was not signed with the secret within the last five minutes."""
    moment = signature.partition(",")[0].removeprefix("t=")
    now = time.time() if now is None else now
    known = moment.isascii() and moment.isdigit() and len(moment) < 16
    expected = sign(secret, body, int(moment) if known else 0)
    right = hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))
    if not (known and right and abs(now - int(moment)) <= TOLERANCE):
        raise SignatureError(
            explain(
                "The signature of the request is missing, wrong or too old.",
                expected=f"{SIGNATURE}: t=SECONDS,v1=HEX, with our secret, within 5 minutes",
                fix="compare the secrets and the clocks of both machines",
            )
        )


def check_secret(secret: str) -> bytes:
    """Return a secret as bytes; a short one is refused, since it can be guessed."""
    if len(secret) < SHORTEST:
        raise ParameterError(
            explain(
                f"The secret has {len(secret)} characters.",
                expected=f"{SHORTEST} or more",
                fix='make one: python -c "import secrets; print(secrets.token_urlsafe(32))"',
            )
        )
    return secret.encode()


def read_event(body: bytes) -> Json:
    """Return the event in a body."""
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        event = None
    if (
        not isinstance(event, dict)
        or not isinstance(event.get("event"), str)
        or "data" not in event
        or not isinstance(event.get("key", ""), str)
    ):
        raise FormatError(
            explain(
                "The request does not name an event.",
                expected='{"event": name, "data": …, "key": text} as JSON',
                fix="send events with crowdwise.connect.webhooks.Webhook",
            )
        )
    return event


class Webhook:
    """An address that receives events.

    Parameters
    ----------
    url, secret : str
        Where to send events, and the secret to sign them with.
    sleep : callable
        Waits between attempts.
    """

    def __init__(self, url: str, secret: str, sleep: Callable[[float], None] = time.sleep) -> None:
        check_secret(secret)
        self._url, self._secret, self._sleep = url, secret, sleep

    def send(self, event: str, data: object, key: str | None = None) -> str:
        """Send an event until it is accepted; returns the key that all attempts share."""
        key = uuid4().hex if key is None else key
        body = {"event": event, "data": data, "key": key}
        text = json.dumps(body).encode()

        def headers() -> dict[str, str]:  # signed again for each attempt
            return {KEY: key, SIGNATURE: sign(self._secret, text, time.time())}

        Link(self._url, headers, sleep=self._sleep).ask("POST", "", body, again=True)
        return key


class Inbox:
    """Receives signed requests, each event once."""

    def __init__(self, secret: str, handle: Callable[[str, Json], None]) -> None:
        check_secret(secret)
        self._secret, self._handle, self._lock = secret, handle, Lock()
        self._known: OrderedDict[str, None] = OrderedDict()

    def take(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """Handle a request; returns whether it was new. One that fails can be sent again."""
        by_name = {name.lower(): value for name, value in headers.items()}
        verify(self._secret, body, by_name.get(SIGNATURE.lower(), ""))
        event = read_event(body)
        key = event.get("key") or hashlib.sha256(body).hexdigest()  # a header is not signed
        with self._lock:
            if key in self._known:
                return False
            self._handle(event["event"], event["data"])
            self._known[key] = None
            if len(self._known) > MOST_KEYS:
                self._known.popitem(last=False)
        return True
