"""Routes of the pages. They contain no data: scripts fetch it with the viewer's token."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from crowdwise.serve.draft import RefusedError
from crowdwise.serve.lead import Lead
from crowdwise.serve.pages.dashboard import draw_dashboard, environment
from crowdwise.serve.pages.reference import list_routes
from crowdwise.serve.pages.reporting import Reporter

router = APIRouter(include_in_schema=False)
STATIC = {
    "report.css": ("crowdwise.report.page", "text/css"),
    "serve.css": ("crowdwise.serve.pages", "text/css"),
    "common.js": ("crowdwise.serve.pages", "text/javascript"),
    "dashboard.js": ("crowdwise.serve.pages", "text/javascript"),
    "label.js": ("crowdwise.serve.pages", "text/javascript"),
}


@router.get("/", response_class=HTMLResponse)
async def show_dashboard() -> str:
    return environment().get_template("dashboard.html.j2").render()


@router.get("/label", response_class=HTMLResponse)
async def show_label_page() -> str:
    return environment().get_template("label.html.j2").render()


@router.get("/docs", response_class=HTMLResponse)
async def show_reference(request: Request) -> str:
    return environment().get_template("reference.html.j2").render(groups=list_routes(request.app))


@router.get("/api/dashboard", response_class=HTMLResponse)
async def show_dashboard_parts(request: Request, _: Lead) -> str:
    """Render the current content of the dashboard."""
    return await asyncio.to_thread(draw_dashboard, request.app.state.service)


@router.get("/api/report", response_class=HTMLResponse)
async def show_report(request: Request, _: Lead) -> Response:
    """Write the full report of the labels so far."""
    reporter: Reporter = request.app.state.reporter
    text = await asyncio.to_thread(reporter.write, request.app.state.service)
    return HTMLResponse(text, headers={"content-disposition": 'attachment; filename="report.html"'})


@router.get("/static/{name}")
async def show_static(name: str) -> Response:
    found = STATIC.get(name)
    if found is None:
        raise RefusedError(404, "There is no such file.")
    return Response(load(name), media_type=found[1], headers={"cache-control": "no-cache"})


@cache
def load(name: str) -> str:
    """Load a style sheet or script."""
    folder: Any = files(STATIC[name][0])
    return str(folder.joinpath(name).read_text(encoding="utf-8"))
