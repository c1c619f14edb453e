"""Prodigy: a task router that asks for another label only where one is needed.

Follows Prodigy's documented contract for ``task_router``: a function of the controller, the
session and the task that returns the sessions to send the task to.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol

from crowdwise.connect.overlap import Overlap
from crowdwise.io import read
from crowdwise.typing import Json

HASH = "_input_hash"


class Controller(Protocol):
    """The parts of Prodigy's controller that are used."""

    db: Any
    dataset: str

    @property
    def session_ids(self) -> Iterable[str]: ...


Router = Callable[[Controller, str, Json], list[str]]


def make_task_router(
    overlap: Overlap | None = None, question: str | None = None, every: int = 20
) -> Router:
    """Make a ``task_router`` for the components of a recipe.

    A task without labels goes to ``min_labels`` sessions, always the same ones. After that it
    goes to one more session at a time, among those that have not labeled it, while the overlap
    keeps it open. The overlap is computed again after every ``every`` new answers in the data
    set.

    Prodigy routes a task when it leaves the stream, so only a stream that repeats lets a task
    get another label.
    """
    overlap = Overlap() if overlap is None else overlap
    state: Json = {"n": -every, "open": {}, "by": {}}

    def look(controller: Controller) -> None:
        examples = list(controller.db.get_dataset_examples(controller.dataset) or [])
        if len(examples) - state["n"] < every and state["n"] <= len(examples):
            return
        state["n"] = len(examples)
        state["by"] = list_sessions(examples)
        state["open"] = plan(overlap, examples, question)

    def route(controller: Controller, session_id: str, item: Json) -> list[str]:
        look(controller)
        task = item[HASH]
        given = state["by"].get(task, set())
        sessions = sorted(controller.session_ids, key=lambda name: hash_pair(task, name))
        others = [name for name in sessions if name not in given]
        if not given:
            return others[: overlap.planner.min_labels]
        if not state["open"].get(task, len(given) < overlap.planner.min_labels):
            return []
        return [session_id] if session_id in others else others[:1]

    return route


def list_sessions(examples: Iterable[Json]) -> dict[Hashable, set[str]]:
    """Return the sessions that have answered each task."""
    found: dict[Hashable, set[str]] = {}
    for one in examples:
        found.setdefault(one.get(HASH), set()).add(str(one.get("_session_id")))
    return found


def plan(overlap: Overlap, examples: list[Json], question: str | None) -> dict[Hashable, bool]:
    """Find the open tasks; there are none until there are two classes."""
    answered = [one for one in examples if one.get("answer") in ("accept", "reject")]
    if not answered:
        return {}
    votes = read(answered, "prodigy", question=question, repeats="last")
    return overlap.plan(votes)[0] if votes.n_classes > 1 else {}


def hash_pair(task: Hashable, session: str) -> int:
    """Return a number to order sessions by for a task, the same in every run."""
    return zlib.crc32(f"{task}\0{session}".encode())
