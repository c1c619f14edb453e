"""The desk: the one thread that writes, with many requests per transaction."""

from __future__ import annotations

import hashlib
import logging
import queue
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread

from crowdwise.errors import CrowdwiseError
from crowdwise.serve.actions import Action, Answer
from crowdwise.serve.board import Board
from crowdwise.serve.database import Database, UnavailableError
from crowdwise.serve.draft import Draft, RefusedError, catch_up
from crowdwise.serve.receipts import Receipts

MOST = 256  # requests per transaction
log = logging.getLogger(__name__)


@dataclass
class Request:
    """An action, the future that waits for its answer, and its key if it may be sent again."""

    action: Action
    receipt: str = ""  # digest of the sender and the key, "" for none
    future: Future[Answer] = field(default_factory=Future)
    answer: Answer | None = None

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self.action).encode()).hexdigest()


class Desk:
    """Takes actions from any thread and does them one after another.

    Whatever has been answered is stored. An action that could not be stored gets an error and
    leaves nothing behind. If even that is unknown, because the connection broke at that moment,
    the request may be sent again and is not done twice.
    """

    def __init__(self, database: Database, board: Board, after: Callable[[], None]) -> None:
        self.database, self.board, self._after = database, board, after
        self._queue: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._thread = Thread(target=self._work, name="crowdwise-desk", daemon=True)
        self._thread.start()

    def submit(self, action: Action, receipt: str = "") -> Future[Answer]:
        """Queue an action."""
        request = Request(action, receipt)
        self._queue.put(request)
        return request.future

    def close(self) -> None:
        """Finish the queued actions, then stop."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < MOST and not self._queue.empty():
                request = self._queue.get()
                if request is None:
                    self._queue.put(None)
                    break
                batch.append(request)
            self._do(batch)

    def _do(self, batch: list[Request]) -> None:
        draft = Draft(self.board)
        try:
            with self.database.exclusive() as connection:
                catch_up(connection, self.board)
                receipts = Receipts(connection, [request.receipt for request in batch])
                for request in batch:
                    run(request, draft, receipts)
                draft.store(connection)
                receipts.store(connection)
            draft.keep()
        except Exception as error:
            draft.drop()
            if not isinstance(error, CrowdwiseError):
                log.exception("A transaction failed.")
            self._fail(batch, error)
            return
        for request in batch:
            if request.answer is not None:
                request.future.set_result(request.answer)
        self._after()

    def _fail(self, batch: list[Request], error: Exception) -> None:
        """Do a failed batch again one by one, or answer each request with an error."""
        unanswered = [request for request in batch if not request.future.done()]
        if isinstance(error, UnavailableError) or len(batch) == 1:
            for request in unanswered:
                request.future.set_exception(error)
            return
        for request in unanswered:
            request.answer = None
            self._do([request])


def run(request: Request, draft: Draft, receipts: Receipts) -> None:
    """Do an action, or repeat its earlier answer."""
    try:
        request.answer = receipts.find(request.receipt, request.digest)
        if request.answer is None:
            request.answer = request.action.run(draft)
            receipts.add(request.receipt, request.digest, request.answer)
    except RefusedError as error:
        request.future.set_exception(error)
