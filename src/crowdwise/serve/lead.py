"""Routes for leads: all tasks, workers and labels, the model, the plan, and exports."""

from __future__ import annotations

import asyncio
import io
import warnings
from collections.abc import Collection
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Query, Request, Response

from crowdwise.io.consensus import to_argilla, to_label_studio
from crowdwise.io.write import TABLES, WRITERS, write_annotations, write_json, write_labels
from crowdwise.serve import state
from crowdwise.serve.access import Caller, require
from crowdwise.serve.actions import AddTasks, Answer
from crowdwise.serve.bodies import TasksBody
from crowdwise.serve.draft import RefusedError
from crowdwise.serve.keys import Role
from crowdwise.serve.service import Service
from crowdwise.serve.work import ask
from crowdwise.typing import Json

router = APIRouter(prefix="/api", tags=["lead"])
Lead = Annotated[Caller, Depends(require(Role.LEAD))]
# Media type and file extension of each format.
JSON = "application/json"
KINDS = {
    "csv": ("text/csv", "csv"),
    "tsv": ("text/tab-separated-values", "tsv"),
    "json": (JSON, "json"),
    "jsonl": ("application/x-ndjson", "jsonl"),
    "parquet": ("application/vnd.apache.parquet", "parquet"),
    "wide": ("text/csv", "csv"),
    "nested": (JSON, "json"),
    "snorkel": ("application/octet-stream", "npy"),
    "label-studio": (JSON, "json"),
    "argilla": (JSON, "json"),
}


@router.get("/state")
async def show_state(request: Request, _: Lead) -> Json:
    """Summarize the whole project."""
    return state.summarize(request.app.state.service)


@router.get("/tasks")
async def list_tasks(
    request: Request,
    _: Lead,
    sort: str = Query("task", pattern="^(task|gain|confidence|labels)$"),
    start: int = Query(0, ge=0),
    limit: int = Query(100, ge=1, le=1_000),
) -> Json:
    """List tasks with their status; ``sort=gain`` puts those first that need a label most."""
    frame = await asyncio.to_thread(state.task_frame, request.app.state.service)
    if sort != "task":
        frame = frame.sort_values(sort, ascending=sort != "gain", kind="stable")
    rows = state.to_records(frame.iloc[start : start + limit])
    return {"n_tasks": len(frame), "tasks": rows}


@router.get("/task")
async def show_task(request: Request, task: str, _: Lead) -> Json:
    """Show one task with all its labels."""
    service: Service = request.app.state.service
    number = service.board.tasks.number.get(task)
    if number is None:
        raise RefusedError(404, f"There is no task {task[:80]!r}.")
    return state.show_task(service, number)


@router.post("/tasks")
async def add_tasks(request: Request, body: TasksBody, caller: Lead) -> Answer:
    """Add tasks, and truths for some; existing ones are not changed."""
    names = ("text", "image")
    tasks = [
        (one.task, {name: value for name in names if (value := getattr(one, name)) is not None})
        for one in body.tasks
    ]
    gold = [(one.task, one.gold) for one in body.tasks if one.gold is not None]
    return await ask(request, AddTasks(caller.name, tasks, gold))


@router.get("/workers")
async def list_workers(request: Request, _: Lead) -> list[Json]:
    """List all workers with their labels, skill and cost."""
    return state.to_records(state.worker_frame(request.app.state.service))


@router.get("/model")
async def show_model(request: Request, _: Lead) -> Json:
    """Show the live model: how each worker labels tasks of each class."""
    return await asyncio.to_thread(state.show_model, request.app.state.service)


@router.get("/forecast")
async def show_forecast(request: Request, _: Lead) -> list[Json]:
    """Forecast how accurate the labels will be after spending more."""
    forecast = request.app.state.service.observer.plan.forecast
    return [] if forecast is None else state.to_records(forecast)


@router.get("/export/labels", response_class=Response)
async def export_labels(request: Request, _: Lead, kind: str = "csv") -> Response:
    """Export all labels that count, in any format that ``crowdwise convert`` writes."""
    refuse_other(kind, WRITERS)
    votes = request.app.state.service.board.annotations()
    return await asyncio.to_thread(respond, "labels", kind, write_annotations, votes)


@router.get("/export/consensus", response_class=Response)
async def export_consensus(
    request: Request,
    _: Lead,
    kind: str = "csv",
    from_name: str = "label",
    to_name: str = "text",
    question: str = "label",
) -> Response:
    """Export one label per task by the live model; also for Label Studio and Argilla."""
    refuse_other(kind, (*TABLES, "label-studio", "argilla"))
    frame = await asyncio.to_thread(state.task_frame, request.app.state.service)
    if kind not in TABLES:
        labeled = frame[np.asarray(frame["label"].notna() & frame["confidence"].notna())]
        rows: Any = (
            to_label_studio(labeled, from_name, to_name)
            if kind == "label-studio"
            else to_argilla(labeled, question)
        )
        return respond("consensus", kind, lambda file, value, _: write_json(file, value), rows)
    return await asyncio.to_thread(respond, "consensus", kind, write_labels, frame)


def refuse_other(kind: str, known: Collection[str]) -> None:
    if kind not in known:
        raise RefusedError(
            422, f"{kind[:40]!r} is not one of the formats.", expected=", ".join(known)
        )


def respond(name: str, kind: str, write: Any, value: Any) -> Response:
    """Make a file download, with notes on what the format cannot hold in a header."""
    file = io.BytesIO()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        write(file, value, kind)
    notes = " ".join(str(one.message) for one in said if issubclass(one.category, UserWarning))
    media, ending = KINDS[kind]
    headers = {"content-disposition": f'attachment; filename="{name}.{ending}"'}
    if notes:
        headers["x-crowdwise-note"] = " ".join(notes.split()).encode("ascii", "replace").decode()
    return Response(file.getvalue(), media_type=media, headers=headers)
