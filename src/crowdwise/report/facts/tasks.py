"""The label of each task, its confidence, and the most contested tasks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from crowdwise.annotations import Annotations, tied
from crowdwise.annotations.names import locate
from crowdwise.evaluate.label_counts import label_counts
from crowdwise.typing import Array, Floats, Ints

MOST_TASKS = 20_000  # rows in the table
MOST_CONTESTED = 20
CONFIDENT = 0.9  # below this, a label is called uncertain
N_BINS = 20


@dataclass(frozen=True)
class TaskFacts:
    """One row per task, least confident first, for as many tasks as a page can hold."""

    n_tasks: int
    n_uncertain: int  # tasks with a confidence below ``threshold``
    n_tied: int  # tasks with two or more equally probable labels
    n_overruled: int  # tasks whose label is not among the most frequent ones
    mean_confidence: float  # the accuracy that the method itself expects
    threshold: float
    histogram: Ints  # tasks by confidence, in bins of equal width from 0 to 1
    note: str  # says if rows are left out
    name: list[str]
    label: Ints  # (row,): class number
    confidence: Floats  # (row,)
    n_labels: Ints  # (row,)
    support: Floats  # (row,): share of the labels that are of the chosen class
    split: Floats  # (row,): see :func:`measure_contest`
    votes: csr_array  # (row, class): labels of each class
    truth: Ints | None  # (row,): class number, -1 where unknown
    contested: Ints  # rows of the most contested tasks, worst first

    def votes_of(self, row: int) -> list[tuple[int, int]]:
        """List how many labels of each class a task has, the most frequent first."""
        own = self.votes[[row]].tocoo()
        counts = zip(own.coords[1].tolist(), own.data.astype(int).tolist(), strict=True)
        return sorted(counts, key=lambda count: -count[1])


def task_facts(data: Annotations, posterior: Floats, truth: pd.Series | None) -> TaskFacts:
    """Collect the facts about each task from a method's posterior."""
    confidence = posterior.max(axis=1, initial=0.0)
    best = tied(posterior)
    label = best.argmax(axis=1)
    votes = votes_by_task(data)
    split = measure_contest(votes)
    chosen = np.asarray(votes[np.arange(data.n_tasks), label]).reshape(-1)
    most = np.asarray(votes.max(axis=1).todense()).reshape(-1)
    rows = choose_rows(confidence, split)
    contested = np.lexsort((confidence[rows], -split[rows]))[:MOST_CONTESTED]
    size = data.redundancy
    return TaskFacts(
        n_tasks=data.n_tasks,
        n_uncertain=int((confidence < CONFIDENT).sum()),
        n_tied=int((best.sum(axis=1) > 1).sum()),
        n_overruled=int(((chosen < most) & (size > 0)).sum()),
        mean_confidence=float(confidence.mean()) if len(confidence) else float("nan"),
        threshold=CONFIDENT,
        histogram=np.histogram(confidence, N_BINS, (0.0, 1.0))[0],
        note=_left_out(len(rows), data.n_tasks),
        name=[str(name) for name in data.tasks[rows].tolist()],
        label=label[rows],
        confidence=confidence[rows],
        n_labels=size[rows],
        support=chosen[rows] / np.maximum(size[rows], 1),
        split=split[rows],
        votes=votes[rows],
        truth=None if truth is None else truth_codes(data.tasks[rows], data.classes, truth),
        contested=contested[split[rows][contested] > 0],
    )


def votes_by_task(data: Annotations) -> csr_array:
    """Count the labels of each class, as a sparse array tasks x classes."""
    counts = label_counts(data).counts
    place = np.flatnonzero(data.redundancy)
    if len(place) == data.n_tasks:
        return counts
    spread = csr_array(
        (np.ones(len(place)), (place, np.arange(len(place)))), shape=(data.n_tasks, len(place))
    )
    return csr_array(spread @ counts)


def measure_contest(votes: csr_array) -> Floats:
    """Measure how evenly each task's labels are split, from 0 to 1.

    This is the chance that two draws from its labels differ, times ``n / (n + 1)``: five against
    five is more of a contest than one against one.
    """
    size = np.asarray(votes.sum(axis=1), dtype=np.float64)
    squares = np.asarray(votes.power(2).sum(axis=1), dtype=np.float64)
    return (1 - squares / np.maximum(size, 1) ** 2) * size / (size + 1) * (size > 0)


def choose_rows(confidence: Floats, split: Floats) -> Ints:
    """Order the tasks as on the page: least confident first, then most contested."""
    return np.lexsort((-split, confidence))[:MOST_TASKS]


def truth_codes(tasks: Array, classes: Array, truth: pd.Series) -> Ints:
    """Return the class number of each task's truth, -1 if it is unknown or not a class."""
    place = locate(truth.index.to_numpy(), tasks)
    codes: Any = np.append(locate(classes, truth.to_numpy()), -1)
    return codes[place]


def _left_out(n_rows: int, n_tasks: int) -> str:
    if n_rows == n_tasks:
        return ""
    return (
        f"The {n_rows:,} least confident of {n_tasks:,} tasks are listed; "
        "crowdwise aggregate writes all of them."
    )
