"""Starting the service: initial content, checks, and the server itself."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from crowdwise.errors import ParameterError, explain, listing, plural
from crowdwise.serve.actions import ChangeProject, IssueToken
from crowdwise.serve.app import create_app
from crowdwise.serve.guard import is_loopback
from crowdwise.serve.keys import Role
from crowdwise.serve.patience import PatientProtocol
from crowdwise.serve.project import Start
from crowdwise.serve.service import Service
from crowdwise.typing import Json

MOST_CONNECTIONS = 500
SWITCH = 0.0005  # seconds that the live model may delay requests, instead of 0.005
ACTOR = "command line"


@dataclass(frozen=True)
class Address:
    """Where the service listens; a certificate makes it https."""

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: Path | None = None
    private_key: Path | None = None


def prepare(service: Service, start: Start, changes: Json) -> str:
    """Store the initial content and changed settings; returns a summary of the project."""
    settings = service.board.settings
    asked, board = changes.pop("classes", ()), service.board
    known = tuple(dict.fromkeys((*settings.classes, *asked)))  # these keep their places
    new = tuple(name for name in start.classes if name not in known)
    if asked and new:
        raise ParameterError(
            explain(
                f"{plural(len(new), 'class', 'classes')} of the file not named by --classes.",
                found=listing(list(new), 20),
                expected=f"some of {listing(list(known), 20)}",
                fix="correct these labels, or add them to --classes",
            )
        )
    classes = known + new
    if len(board.tasks) + len(start.tasks) and len(classes) < 2:
        raise ParameterError(
            explain(
                f"The project has {plural(len(classes), 'class', 'classes')}.",
                expected="two classes or more",
                fix="name the classes, such as --classes yes,no",
            )
        )
    start.check_names()  # before the first of them is stored
    other = sum(
        board.content[board.tasks.number[name]] != content
        for name, content in start.tasks.items()
        if content and name in board.tasks.number
    )
    service.ask(ChangeProject(ACTOR, replace(settings, **changes, classes=classes)))
    for action in start.to_actions():
        service.ask(action)
    tasks, labels = plural(len(board.tasks), "task"), plural(len(board.task), "label")
    found = f"{tasks}, {labels}, {plural(len(board.classes), 'class', 'classes')}"
    if settings.classes and new:
        found += f"; new: {listing(list(new), 20)}"
    if other:
        found += f"; {plural(other, 'task')} stored before with other content, which is kept"
    return found


def issue_token(service: Service, name: str, role: Role) -> str:
    """Issue a token, which is shown only once."""
    return str(service.ask(IssueToken(ACTOR, name, role))["token"])


def refuse_open_doors(service: Service, host: str) -> None:
    """Refuse to listen on other than loopback addresses without tokens."""
    if not is_loopback(host) and not service.board.keys:
        raise ParameterError(
            explain(
                f"--host {host} can be reached from other machines, and there are no tokens.",
                expected="tokens, or an address that only this machine can reach",
                fix="issue a token first: crowdwise serve --token NAME:admin",
            )
        )


def serve(
    service: Service, address: Address, images: Path | None, ready: Callable[[str], None]
) -> None:
    """Listen until interrupted; ``ready`` gets the address once the server is up."""
    refuse_open_doors(service, address.host)
    sys.setswitchinterval(SWITCH)
    gc.freeze()  # what is loaded now stays; scanning it again and again would cause pauses
    app = create_app(service, images, may_be_open=is_loopback(address.host))
    Announcing(configure(app, address), ready).run()


def configure(app: FastAPI, address: Address) -> uvicorn.Config:
    """Return the settings of the server."""
    return uvicorn.Config(
        app,
        http=PatientProtocol,
        host=address.host,
        port=address.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=5,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.private_key,
    )


class Announcing(uvicorn.Server):
    """A server that announces its address."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            name, port = self.servers[0].sockets[0].getsockname()[:2]
            name = f"[{name}]" if ":" in name else name
            scheme = "https" if self.config.is_ssl else "http"
            self._ready(f"{scheme}://{name}:{port}")
