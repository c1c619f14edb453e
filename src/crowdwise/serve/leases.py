"""Leases: which task is in whose hands, and for how long.

A lease runs on the steady clock of the process, from the moment that the process has seen it: a
clock on the wall that jumps ends no lease. Another process sees it a little later, and so ends it
later, never earlier; after a restart a lease runs anew.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable


class Leases:
    """Tasks, by number, in the hands of workers. Times are seconds of a steady clock.

    ``changed`` is called with every task that is given or comes back.
    """

    def __init__(self, changed: Callable[[int], None]) -> None:
        self._changed = changed
        self.offered: dict[str, dict[int, float]] = defaultdict(dict)  # worker, task: deadline
        self.held: Counter[int] = Counter()  # leases of each task that run
        self._queue: list[tuple[float, str, int]] = []

    def give(self, worker: str, task: int, deadline: float) -> None:
        """Put a task into a worker's hands; a lease that the worker had on it is replaced."""
        self.take_back(worker, task)
        self.offered[worker][task] = deadline
        self.held[task] += 1
        self._changed(task)
        heapq.heappush(self._queue, (deadline, worker, task))

    def take_back(self, worker: str, task: int) -> None:
        """End a lease, if there is one, and forget that there was one."""
        deadline = self.offered[worker].pop(task, None)
        if deadline is not None and deadline != float("-inf"):
            self._release(task)

    def expire(self, now: float) -> None:
        """Let others have what has been held for too long; the worker may still send a label."""
        while self._queue and self._queue[0][0] <= now:
            deadline, worker, task = heapq.heappop(self._queue)
            if self.offered[worker].get(task) == deadline:
                self.offered[worker][task] = float("-inf")
                self._release(task)

    def find(self, worker: str, now: float) -> int | None:
        """The task that a worker has in hand, and for how much longer."""
        for task, deadline in self.offered.get(worker, {}).items():
            if deadline > now:
                return task
        return None

    def was_offered(self, worker: str, task: int) -> bool:
        """Whether a worker was given a task, and has neither labeled nor skipped it since."""
        return task in self.offered.get(worker, {})

    def _release(self, task: int) -> None:
        self.held[task] -= 1
        if not self.held[task]:
            del self.held[task]
        self._changed(task)
