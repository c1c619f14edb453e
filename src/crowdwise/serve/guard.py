"""The guard in front of all routes: sizes, origins and headers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import ip_address
from typing import Any

from fastapi import HTTPException

MOST_BYTES = 2_000_000  # in a request's body
PATIENCE = 30.0  # seconds to wait for the next chunk of a body
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data: https:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Guard:
    """Refuses requests that no honest client sends, before they are read.

    A page of another site can make a browser send requests to this machine. It cannot send JSON
    without a preflight request, which is never granted; requests with another origin, or to a
    service without tokens under a name other than this machine's, are refused as well.
    """

    def __init__(self, app: App, is_open: Callable[[], bool], most: int = MOST_BYTES) -> None:
        self.app, self.is_open, self.most = app, is_open, most

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        problem = self._find_problem(scope["method"], headers)
        if problem is not None:
            await answer(send, *problem)
            return
        await self.app(scope, limit_body(receive, self.most), add_headers(send))

    def _find_problem(self, method: str, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return the status and reason to refuse a request by its headers, None if it is fine."""
        host = headers.get("host", "")
        if self.is_open() and not is_loopback(name_of(host)):
            return 403, "Without tokens, the service answers on localhost only."
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return 403, "Requests from pages of other sites are refused."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.most:
            return 413, too_large(self.most)
        if method in ("POST", "PUT", "PATCH"):
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, "The body has to be JSON, with Content-Type: application/json."
        return None


def limit_body(receive: Receive, most: int) -> Receive:
    """Limit the size of a body and the time between its chunks."""
    read, ended = 0, False

    async def receive_limited() -> Message:
        nonlocal read, ended
        if ended:
            return await receive()  # until the client disconnects
        try:
            message = await asyncio.wait_for(receive(), PATIENCE)
        except TimeoutError:
            raise HTTPException(408, "The body did not arrive in time.") from None
        read += len(message.get("body", b""))
        ended = not message.get("more_body", False)
        if read > most:
            raise HTTPException(413, too_large(most))
        return message

    return receive_limited


def add_headers(send: Send) -> Send:
    """Add headers to all answers that forbid what our pages do not need."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name for name, _ in message["headers"]}
            extra = {"content-security-policy": POLICY, **HEADERS}
            new = [(name.encode(), value.encode()) for name, value in extra.items()]
            kept = [(name, value) for name, value in new if name not in present]
            message["headers"] = [*message["headers"], *kept]
        await send(message)

    return send_with_headers


async def answer(send: Send, status: int, text: str) -> None:
    """Send a complete error response."""
    body = json.dumps({"detail": text}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **HEADERS}
    listed = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})


def too_large(most: int) -> str:
    return f"The body is too large: at most {most:,} bytes. Send several smaller batches."


def name_of(host: str) -> str:
    """Return the host name in a Host header, without its port.

    >>> name_of("localhost:8000"), name_of("[::1]:8000"), name_of("::1")
    ('localhost', '::1', '::1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


def is_loopback(name: str) -> bool:
    """Return whether a name or address is this machine's own.

    >>> [is_loopback(name) for name in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "evil.test")]
    [True, True, True, False, False]
    """
    if name.lower() == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
