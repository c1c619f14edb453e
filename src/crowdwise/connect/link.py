"""JSON requests to another program, retried where that is safe."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException, HTTPMessage
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from crowdwise.errors import CrowdwiseError, ParameterError, explain

BUSY = {429, 502, 503, 504}  # try again later
TRIES = 5
LONGEST_WAIT = 60.0  # seconds between two attempts, whatever the server asks for
MOST_BYTES = 1 << 28  # in a response
Headers = Mapping[str, str]


class ConnectError(CrowdwiseError, OSError):
    """Another program cannot be reached or refuses a request.

    ``status`` is the HTTP status, 0 if there was no response.
    """

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class Stay(HTTPRedirectHandler):
    """Refuses redirects: a token must only go to the server it is meant for."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def is_address(url: str) -> bool:
    """Return whether requests can be sent to addresses under a URL."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # unmatched brackets, or an invalid port
        return False
    plain = url.isascii() and url.isprintable() and not set(url) & set(" ?#\\")
    return bool(known and plain and parts.username is None)


class Link:
    """A server that speaks JSON.

    Parameters
    ----------
    url : str
        Its address, including any path prefix.
    headers : callable
        Returns the headers of each request, such as the token. They never appear in messages.
    timeout : float
        Seconds to wait for a response.
    sleep : callable
        Waits between attempts.
    """

    def __init__(
        self,
        url: str,
        headers: Callable[[], Headers] = dict,
        *,
        timeout: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not is_address(url):
            raise ParameterError(
                explain(
                    "The address of the server cannot be used.",
                    expected="http://HOST:PORT or https://HOST, without name, password, ? or #",
                    fix="write it like one of these",
                )
            )
        self.url, self.timeout = url.rstrip("/"), timeout
        self._headers, self._sleep, self._opener = headers, sleep, build_opener(Stay)

    def ask(self, method: str, path: str, body: object = None, *, again: bool | None = None) -> Any:
        """Send a request and return the response.

        Requests other than ``POST`` are retried when there is no response, unless ``again`` says
        otherwise. A busy server has done nothing yet, so it is always asked again.
        """
        again = method != "POST" if again is None else again
        data = None if body is None else json.dumps(body).encode()
        for number in range(1, TRIES + 1):
            try:
                return self._ask_once(method, path, data)
            except ConnectError as error:
                may = error.status in BUSY or (error.status == 0 and again)
                if not may or number == TRIES:
                    raise
                self._sleep(wait_before(number, getattr(error, "after", None)))
        raise AssertionError("unreachable")

    def _ask_once(self, method: str, path: str, data: bytes | None) -> Any:
        headers = {"Accept": "application/json", **self._headers()}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = Request(f"{self.url}{path}", data, headers, method=method)
        where = f"{method} {self.url}{path.partition('?')[0]}"
        try:
            with self._opener.open(request, timeout=self.timeout) as answer:
                text = answer.read(MOST_BYTES + 1)
        except HTTPError as error:
            raise refusal(where, error) from None
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise ConnectError(
                explain(
                    "There was no response.",
                    first=f"{where}: {reason}",
                    fix="check the address, and that the server is running",
                )
            ) from None
        if len(text) > MOST_BYTES:
            raise ConnectError(
                explain("The response is too long.", first=where, fix="ask for less")
            )
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            raise ConnectError(
                explain(
                    "The response is not JSON.",
                    first=f"{where}: {text[:60]!r}",
                    fix="check that the address is that of the server itself",
                ),
                200,
            ) from None


def refusal(where: str, error: HTTPError) -> ConnectError:
    """Explain an HTTP error, with the reason that the server gives."""
    try:
        with error:
            said = json.loads(error.read(100_000))
        detail = said.get("detail") or said.get("error") or said.get("validation_errors") or said
    except (ValueError, OSError, AttributeError):
        detail = error.reason
    fixes = {
        401: "check the token, and that it is still valid",
        403: "use the token of someone who is allowed to do this",
        404: "check the address and the project's number",
    }
    fix = fixes.get(error.code, "check the request")
    if 300 <= error.code < 400:
        fix = f"use the address it redirects to: {error.headers.get('Location', '')[:200]}"
    text = explain(
        f"The server answered {error.code}.", first=f"{where}: {str(detail)[:300]}", fix=fix
    )
    found = ConnectError(text, error.code)
    vars(found)["after"] = error.headers.get("Retry-After")
    return found


def wait_before(number: int, after: str | None) -> float:
    """Return the seconds to wait after ``number`` attempts: the server's, or longer each time."""
    if after is not None and after.strip().isdigit():
        return min(float(after), LONGEST_WAIT)
    return float(min(0.5 * 2**number, LONGEST_WAIT) * random.uniform(0.5, 1.0))
