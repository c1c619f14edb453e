"""The observer: a live model and a plan that follow the labels."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread

import numpy as np
import pandas as pd

from crowdwise.aggregate import IBCC
from crowdwise.annotations import Annotations
from crowdwise.plan import InformationGain, Planner, Promise
from crowdwise.serve.board import Board
from crowdwise.serve.settings import Settings
from crowdwise.typing import Array, Floats, Ints

REST = 0.05  # minimum number of seconds between two updates
SHARE = 0.3  # of the time that the live model may use
POLL = 0.5  # seconds after which news from other processes is read
IMAGINED = 20_000  # tasks up to which a forecast is made
log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Standing:
    """The live model's results up to an event; tasks and workers by number."""

    seq: int = 0
    posterior: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # (task, class)
    confusion: Floats = field(default_factory=lambda: np.zeros((0, 0, 0)))  # worker, truth, label
    skill: Floats = field(default_factory=lambda: np.zeros(0))  # (worker,), like the next
    given: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class Plan:
    """The tasks that are done, and a forecast of what more money would bring."""

    n_labels: int = 0
    promise: Promise | None = None
    forecast: pd.DataFrame | None = None
    done: Array = field(default_factory=lambda: np.zeros(0, bool))  # by task number
    seconds: float = 0.0  # taken to make it


class Observer:
    """Follows the board in a thread of its own; its results can be read at any time."""

    def __init__(self, board: Board, poll: Callable[[], object]) -> None:
        self.board, self._poll = board, poll
        self.standing, self.plan = Standing(), Plan()
        self._news, self._end = Event(), Event()
        self._model, self._era, self._taken = IBCC(), -1, 0
        self._given = np.zeros(0, np.int64)
        self._planned = (-1, -1)
        self._next_plan = 0.0
        self._thread = Thread(target=self._work, name="crowdwise-observer", daemon=True)

    def start(self) -> None:
        """Start to follow the board, and to poll."""
        self._news.set()
        self._thread.start()

    def notice(self) -> None:
        """Announce that something may have happened."""
        self._news.set()

    def close(self) -> None:
        """Stop, without waiting for a plan in progress."""
        self._end.set()
        self._news.set()
        self._thread.join(timeout=0.5)

    def _work(self) -> None:
        while not self._end.is_set():
            if not self._news.wait(POLL):
                self._poll()
                self._news.wait(POLL)
            self._news.clear()
            start = time.monotonic()
            try:
                self.follow()
                if time.monotonic() >= self._next_plan:
                    self.make_plan()
                    self._next_plan = time.monotonic() + max(1.0, 10 * self.plan.seconds)
            except Exception:
                log.exception("The live model could not be updated.")
                self._era = -1  # start over
            busy = time.monotonic() - start
            self._end.wait(max(REST, busy / SHARE - busy))

    # -- the live model ----------------------------------------------------------------

    def follow(self) -> None:
        """Learn from the labels since the last time."""
        board = self.board
        with board.lock:
            seq, era, settings, n_tasks = board.seq, board.era, board.settings, len(board.tasks)
            gold = dict(board.gold)
            if era != self._era:
                self._model, self._era, self._taken = IBCC(), era, 0
                self._given = np.zeros(0, np.int64)
            task, worker, label = board.columns(self._taken)
            n_workers = len(board.workers)
        if len(task) or seq != self.standing.seq:
            self._taken += len(task)
            learn(self._model, (task, worker, label), settings, gold)
            self._given = np.pad(self._given, (0, n_workers - len(self._given)))
            self._given += np.bincount(worker[label >= 0], minlength=n_workers)
            shape = n_tasks, n_workers, len(settings.classes)
            self.standing = stand(self._model, seq, shape, self._given)
            self._rank()

    def _rank(self) -> None:
        """Compute the gain of another label for each task, by the live model."""
        standing = self.standing
        if standing.given.any():
            crowd = np.average(standing.confusion, axis=0, weights=standing.given)[None]
            self.board.judge(gain=InformationGain().gain_by(standing.posterior, crowd))

    # -- the plan ----------------------------------------------------------------------

    def make_plan(self) -> None:
        """Find which tasks are done, and what more labels would bring."""
        board, start = self.board, time.monotonic()
        if self._planned == (board.seq, self.standing.seq) or not board.classes:
            return
        self._planned = board.seq, self.standing.seq
        with board.lock:
            settings, columns, gold = board.settings, board.columns(), dict(board.gold)
            shape = len(board.tasks), len(board.workers), len(settings.classes)
        votes = number(columns, shape, settings, gold)
        if not votes.n_annotations or votes.n_classes < 2:
            return
        planner = Planner(
            target=settings.target, min_labels=settings.min_labels, cost=settings.cost
        )
        planner.look(votes, votes.gold_labels if gold else None)
        promise = planner.done()
        done = np.zeros(votes.n_tasks, bool)
        done[promise.tasks.index.to_numpy(np.int64)] = True
        budget = max(votes.n_annotations, votes.n_tasks) * max(settings.cost, 1e-9)
        draws = 5 if votes.n_tasks <= IMAGINED else 0
        forecast = planner.forecast(budget, n_draws=draws) if draws else None
        self.plan = Plan(votes.n_annotations, promise, forecast, done, time.monotonic() - start)
        board.judge(done=done)


def learn(
    model: IBCC, columns: tuple[Ints, Ints, Ints], settings: Settings, gold: dict[int, str]
) -> None:
    """Update a model with labels; its tasks, workers and classes are named by their numbers."""
    alive = columns[2] >= 0
    task, worker, label = (column[alive] for column in columns)
    if not len(task):
        return
    tasks, at = np.unique(task, return_inverse=True)
    workers, who = np.unique(worker, return_inverse=True)
    classes = np.arange(len(settings.classes))
    votes = Annotations.from_codes(at, who, label, tasks=tasks, workers=workers, classes=classes)
    known = {number: settings.classes.index(name) for number, name in gold.items()}
    truths = {number: known[number] for number in tasks.tolist() if number in known}
    model.update(votes, truths or None)


def number(
    columns: tuple[Ints, Ints, Ints],
    shape: tuple[int, int, int],
    settings: Settings,
    gold: dict[int, str],
) -> Annotations:
    """Return all labels by number: looking up the names would keep requests waiting."""
    tasks, workers, classes = map(np.arange, shape)
    truths = np.full(shape[0], -1, np.int64)
    truths[list(gold)] = [settings.classes.index(name) for name in gold.values()]
    return Annotations.from_codes(
        *columns, tasks=tasks, workers=workers, classes=classes, gold=truths if gold else None
    )


def stand(model: IBCC, seq: int, shape: tuple[int, int, int], given: Ints) -> Standing:
    """Copy the model's results, indexed by the board's task, worker and class numbers."""
    n_tasks, n_workers, n_classes = shape
    even = 1.0 / max(n_classes, 1)
    posterior = np.full((n_tasks, n_classes), even)
    confusion = np.full((n_workers, n_classes, n_classes), even)
    skill = np.full(n_workers, np.nan)
    if hasattr(model, "posterior_"):
        posterior[model.tasks_.astype(np.int64)] = model.posterior_
        who = model.workers_.astype(np.int64)
        confusion[who], skill[who] = model.confusion_, model.skills_.to_numpy()
    return Standing(seq, posterior, confusion, skill, given.copy())
