"""Offers: the value of each task to the next worker, updated task by task."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from crowdwise.inference.growing_arrays import Growing
from crowdwise.typing import Floats

CLOSED = -np.inf  # value of a task that nobody gets now
TRIES = 32  # tasks tried one by one before all of a worker's own tasks are excluded


class Offers:
    """The value of every task by number, ``CLOSED`` for one that nobody gets."""

    def __init__(self) -> None:
        self._worth = Growing(np.zeros(0))

    @property
    def worth(self) -> Floats:
        return self._worth.view

    def set(self, task: int, worth: float) -> None:
        """Set the value of one task."""
        if task >= self._worth.n:
            self._worth.extend(task + 1, CLOSED)
        self._worth.view[task] = worth

    def rank(self, worth: Floats) -> None:
        """Set the values of all tasks."""
        self._worth = Growing(worth)

    def find_best(self, *own: Collection[int]) -> int | None:
        """Find the most valuable task that is not one of the worker's own."""
        left = self._worth.view.copy()
        for _ in range(TRIES):
            best = int(left.argmax()) if len(left) else -1
            if best < 0 or left[best] == CLOSED:
                return None
            if not any(best in tasks for tasks in own):
                return best
            left[best] = CLOSED
        for tasks in own:
            left[np.fromiter(tasks, np.int64, len(tasks))] = CLOSED
        best = int(left.argmax())
        return best if left[best] > CLOSED else None
