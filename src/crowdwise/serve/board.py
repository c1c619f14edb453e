"""The board: the state of every task, worker and token, from the events so far."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable
from threading import RLock

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.inference.growing_arrays import Growing
from crowdwise.serve import events
from crowdwise.serve.events import Event
from crowdwise.serve.keys import Key
from crowdwise.serve.leases import Leases
from crowdwise.serve.offers import CLOSED, Offers
from crowdwise.serve.settings import Settings
from crowdwise.typing import Array, Floats, Ints, Json

FIRST = 1e6  # value of a task's first label; gains are far below


class Names:
    """A two-way mapping between names and numbers."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self.number: dict[str, int] = {}

    def enroll(self, name: str) -> int:
        """Return the number of a name, which is added if it is new."""
        found = self.number.setdefault(name, len(self.list))
        if found == len(self.list):
            self.list.append(name)
        return found

    def __len__(self) -> int:
        return len(self.list)


class Board:
    """The state after all events so far. Apart from leases, only events change it.

    Attributes
    ----------
    seq : int
        The last event that was applied.
    era : int
        Counts the events that change what earlier labels mean: withdrawals, truths, settings.
        After each of them the live model starts over.
    task, worker, label : array
        The labels in order; withdrawn ones have the label -1.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.seq = self.era = self.last_lease = self.n_withdrawn = 0
        self.settings = Settings()
        self.tasks, self.workers = Names(), Names()
        self.classes: dict[str, int] = {}
        self.content: list[Json] = []
        self.gold: dict[int, str] = {}
        self.task, self.worker, self.label = array("q"), array("q"), array("q")
        self.at = array("d")
        self.counts = Growing(np.zeros(0, np.int64))
        self.labeled: dict[str, dict[int, int]] = defaultdict(dict)  # worker, task: label
        self.skipped: dict[str, set[int]] = defaultdict(set)
        self.turns: dict[tuple[str, int, str], int] = {}  # kind, task, worker: number withdrawn
        self.keys: dict[str, Key] = {}
        self.leases, self.offers = Leases(self._offer), Offers()
        self.done: Array = np.zeros(0, bool)  # by the plan, like the next one
        self.gain: Floats = np.zeros(0)

    # -- events ------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Apply the next event; events come in order, each once."""
        with self.lock:
            if event.seq != self.seq + 1:
                raise RuntimeError(f"event {event.seq} came after event {self.seq}")
            self._on[event.kind](self, event)
            self.seq = event.seq

    def _project(self, event: Event) -> None:
        self.settings = Settings.from_body(event.body)
        self.classes = {name: k for k, name in enumerate(self.settings.classes)}
        self.turns[event.kind, -1, ""] = event.turn + 1
        self.era += 1
        self._rank()

    def _task(self, event: Event) -> None:
        task = self.tasks.enroll(event.task)
        self.content.append(event.body)
        self.counts.extend(len(self.tasks))
        self._offer(task)

    def _gold(self, event: Event) -> None:
        task = self.tasks.number[event.task]
        if event.label:
            self.gold[task] = event.label
        else:
            self.gold.pop(task, None)
        self.turns[event.kind, task, ""] = event.turn + 1
        self.era += 1
        self._offer(task)

    def _label(self, event: Event) -> None:
        task, label = self.tasks.number[event.task], self.classes[event.label]
        self.task.append(task)
        self.worker.append(self.workers.enroll(event.worker))
        self.label.append(label)
        self.at.append(event.at)
        self.counts.view[task] += 1
        self.labeled[event.worker][task] = label
        self.leases.take_back(event.worker, task)
        self._offer(task)

    def _withdraw(self, event: Event) -> None:
        task = self.tasks.number[event.task]
        del self.labeled[event.worker][task]
        self.counts.view[task] -= 1
        worker, labels = self.workers.number[event.worker], np.frombuffer(self.label, np.int64)
        mine = np.frombuffer(self.worker, np.int64) == worker
        mine &= np.frombuffer(self.task, np.int64) == task
        place = int(np.flatnonzero(mine & (labels >= 0))[-1])
        del labels  # an array with a view on it cannot grow
        self.label[place] = -1
        self.turns[events.LABEL, task, event.worker] = event.turn + 1
        self.n_withdrawn += 1
        self.era += 1
        self._offer(task)

    def _skip(self, event: Event) -> None:
        task = self.tasks.number[event.task]
        self.skipped[event.worker].add(task)
        self.leases.take_back(event.worker, task)

    def _token(self, event: Event) -> None:
        if "digest" in event.body:  # missing in a log that was replayed
            key = Key.from_event(event)
            self.keys[key.id] = key

    def _revoke(self, event: Event) -> None:
        self.keys.pop(event.task, None)

    _on: dict[str, Callable[[Board, Event], None]] = {
        events.PROJECT: _project,
        events.TASK: _task,
        events.GOLD: _gold,
        events.LABEL: _label,
        events.WITHDRAW: _withdraw,
        events.SKIP: _skip,
        events.TOKEN: _token,
        events.REVOKE: _revoke,
    }

    # -- what to do next ---------------------------------------------------------------

    def choose(self, worker: str, now: float) -> int | None:
        """Choose the task that a worker should label next, by number; None if there is none."""
        with self.lock:
            self.leases.expire(now)
            held = self.leases.find(worker, now)
            if held is not None:
                return held
            check = self._choose_check(worker)
            if check is not None:
                return check
            own = self.labeled.get(worker, {}), self.skipped.get(worker, set())
            return self.offers.find_best(*own)

    def _choose_check(self, worker: str) -> int | None:
        """Choose a task with a known truth, if it is time for a check of this worker."""
        given = len(self.labeled.get(worker, ()))
        share = self.settings.checks
        if int((given + 1) * share) == int(given * share):
            return None
        own = self.labeled.get(worker, {}), self.skipped.get(worker, set())
        left = [task for task in self.gold if not any(task in seen for seen in own)]
        return min(left, key=lambda task: (self.counts.view[task], task), default=None)

    def judge(self, gain: Floats | None = None, done: Array | None = None) -> None:
        """Take over the gain of a label for each task, or which tasks are done."""
        with self.lock:
            self.gain = self.gain if gain is None else gain
            self.done = self.done if done is None else done
            self._rank()

    def _offer(self, task: int) -> None:
        """Update the value of one task after something has happened to it."""
        count, held = int(self.counts.data[task]), self.leases.held.get(task, 0)
        worth, settings = CLOSED, self.settings
        done = task in self.gold or (task < len(self.done) and self.done[task])
        enough = held >= max(settings.min_labels - count, 1)
        if not (done or enough or count + held >= settings.max_labels):
            gain = self.gain[task] if task < len(self.gain) else 0.0
            worth = FIRST - count if count < settings.min_labels else gain
        self.offers.set(task, worth)

    def _rank(self) -> None:
        """Update the value of all tasks at once."""
        n, least = len(self.tasks), self.settings.min_labels
        count, held, gain = self.counts.view, np.zeros(n, np.int64), np.zeros(n)
        running = self.leases.held
        held[list(running.keys())] = list(running.values())
        may = (held < np.maximum(least - count, 1)) & (count + held < self.settings.max_labels)
        may[: len(self.done)] &= ~self.done
        may[list(self.gold)] = False
        gain[: len(self.gain)] = self.gain
        self.offers.rank(np.where(may, np.where(count < least, FIRST - count, gain), CLOSED))

    # -- the labels so far -------------------------------------------------------------

    def columns(self, start: int = 0) -> tuple[Ints, Ints, Ints]:
        """Return task, worker and label numbers from a position on, as copies."""
        with self.lock:
            parts = (self.task, self.worker, self.label)
            task, worker, label = (np.array(part[start:], dtype=np.int64) for part in parts)
            return task, worker, label

    def annotations(self) -> Annotations:
        """Return all labels that were not withdrawn, with the known truths."""
        with self.lock:
            task, worker, label = self.columns()
            gold = np.full(len(self.tasks), -1, np.int64)
            for number, name in self.gold.items():
                gold[number] = self.classes[name]
            return Annotations.from_codes(
                task,
                worker,
                label,
                tasks=as_names(self.tasks.list),
                workers=as_names(self.workers.list),
                classes=as_names(list(self.classes)),
                time=(np.array(self.at) * 1e6).astype("datetime64[us]") if self.at else None,
                gold=gold if self.gold else None,
            )


def as_names(names: list[str]) -> Array:
    """Return names as an array of objects, however long they are."""
    found = np.empty(len(names), dtype=object)
    found[:] = names
    return found
