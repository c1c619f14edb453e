"""The whole service: database, board, desk and observer."""

from __future__ import annotations

from concurrent.futures import Future
from types import TracebackType
from typing import Self

from crowdwise.serve.actions import Action, Answer, LookOn
from crowdwise.serve.board import Board
from crowdwise.serve.database import Database
from crowdwise.serve.desk import Desk
from crowdwise.serve.draft import catch_up
from crowdwise.serve.observer import Observer


class Service:
    """Labels in, tasks out, and a model that learns from each label.

    Parameters
    ----------
    address : str
        Where events are stored: ``sqlite:///file.db`` or ``postgresql://user@host/name``.

    Examples
    --------
    >>> import tempfile
    >>> from crowdwise.serve import Settings
    >>> from crowdwise.serve.actions import AddLabels, AddTasks, ChangeProject, TakeTask
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Service(f"sqlite:///{folder}/votes.db") as service:
    ...         _ = service.ask(ChangeProject("lead", Settings(classes=("cat", "dog"))))
    ...         _ = service.ask(AddTasks("lead", [("photo-1", {"text": "a photo"})]))
    ...         task = service.ask(TakeTask("ann"))["task"]
    ...         service.ask(AddLabels("ann", [(task, "ann", "cat")]))
    {'stored': 1, 'known': 0}
    """

    def __init__(self, address: str) -> None:
        self.database, self.board = Database(address), Board()
        with self.database.reading() as connection:
            catch_up(connection, self.board)
        self.observer = Observer(self.board, lambda: self.submit(LookOn()))
        self.desk = Desk(self.database, self.board, self.observer.notice)
        self.observer.start()  # now that there is a desk to poll

    def submit(self, action: Action, receipt: str = "") -> Future[Answer]:
        """Queue an action without waiting for it."""
        return self.desk.submit(action, receipt)

    def ask(self, action: Action, receipt: str = "") -> Answer:
        """Do an action and return its answer, which is stored by then."""
        return self.submit(action, receipt).result()

    def close(self) -> None:
        """Finish the queued actions and close the database."""
        self.desk.close()
        self.observer.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
