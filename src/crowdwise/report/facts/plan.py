"""Progress of the labeling: done tasks, a forecast, and the tasks to label next."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.plan import MOST_TRUTHS, Planner, truths_needed
from crowdwise.typing import Floats

TARGET = 0.95
MOST_TASKS = 20_000  # above which no forecast is made
MOST_CONTESTED = 15
MORE = (0.0, 0.1, 0.25, 0.5, 1.0)  # further labels, as shares of those so far
N_DRAWS = 10


@dataclass(frozen=True)
class ForecastPoint:
    """The expected result of this many more well-chosen labels."""

    n_labels: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class ContestedTask:
    """A task where another label would tell most."""

    name: str
    n_labels: int
    label: str
    confidence: float
    second: str
    gain: float


@dataclass(frozen=True)
class PlanFacts:
    """Progress toward the target accuracy, a forecast, and the tasks to label next."""

    target: float
    n_tasks: int
    n_done: int
    n_labels: int
    expected: float  # accuracy of the tasks that are done; NaN if none is
    low: float
    checked: bool  # whether there are enough known truths
    n_needed: int  # truths that are enough; 0 if all tasks are too few
    forecast: tuple[ForecastPoint, ...]
    contested: tuple[ContestedTask, ...]


def plan_facts(
    data: Annotations, posterior: Floats, known: pd.Series | None, random_state: int
) -> PlanFacts | None:
    """Let a planner assess the labels; None if there is only one class to choose from.

    If all truths are known, they are for evaluation: the plan is that of the labels alone.
    """
    alone = len(np.unique(data.worker)) < 2
    if alone or data.n_classes < 2 or data.n_tasks > MOST_TASKS:
        return None
    gold = None
    if known is not None:
        gold = np.full(data.n_tasks, -1, dtype=np.int64)
        place = locate(data.tasks, known.index.to_numpy())
        gold[place[place >= 0]] = locate(data.classes, known.to_numpy())[place >= 0]
        gold = None if (gold >= 0).all() else gold
    planner = Planner(target=TARGET).take(data, posterior, gold)
    promise, needed = planner.done(), truths_needed(TARGET, data.n_tasks)
    future = planner.forecast(data.n_annotations, n_draws=N_DRAWS, random_state=random_state)
    points = [
        ForecastPoint(
            round(share * data.n_annotations),
            *(
                float(np.interp(share * data.n_annotations, future["cost"], future[key]))
                for key in ("accuracy", "low", "high")
            ),
        )
        for share in MORE
    ]
    return PlanFacts(
        target=TARGET,
        n_tasks=data.n_tasks,
        n_done=len(promise.tasks),
        n_labels=data.n_annotations,
        expected=promise.accuracy,
        low=promise.low,
        checked=promise.checked,
        n_needed=0 if needed > MOST_TRUTHS * data.n_tasks else int(needed),
        forecast=tuple(points),
        contested=tuple(find_contested(data, posterior, planner)),
    )


def find_contested(data: Annotations, posterior: Floats, planner: Planner) -> list[ContestedTask]:
    """List the tasks that the planner would label next, with their two best labels."""
    best = planner.set_params(evenly=0.0).spend(MOST_CONTESTED).drop_duplicates("task")
    found = []
    for name, gain in zip(best["task"], best["gain"], strict=True):
        task = int(locate(data.tasks, [name])[0])
        first, second = np.argsort(-posterior[task], kind="stable")[:2]
        found.append(
            ContestedTask(
                str(name),
                int(data.redundancy[task]),
                str(data.classes[first]),
                float(posterior[task, first]),
                str(data.classes[second]),
                float(gain),
            )
        )
    return found
