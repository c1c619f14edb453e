"""The actions of the desk: each one looks at the board and adds to a draft."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crowdwise.errors import listing, plural
from crowdwise.serve import events
from crowdwise.serve.board import Board
from crowdwise.serve.draft import Draft, RefusedError
from crowdwise.serve.keys import Key, Role, make_token
from crowdwise.serve.settings import Settings
from crowdwise.typing import Json

LONGEST = 500  # characters in a name
MOST_BYTES = 1_000  # in a name: an index of PostgreSQL holds two of them
# Spaces, and the joiners that Persian, Hindi and emoji need, which Python calls unprintable.
READABLE = dict.fromkeys(map(ord, "\u00a0\u200c\u200d\u202f\u3000"), " ")
Answer = Json


class Action(ABC):
    """Something to be done in a transaction: all of its events are added, or none."""

    @abstractmethod
    def run(self, draft: Draft) -> Answer:
        """Add events to the draft; the value returned is sent once the draft is stored."""


@dataclass(frozen=True)
class LookOn(Action):
    """Do nothing, except that the board is up to date afterward."""

    def run(self, draft: Draft) -> Answer:
        return {}


@dataclass(frozen=True)
class TakeTask(Action):
    """Give a worker a task."""

    worker: str

    def run(self, draft: Draft) -> Answer:
        board = draft.board
        check_name("worker", self.worker)
        with board.lock:
            task = board.choose(self.worker, draft.now)
            if task is None:
                return {"task": None}
            if board.leases.offered[self.worker].get(task, 0.0) <= draft.now:
                draft.give(self.worker, task)
            left = board.leases.offered[self.worker][task] - draft.now
            return {
                "task": board.tasks.list[task],
                "content": board.content[task],
                "seconds": round(left, 1),
            }


@dataclass(frozen=True)
class AddLabels(Action):
    """Add labels, as (task, worker, label). A label that exists already is not added again.

    With ``offered_only``, only tasks that the worker was given may be labeled.
    """

    actor: str
    rows: Sequence[tuple[str, str, str]]
    offered_only: bool = False

    def run(self, draft: Draft) -> Answer:
        board, new = draft.board, []
        mine: dict[tuple[int, str], str] = {}
        for place, (task, worker, label) in enumerate(self.rows):
            number = self._check(board, place, task, worker, label)
            known = find_label(draft, number, task, worker)
            known = mine.get((number, worker), known)
            if known is not None and known != label:
                raise RefusedError(
                    409,
                    f"{worker!r} has already labeled the task {task!r}, as {known!r}.",
                    first=f"label {place + 1}",
                    fix="withdraw that label first",
                )
            if known is None:
                mine[number, worker] = label
                new.append(
                    (task, worker, label, board.turns.get((events.LABEL, number, worker), 0))
                )
        for task, worker, label, turn in new:
            draft.add(events.LABEL, self.actor, task=task, worker=worker, label=label, turn=turn)
        return {"stored": len(new), "known": len(self.rows) - len(new)}

    def _check(self, board: Board, place: int, task: str, worker: str, label: str) -> int:
        check_name("worker", worker)
        number = board.tasks.number.get(task)
        if number is not None and self.offered_only:
            mine = number in board.labeled.get(worker, {})
            number = number if mine or board.leases.was_offered(worker, number) else None
        if number is None:  # the same message for both, so that nobody learns which tasks exist
            raise RefusedError(
                404,
                f"The task {task!r} is not one that {worker!r} can label.",
                first=f"label {place + 1}",
                fix="ask for the next task",
            )
        if label not in board.classes:
            raise RefusedError(
                422,
                f"{label!r} is not a class of this project.",
                first=f"label {place + 1}",
                expected=f"one of {listing(list(board.classes), 20)}",
            )
        return number


def find_label(draft: Draft, number: int, task: str, worker: str) -> str | None:
    """Return the label that a worker has given a task, in the draft or before."""
    newer = draft.find(events.LABEL, task, worker)
    if newer is not None:
        return newer.label
    label = draft.board.labeled.get(worker, {}).get(number)
    return None if label is None else draft.board.settings.classes[label]


@dataclass(frozen=True)
class SkipTask(Action):
    """Skip a task for a worker, who is not offered it again."""

    worker: str
    task: str

    def run(self, draft: Draft) -> Answer:
        board = draft.board
        number = board.tasks.number.get(self.task, -1)
        if number in board.skipped.get(self.worker, ()) or draft.find(
            events.SKIP, self.task, self.worker
        ):
            return {"skipped": self.task}
        if not board.leases.was_offered(self.worker, number):
            raise RefusedError(404, f"The task {self.task!r} is not assigned to {self.worker!r}.")
        draft.add(events.SKIP, self.worker, task=self.task, worker=self.worker)
        return {"skipped": self.task}


@dataclass(frozen=True)
class WithdrawLabel(Action):
    """Withdraw a worker's label and assign the task to the worker again."""

    actor: str
    worker: str
    task: str

    def run(self, draft: Draft) -> Answer:
        board = draft.board
        number = board.tasks.number.get(self.task, -1)
        if number not in board.labeled.get(self.worker, {}) or draft.find(
            events.WITHDRAW, self.task, self.worker
        ):
            raise RefusedError(404, f"{self.worker!r} has no label of the task {self.task!r}.")
        turn = board.turns.get((events.LABEL, number, self.worker), 0)
        draft.add(events.WITHDRAW, self.actor, task=self.task, worker=self.worker, turn=turn)
        draft.give(self.worker, number)
        return {"withdrawn": self.task, "content": board.content[number]}


