"""Leases: which worker has which task, and for how long.

A lease runs on the monotonic clock of the process, from the moment the process sees it, so that
changes of the system time end no lease. Other processes see it a little later and therefore end
it later, never earlier; after a restart a lease starts again.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable


class Leases:
    """The tasks, by number, that workers hold. Times are seconds of a monotonic clock.

    ``changed`` is called with every task that is given out or comes back.
    """

    def __init__(self, changed: Callable[[int], None]) -> None:
        self._changed = changed
        self.offered: dict[str, dict[int, float]] = defaultdict(dict)  # worker, task: deadline
        self.held: Counter[int] = Counter()  # running leases of each task
        self._queue: list[tuple[float, str, int]] = []

    def give(self, worker: str, task: int, deadline: float) -> None:
        """Give a task to a worker; an earlier lease of the same task and worker is replaced."""
        self.take_back(worker, task)
        self.offered[worker][task] = deadline
        self.held[task] += 1
        self._changed(task)
        heapq.heappush(self._queue, (deadline, worker, task))

    def take_back(self, worker: str, task: int) -> None:
        """End a lease, if there is one, and forget it."""
        deadline = self.offered[worker].pop(task, None)
        if deadline is not None and deadline != float("-inf"):
            self._release(task)

    def expire(self, now: float) -> None:
        """End leases that have run out; their workers may still send a label."""
        while self._queue and self._queue[0][0] <= now:
            deadline, worker, task = heapq.heappop(self._queue)
            if self.offered[worker].get(task) == deadline:
                self.offered[worker][task] = float("-inf")
                self._release(task)

    def find(self, worker: str, now: float) -> int | None:
        """Find the task that a worker holds; None if there is none."""
        for task, deadline in self.offered.get(worker, {}).items():
            if deadline > now:
                return task
        return None

    def was_offered(self, worker: str, task: int) -> bool:
        """Return whether a worker was given a task and has neither labeled nor skipped it."""
        return task in self.offered.get(worker, {})

    def _release(self, task: int) -> None:
        self.held[task] -= 1
        if not self.held[task]:
            del self.held[task]
        self._changed(task)
