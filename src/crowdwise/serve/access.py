"""Who is calling, what they may do, and how often."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import Request

from crowdwise.serve.actions import check_name
from crowdwise.serve.board import Board
from crowdwise.serve.draft import RefusedError
from crowdwise.serve.keys import Role, find_key

SOMEONE = "me"  # the worker's name if none is given, on a service without tokens
MOST_CALLERS = 10_000  # remembered
# Requests per second, and burst size, by role and for an address that sends wrong tokens.
RATES = {Role.WORKER: (20.0, 60.0), Role.LEAD: (1_000.0, 2_000.0), Role.ADMIN: (1_000.0, 2_000.0)}
WRONG = (1.0, 100.0)


@dataclass(frozen=True)
class Caller:
    """Someone with a token, or anyone on a service that has none."""

    name: str
    role: Role
    is_open: bool = False

    def acting_as(self, worker: str | None) -> str:
        """Return the worker the caller acts for: workers only themselves, others anyone."""
        if not worker:
            return self.name
        if self.role < Role.LEAD and worker != self.name:
            raise RefusedError(403, "A worker's token is valid for that worker only.")
        check_name("worker", worker)
        return worker


class Limiter:
    """A rate limit for each caller, on a monotonic clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # when, and how many

    def left(self, who: str, rate: float, burst: float) -> float:
        """Return how many requests the caller may make at once."""
        when, left = self._left.get(who, (self._clock(), burst))
        return min(burst, left + rate * (self._clock() - when))

    def spend(self, who: str, rate: float, burst: float) -> None:
        """Count a request, or refuse it."""
        left = self.left(who, rate, burst)
        if left < 1:
            wait = f"{(1 - left) / rate:.1f} seconds"
            raise RefusedError(429, "There are too many requests.", fix=f"wait for {wait}")
        self._left[who] = self._clock(), left - 1
        self._left.move_to_end(who)
        while len(self._left) > MOST_CALLERS:
            self._left.popitem(last=False)


class Doorkeeper:
    """Identifies callers. While there are no tokens, anyone on this machine may do anything."""

    def __init__(self, board: Board, may_be_open: bool = True) -> None:
        self.board, self.may_be_open, self.limiter = board, may_be_open, Limiter()

    def let_in(self, request: Request, least: Role) -> Caller:
        """Return the caller, or refuse one whose role is not enough."""
        caller, who = self._identify(request)
        if not caller.is_open:
            self.limiter.spend(who, *RATES[caller.role])
        if caller.role < least:
            raise RefusedError(
                403,
                "This token does not allow that.",
                expected=f"a token of {'an admin' if least is Role.ADMIN else 'a lead'}",
            )
        return caller

    def _identify(self, request: Request) -> tuple[Caller, str]:
        if self.may_be_open and not self.board.keys:
            return Caller(SOMEONE, Role.ADMIN, is_open=True), ""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        key = find_key(self.board.keys, token.strip()) if kind.lower() == "bearer" else None
        if key is None:  # others at the address, such as a proxy's, still get in with a valid token
            self.limiter.spend(f"address {request.client.host if request.client else ''}", *WRONG)
            raise RefusedError(
                401,
                "A valid token is needed.",
                expected="the header Authorization: Bearer cw_…",
            )
        return Caller(key.name, key.role), key.id


def require(least: Role) -> Callable[[Request], Awaitable[Caller]]:
    """Make a route dependency that returns the caller and requires at least this role."""

    async def let_in(request: Request) -> Caller:
        keeper: Doorkeeper = request.app.state.doorkeeper
        return keeper.let_in(request, least)

    return let_in
