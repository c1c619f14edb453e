"""A real crowd played back: a planner chooses tasks, and gets the labels that people gave."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.inference.growing_arrays import number_repeats
from crowdwise.io import as_annotations
from crowdwise.io.gold import find_truths
from crowdwise.plan.planner import Planner
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints, Names, RandomState


def replay(
    annotations: AnnotationsLike,
    truth: GoldLike,
    planner: Planner,
    *,
    batch: float = 0.1,
    n_gold: int = 0,
    by_worker: bool = True,
    stop: bool = False,
    labeled: Names = (),
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Play a crowd back to a planner, which asks for labels and gets real ones.

    Every task starts with one of its labels, at random. Then the planner asks for labels of
    tasks by workers who really gave one.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        All labels of the crowd.
    truth : mapping, Series, frame or array
        True labels, to measure accuracy by.
    planner : Planner
        The planner to test.
    batch : float, default=0.1
        Labels to ask for at a time, as a share of the tasks.
    n_gold : int, default=0
        Tasks, drawn at random, whose truth the planner knows.
    by_worker : bool, default=True
        Whether the planner also chooses the workers, among those who labeled a task. If not,
        it gets one of the remaining labels at random.
    stop : bool, default=False
        Whether to stop once all tasks are done, by the planner's promise; if not, labels are
        bought until none is left.
    labeled : list of tasks, default=()
        Tasks that have all their labels from the start, such as those of a pilot. With truths
        of the others alone, only these are measured.
    random_state : int or RandomState, default=0
        Random seed for the order of each task's labels.

    Returns
    -------
    DataFrame
        After each batch: ``labels`` bought, the ``accuracy`` of all labels, how many tasks are
        ``done``, and the ``done_accuracy`` of those whose truth the planner does not know.
    """
    votes = as_annotations(annotations)
    rng = check_random_state(random_state)
    place, names = find_truths(truth, votes)
    true = np.full(votes.n_tasks, -1, dtype=np.int64)
    true[place] = locate(votes.classes, names)
    turn = shuffle_within(votes, rng)
    given = rng.choice(place, min(n_gold, len(place)), replace=False)
    gold = None if not n_gold else pd.Series(votes.classes[true[given]], index=votes.tasks[given])
    bought = (turn == 0) | np.isin(votes.tasks, list(labeled))[votes.task]
    size = max(round(batch * votes.n_tasks), 1)
    rows = []
    while True:
        asked = ask(planner, votes, bought, size, gold, by_worker)
        rows.append({"labels": int(bought.sum()), **measure(planner, true)})
        if not len(asked) or (stop and rows[-1]["done"] == votes.n_tasks):
            break
        bought |= give(votes, bought, turn, asked, by_worker)
    return pd.DataFrame(rows)


def ask(
    planner: Planner,
    votes: Annotations,
    bought: Array,
    size: int,
    gold: pd.Series | None,
    by_worker: bool,
) -> pd.DataFrame:
    """Return what the planner asks for, among the remaining labels."""
    left, seen = ~bought, votes.filter(bought)
    task, worker = votes.tasks[votes.task[left]], votes.workers[votes.worker[left]]
    if by_worker:
        pairs = pd.DataFrame({"task": task, "worker": worker})
        return planner.next(seen, size, available=pairs, gold=gold)
    return planner.next(seen, size, tasks=pd.unique(task), gold=gold)


def give(
    votes: Annotations, bought: Array, turn: Ints, asked: pd.DataFrame, by_worker: bool
) -> Array:
    """Give labels: the first ones of each task, or pair, as often as it is asked for."""
    key = votes.task.astype(np.int64)
    wanted = locate(votes.tasks, asked["task"].to_numpy())
    if by_worker:
        key = key * votes.n_workers + votes.worker
        wanted = wanted * votes.n_workers + locate(votes.workers, asked["worker"].to_numpy())
    left = np.flatnonzero(~bought)
    left = left[np.lexsort((turn[left], key[left]))]
    _, nth = number_repeats(key[left])
    times = pd.Series(wanted).value_counts().reindex(key[left], fill_value=0)
    given = np.zeros(votes.n_annotations, dtype=bool)
    given[left[nth < times.to_numpy()]] = True
    return given


def shuffle_within(votes: Annotations, rng: np.random.RandomState) -> Ints:
    """Number the labels of each task in random order, from 0."""
    shuffled = np.lexsort((rng.random_sample(votes.n_annotations), votes.task))
    order = np.empty(votes.n_annotations, dtype=np.int64)
    order[shuffled] = np.arange(votes.n_annotations) - votes.indptr[votes.task]
    return order


def measure(planner: Planner, true: Ints) -> dict[str, float]:
    """Measure how many labels are right, on all tasks with a truth and on those done."""
    posterior, promise = planner.outlook_.posterior, planner.done()
    right = right_share(posterior, true)
    done: Array = np.isin(
        np.arange(len(true)), locate(planner.outlook_.votes.tasks, promise.tasks.index)
    )
    known, done = true >= 0, done & ~planner.outlook_.known
    return {
        "accuracy": float(right[known].mean()),
        "done": len(promise.tasks),
        "done_accuracy": float(right[known & done].mean()) if (known & done).any() else np.nan,
        "promised": promise.low,
    }


def right_share(posterior: Floats, true: Ints) -> Floats:
    """Return whether each task's best class is the true one."""
    return (posterior.argmax(axis=1) == true).astype(np.float64)
