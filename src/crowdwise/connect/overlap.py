"""Active overlap: which labeled tasks need another label, and which have enough."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from crowdwise.annotations import Annotations
from crowdwise.plan import Planner, Promise


@dataclass(frozen=True)
class Overlap:
    """The rule by which some tasks get more labels than others.

    Attributes
    ----------
    planner : Planner
        Decides which tasks are done, and how much another label of each of the rest would tell.
    max_labels : int
        Maximum number of labels per task.
    ahead : int
        Number of tasks open for another label at a time, the most uncertain first. All tasks
        with fewer than ``planner.min_labels`` are open as well.
    """

    planner: Planner = field(default_factory=Planner)
    max_labels: int = 10
    ahead: int = 50

    def plan(self, votes: Annotations) -> tuple[dict[Hashable, bool], Promise]:
        """Return whether each labeled task is open for another label, and the current promise."""
        promise = self.planner.look(votes, votes.gold_labels).done()
        given = dict(zip(votes.tasks.tolist(), votes.redundancy.tolist(), strict=True))
        least = self.planner.min_labels
        wanted: dict[Hashable, bool] = {task: 0 < n < least for task, n in given.items()}
        few = sum(wanted.values())
        left = self.ahead
        for task in self.planner.next(votes, budget=few + 2 * self.ahead)["task"].tolist():
            if left and not wanted[task] and given[task] < self.max_labels:
                wanted[task], left = True, left - 1
        return wanted, promise
