"""Routes for workers: the next task, labels, and their own work so far."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response

from crowdwise.serve.access import Caller, require
from crowdwise.serve.actions import Action, AddLabels, Answer, SkipTask, TakeTask, WithdrawLabel
from crowdwise.serve.bodies import LabelBody, LabelsBody, TaskBody, WorkerBody
from crowdwise.serve.draft import RefusedError
from crowdwise.serve.images import ImageFolder
from crowdwise.serve.keys import Role
from crowdwise.serve.service import Service
from crowdwise.typing import Json

router = APIRouter(prefix="/api", tags=["work"])
Worker = Annotated[Caller, Depends(require(Role.WORKER))]
IdempotencyKey = Annotated[
    str | None,
    Header(max_length=200, description="the same for every attempt to send the same request"),
]


async def ask(
    request: Request, action: Action, caller: Caller | None = None, key: str | None = None
) -> Answer:
    """Do an action at the desk; one with the same key of the same caller is done once."""
    service: Service = request.app.state.service
    receipt = ""
    if key and caller is not None:
        receipt = hashlib.sha256(f"{caller.name}\0{key}".encode()).hexdigest()
    return await asyncio.wrap_future(service.submit(action, receipt))


@router.get("/project")
async def show_project(request: Request, caller: Worker) -> Json:
    """Show the project's settings and who you are."""
    service: Service = request.app.state.service
    settings = service.board.settings
    return {
        "title": settings.title,
        "instructions": settings.instructions,
        "classes": list(settings.classes),
        "you": caller.name,
        "role": caller.role.name.lower(),
        "open": caller.is_open,
    }


@router.post("/next")
async def take_next_task(request: Request, body: WorkerBody, caller: Worker) -> Answer:
    """Get the next task to label. It is yours for a while; asking again returns the same one."""
    return await ask(request, TakeTask(caller.acting_as(body.worker)))


@router.post("/labels")
async def add_label(
    request: Request, body: LabelBody, caller: Worker, idempotency_key: IdempotencyKey = None
) -> Answer:
    """Store one label. It may be sent again and is stored only once."""
    row = (body.task, caller.acting_as(body.worker), body.label)
    action = AddLabels(caller.name, [row], offered_only=caller.role < Role.LEAD)
    return await ask(request, action, caller, idempotency_key)


@router.post("/labels/batch")
async def add_labels(
    request: Request, body: LabelsBody, caller: Worker, idempotency_key: IdempotencyKey = None
) -> Answer:
    """Store many labels, either all or none."""
    rows = [(one.task, caller.acting_as(one.worker), one.label) for one in body.labels]
    action = AddLabels(caller.name, rows, offered_only=caller.role < Role.LEAD)
    return await ask(request, action, caller, idempotency_key)


@router.post("/skip")
async def skip_task(request: Request, body: TaskBody, caller: Worker) -> Answer:
    """Skip a task, which is left to others."""
    return await ask(request, SkipTask(caller.acting_as(body.worker), body.task))


@router.post("/withdraw")
async def withdraw_label(request: Request, body: TaskBody, caller: Worker) -> Answer:
    """Withdraw a label. It stays in the log but no longer counts."""
    worker = caller.acting_as(body.worker)
    return await ask(request, WithdrawLabel(caller.name, worker, body.task))


@router.get("/me")
async def show_own_labels(request: Request, caller: Worker, worker: str | None = None) -> Answer:
    """List your own labels, the latest first."""
    service: Service = request.app.state.service
    board, name = service.board, caller.acting_as(worker)
    with board.lock:
        own = list(board.labeled.get(name, {}).items())[::-1][:200]
        classes, tasks = board.settings.classes, board.tasks.list
        labels = [{"task": tasks[task], "label": classes[label]} for task, label in own]
        return {"worker": name, "n_labels": len(board.labeled.get(name, ())), "labels": labels}


@router.get("/image", response_class=Response)
async def show_image(
    request: Request, task: str, caller: Worker, worker: str | None = None
) -> Response:
    """Show the picture of a task that you were given."""
    service: Service = request.app.state.service
    board, name = service.board, caller.acting_as(worker)
    images: ImageFolder = request.app.state.images
    number = board.tasks.number.get(task, -1)
    mine = board.leases.was_offered(name, number) or number in board.labeled.get(name, {})
    if number < 0 or not (mine or caller.role >= Role.LEAD):
        raise RefusedError(404, "There is no such picture.")
    data, kind = await asyncio.to_thread(images.read, board.content[number].get("image", ""))
    return Response(data, media_type=kind, headers={"cache-control": "private, max-age=3600"})