@dataclass(frozen=True)
class AddTasks(Action):
    """Add named tasks with their content, and truths for some; existing ones are not changed."""

    actor: str
    tasks: Sequence[tuple[str, Json]]
    gold: Sequence[tuple[str, str]] = ()

    def run(self, draft: Draft) -> Answer:
        board = draft.board
        names = {name for name, _ in self.tasks}
        for name in names:
            check_name("task", name)
        for name, label in self.gold:
            if name not in names and name not in board.tasks.number:
                raise RefusedError(404, f"There is no task {name!r} for a truth.")
            if label and label not in board.classes:
                expected = f"one of {listing(list(board.classes), 20)}"
                raise RefusedError(422, f"The truth {label!r} is not a class.", expected=expected)
        n_before = len(draft.events)
        for name, content in self.tasks:
            if name not in board.tasks.number and draft.find(events.TASK, name) is None:
                draft.add(events.TASK, self.actor, task=name, body=content)
        n_tasks = len(draft.events) - n_before
        for name, label in self.gold:
            number = board.tasks.number.get(name, -1)
            earlier = draft.find(events.GOLD, name)
            known = earlier.label if earlier else board.gold.get(number, "")
            if label != known:
                turn = (
                    earlier.turn + 1 if earlier else board.turns.get((events.GOLD, number, ""), 0)
                )
                draft.add(events.GOLD, self.actor, task=name, label=label, turn=turn)
        return {"stored": n_tasks, "known": len(self.tasks) - n_tasks}


@dataclass(frozen=True)
class ChangeProject(Action):
    """Change the project's settings; classes can be added, but not removed or reordered."""

    actor: str
    settings: Settings

    def run(self, draft: Draft) -> Answer:
        board, new = draft.board, self.settings
        old = board.settings.classes
        if draft.find(events.PROJECT, "") is not None:
            raise RefusedError(409, "The project is being changed by somebody else.")
        for name in new.classes:
            check_name("class", name)
        if new.classes[: len(old)] != old:
            raise RefusedError(
                409,
                "Classes cannot be removed or reordered, since labels refer to them.",
                expected=f"classes that begin with {listing(list(old), 20)}",
                fix="start another project, with a database of its own",
            )
        if new != board.settings or not board.seq:
            turn = board.turns.get((events.PROJECT, -1, ""), 0)
            draft.add(events.PROJECT, self.actor, turn=turn, body=new.to_body())
        return new.to_body()


@dataclass(frozen=True)
class ChangeSettings(Action):
    """Change some of the settings, and leave the others as they are by then."""

    actor: str
    changes: Json

    def run(self, draft: Draft) -> Answer:
        settings = replace(draft.board.settings, **self.changes)
        return ChangeProject(self.actor, settings).run(draft)


@dataclass(frozen=True)
class IssueToken(Action):
    """Make a token for a person. It is shown once: only its digest is stored."""

    actor: str
    name: str
    role: Role

    def run(self, draft: Draft) -> Answer:
        check_name("worker", self.name)
        token, number, digest = make_token()
        key = Key(number, self.name, self.role, digest)
        label, body = key.role.name.lower(), {"digest": digest}
        draft.add(events.TOKEN, self.actor, task=key.id, worker=key.name, label=label, body=body)
        return {"token": token, "id": key.id, "name": key.name, "role": label}


@dataclass(frozen=True)
class RevokeToken(Action):
    """Revoke a token, from now on."""

    actor: str
    id: str

    def run(self, draft: Draft) -> Answer:
        if self.id not in draft.board.keys or draft.find(events.REVOKE, self.id):
            raise RefusedError(404, f"There is no token with the id {self.id[:40]!r}.")
        gone = {self.id, *(task for kind, task, _ in draft.pending if kind == events.REVOKE)}
        left = [key for key in draft.board.keys.values() if key.id not in gone]
        if not any(key.role is Role.ADMIN for key in left):
            raise RefusedError(409, "This is the last admin token.", fix="make another first")
        draft.add(events.REVOKE, self.actor, task=self.id)
        return {"revoked": self.id}


def check_name(what: str, name: str) -> None:
    """Refuse names that are empty, too long, or not valid text for a database."""
    readable = 0 < len(name) <= LONGEST and name.translate(READABLE).isprintable()
    if not readable or len(name.encode()) > MOST_BYTES:
        raise RefusedError(
            422,
            f"A name of {plural(len(name), 'character')} cannot be used for a {what}.",
            found=repr(name[:40]),
            expected=f"1 to {LONGEST} printable characters, at most {MOST_BYTES:,} bytes",
            fix=f"rename the {what}",
        )
