"""An ML backend for Label Studio: active overlap, in its open edition too.

Label Studio sends every annotation to it and asks it for predictions; the backend opens tasks
for another annotator and closes them. All votes stay in Label Studio, so the backend can be
stopped and started at any time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from crowdwise.aggregate import IBCC
from crowdwise.connect.label_studio import Control, LabelStudio, Task, keep, name_version
from crowdwise.connect.overlap import Overlap
from crowdwise.io import read
from crowdwise.io.consensus import consensus_frame
from crowdwise.typing import Json

MOST_BYTES = 64 << 20  # in a request
POLL = 60.0  # seconds after which all tasks are read again, whatever was announced
HEARD = ("ANNOTATION", "TASKS", "START_TRAINING")  # prefixes of the events that change votes
log = logging.getLogger(__name__)
Answer = Json


class Backend:
    """The backend's view of the project, and the thread that keeps it up to date.

    Parameters
    ----------
    studio : LabelStudio
    overlap : Overlap, optional
    shown : bool
        Whether predictions include the label. By default they are only a score, because
        annotators tend to agree with labels that they are shown.
    pause : float
        Seconds to wait for more annotations before learning from them.
    """

    def __init__(
        self,
        studio: LabelStudio,
        overlap: Overlap | None = None,
        *,
        shown: bool = False,
        pause: float = 1.0,
    ) -> None:
        self.studio, self.overlap = studio, Overlap() if overlap is None else overlap
        self.shown, self.pause = shown, pause
        self.version, self.n_changed = "crowdwise", 0
        self.consensus: dict[int, tuple[Any, float]] = {}
        self.control: Control | None = None
        self._tasks: dict[int, Task] = {}
        self._changed: set[int] = set()
        self._lock, self._news, self._end = Lock(), Event(), Event()
        self._thread = Thread(target=self._work, name="crowdwise-backend", daemon=True)

    def start(self) -> None:
        """Read the project, then follow it in a thread."""
        self.control = self.studio.find_control()
        self.read_all()
        self.think()
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._news.set()
        self._thread.join(timeout=10)

    def notice(self, task: int | None) -> None:
        """Note that a task has changed; None means that any task may have."""
        with self._lock:
            self._changed.add(-1 if task is None else task)
        self._news.set()

    def _work(self) -> None:
        while not self._end.is_set():
            if not self._news.wait(POLL):
                self.notice(None)
            self._end.wait(self.pause)
            self._news.clear()
            with self._lock:
                changed, self._changed = self._changed, set()
            try:
                self.read_all() if -1 in changed else self.read_some(changed)
                self.think()
            except Exception as error:
                log.warning("Label Studio could not be followed: %s", error)
                with self._lock:
                    self._changed |= changed  # try again later
                self._end.wait(self.pause)

    # -- what is known -----------------------------------------------------------------

    def read_all(self) -> None:
        """Read every task."""
        self._tasks = {task["id"]: trim(task) for task in self.studio.tasks()}

    def read_some(self, numbers: set[int]) -> None:
        """Read some tasks again; deleted ones are dropped."""
        for number in numbers:
            task = self.studio.task(number)
            if task is None:
                self._tasks.pop(number, None)
            else:
                self._tasks[number] = trim(task)

    def think(self) -> None:
        """Learn from all annotations, then open and close tasks."""
        tasks = list(self._tasks.values())
        question = self.control.name if self.control else self.studio.question
        if not any(task["annotations"] for task in tasks):
            return
        votes = read(tasks, "label_studio", question=question, repeats="last")
        if votes.n_classes < 2:
            return
        frame = consensus_frame(IBCC().fit(votes, votes.gold_labels), votes)
        self.version = name_version(frame)
        rows = zip(*(frame[name].tolist() for name in ("task", "label", "confidence")), strict=True)
        self.consensus = {int(task): (label, sure) for task, label, sure in rows}
        wanted, promise = self.overlap.plan(votes)
        by_number = {int(str(task)): is_open for task, is_open in wanted.items()}
        changed = self.studio.set_overlap(tasks, by_number)
        for number, is_open in by_number.items():  # up to date, so none is sent again
            task = self._tasks[number]
            task["overlap"] = int(task["total_annotations"]) + is_open
            task["is_labeled"] = not is_open
        self.n_changed += changed
        log.info("%d of %d tasks are done, %d changed", len(promise.tasks), len(tasks), changed)

    # -- requests of Label Studio ------------------------------------------------------

    def answer(self, method: str, path: str, body: Any) -> Answer | None:
        """Answer a request of Label Studio; None if there is no such route."""
        if method == "GET":
            up: Answer = {"status": "UP", "model_class": "crowdwise"}
            pages = {"/": up, "/health": up, "/versions": {"versions": [self.version]}}
            return pages.get(path)
        known: dict[str, Callable[[Answer], Answer]] = {
            "/setup": lambda _: {"model_version": self.version},
            "/validate": lambda _: {"status": "ok"},
            "/predict": self._predict,
            "/webhook": self._hear,
            "/train": self._hear,
            "/job_status": lambda _: {"job_status": "finished"},
        }
        return known[path](body if isinstance(body, dict) else {}) if path in known else None

    def _predict(self, body: Answer) -> Answer:
        results = [self._predict_one(task) for task in body.get("tasks") or []]
        return {"results": results, "model_version": self.version}

    def _predict_one(self, task: Any) -> Answer:
        label, sure = self.consensus.get(int(task.get("id") or 0), (None, 0.0))
        result = []
        if self.shown and label is not None and self.control is not None:
            name, to_name, kind, *_ = self.control
            value = {kind: [str(label)] if kind == "choices" else label}
            result = [{"from_name": name, "to_name": to_name, "type": kind, "value": value}]
        return {"result": result, "score": float(sure), "model_version": self.version}

    def _hear(self, body: Answer) -> Answer:
        project = body.get("project")
        number = project.get("id") if isinstance(project, dict) else None
        action = str(body.get("action", HEARD[0]))
        if number not in (None, self.studio.project) or not action.startswith(HEARD):
            return {"status": "ignored"}
        task = body.get("task")
        number = task.get("id") if isinstance(task, dict) else None
        if number is not None and type(number) is not int:
            raise TypeError("a task is named by its number")
        self.notice(number)
        return {"status": "noticed"}


def trim(task: Task) -> Task:
    """Keep only the fields of a task that are needed later."""
    kept = keep(task) | {name: task.get(name) for name in ("overlap", "is_labeled")}
    return kept | {"data": {}}


def make_server(backend: Backend, host: str = "127.0.0.1", port: int = 9090) -> ThreadingHTTPServer:
    """Make the HTTP server for Label Studio; run it with ``serve_forever``."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 30
        server_version, sys_version = "crowdwise", ""

        def do_GET(self) -> None:
            self._reply(backend.answer("GET", self._path(), None))

        def do_POST(self) -> None:
            size = self.headers.get("Content-Length", "")
            if not size.isdecimal():
                return self._send(411, {"detail": "the request has no Content-Length"})
            if int(size) > MOST_BYTES:
                return self._send(413, {"detail": f"the limit is {MOST_BYTES:,} bytes"})
            try:
                body = json.loads(self.rfile.read(int(size)) or b"{}")
                return self._reply(backend.answer("POST", self._path(), body))
            except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError):
                return self._send(400, {"detail": "the body is not a request of Label Studio"})

        def _path(self) -> str:
            return self.path.partition("?")[0].rstrip("/") or "/"

        def _reply(self, answer: Answer | None) -> None:
            self._send(404 if answer is None else 200, answer or {"detail": "not found"})

        def _send(self, status: int, answer: Answer) -> None:
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            log.debug(format, *args)

    return ThreadingHTTPServer((host, port), Handler)
