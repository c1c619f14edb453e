"""The web application: routes, errors, and the guard in front of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from crowdwise import __version__
from crowdwise.errors import CrowdwiseError
from crowdwise.serve import admin, lead, work
from crowdwise.serve.access import Doorkeeper
from crowdwise.serve.database import UnavailableError
from crowdwise.serve.draft import RefusedError
from crowdwise.serve.guard import Guard
from crowdwise.serve.images import ImageFolder
from crowdwise.serve.pages import routes as pages
from crowdwise.serve.pages.reporting import Reporter
from crowdwise.serve.service import Service

ABOUT = """Tasks out, labels in, and a model that learns from each label.

Once there are tokens, every request except `/api/health` needs the header
`Authorization: Bearer TOKEN`. Bodies are JSON. Errors are `{"detail": text}`.
"""


def create_app(service: Service, images: Path | None = None, *, may_be_open: bool = True) -> Any:
    """Create the web application of a service.

    Pictures are read from the folder ``images``. Unless it ``may_be_open``, a token is needed for
    every request, even while there are none.
    """
    app = FastAPI(
        title="crowdwise",
        version=__version__,
        description=ABOUT,
        docs_url=None,  # FastAPI's page loads scripts from elsewhere; ours is under /docs
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.service, app.state.images = service, ImageFolder(images)
    app.state.doorkeeper, app.state.reporter = Doorkeeper(service.board, may_be_open), Reporter()
    for part in (work, lead, admin, pages):
        app.include_router(part.router)
    app.add_exception_handler(CrowdwiseError, explain_error)
    app.add_exception_handler(RequestValidationError, explain_invalid)

    @app.get("/api/health", tags=["work"])
    async def check_health() -> dict[str, str]:
        """Report that the service is up."""
        return {"status": "up"}

    return Guard(app, lambda: may_be_open and not service.board.keys)


async def explain_error(_: Request, error: Exception) -> JSONResponse:
    """Answer with one of our errors and its status."""
    status, headers = 422, {}
    if isinstance(error, RefusedError):
        status = error.status
        headers = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "1"}}.get(status, {})
    elif isinstance(error, UnavailableError):
        status, headers = 503, {"retry-after": "1"}
    return JSONResponse({"detail": str(error)}, status, headers)


async def explain_invalid(_: Request, error: Exception) -> JSONResponse:
    """Report the first problem with a body, without repeating the body."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return JSONResponse({"detail": f"{place}: {first['msg']}"}, 422)
