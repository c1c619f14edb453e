"""Routes for admins: tokens, the project, and the whole log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from crowdwise.serve.access import Caller, require
from crowdwise.serve.actions import Answer, ChangeSettings, IssueToken, RevokeToken
from crowdwise.serve.audit import write_events
from crowdwise.serve.bodies import ProjectBody, TokenBody
from crowdwise.serve.draft import RefusedError
from crowdwise.serve.keys import Role
from crowdwise.serve.service import Service
from crowdwise.serve.work import ask
from crowdwise.typing import Json

router = APIRouter(prefix="/api", tags=["admin"])
Admin = Annotated[Caller, Depends(require(Role.ADMIN))]


@router.patch("/project")
async def change_project(request: Request, body: ProjectBody, caller: Admin) -> Answer:
    """Change the project's settings."""
    return await ask(request, ChangeSettings(caller.name, body.changes()))


@router.get("/tokens")
async def list_tokens(request: Request, _: Admin) -> list[Json]:
    """List who has a token; the tokens themselves are not stored."""
    keys = request.app.state.service.board.keys.values()
    return [{"id": key.id, "name": key.name, "role": key.role.name.lower()} for key in keys]


@router.post("/tokens")
async def issue_token(request: Request, body: TokenBody, caller: Admin) -> Answer:
    """Make a token. It is shown in this response only.

    The first token has to be an admin's: from then on, every request needs a token.
    """
    role = Role[body.role.upper()]
    if caller.is_open and role is not Role.ADMIN:
        raise RefusedError(
            409,
            "The first token has to be an admin's, or nobody could make another.",
            fix='make one with {"name": …, "role": "admin"} first',
        )
    return await ask(request, IssueToken(caller.name, body.name, role))


@router.delete("/tokens/{number}")
async def revoke_token(request: Request, number: str, caller: Admin) -> Answer:
    """Revoke a token. The last admin token cannot be revoked."""
    return await ask(request, RevokeToken(caller.name, number))


@router.get("/events", response_class=StreamingResponse)
async def export_events(
    request: Request, _: Admin, after: int = Query(0, ge=0, lt=2**63)
) -> StreamingResponse:
    """Export the whole log, one JSON object per line; ``crowdwise serve --replay`` reads it."""
    service: Service = request.app.state.service

    def lines() -> Iterator[str]:
        yield from write_events(service.database, after)

    return StreamingResponse(lines(), media_type="application/x-ndjson")
