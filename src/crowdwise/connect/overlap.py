"""Active overlap: which labeled tasks need another label, and which have enough."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from crowdwise.annotations import Annotations
from crowdwise.plan import Planner, Promise


@dataclass(frozen=True)
class Overlap:
    """How tasks are given more labels than others.

    Attributes
    ----------
    planner : Planner
        What finds which tasks are done, and how much a label of the others would tell.
    max_labels : int
        Labels that a task gets at most.
    ahead : int
        Tasks that are open for another label at a time, the most doubtful first. All tasks with
        fewer than ``planner.min_labels`` are open as well.
    """

    planner: Planner = field(default_factory=Planner)
    max_labels: int = 10
    ahead: int = 50

    def plan(self, votes: Annotations) -> tuple[dict[Hashable, bool], Promise]:
        """Whether each labeled task is open for one more label, and what is promised so far."""
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
