"""A real crowd played back: a planner chooses tasks, and gets the labels that people gave."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.io import as_annotations
from crowdwise.io.gold import find_truths
from crowdwise.plan.planner import Planner
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints, RandomState


def replay(
    annotations: AnnotationsLike,
    truth: GoldLike,
    planner: Planner,
    *,
    batch: float = 0.1,
    n_gold: int = 0,
    stop: bool = False,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Play a crowd back: the planner asks, and gets labels that were really given.

    Every task begins with one of its labels. When the planner asks for a label of a task, it
    gets one of those that are left, at random.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        All labels of the crowd.
    truth : mapping, Series, frame or array
        True labels, to measure accuracy by.
    planner : Planner
        What is tried.
    batch : float, default=0.1
        Labels that are asked for at a time, as a share of the tasks.
    n_gold : int, default=0
        Tasks, drawn at random, whose truth the planner is told.
    stop : bool, default=False
        Whether to stop once all tasks are done, by the planner's promise; if not, labels are
        bought until none is left.
    random_state : int or RandomState, default=0
        Decides the order of each task's labels.

    Returns
    -------
    DataFrame
        After each batch: ``labels`` bought, the ``accuracy`` of all labels, how many tasks are
        ``done``, and the ``done_accuracy`` of these.
    """
    votes = as_annotations(annotations)
    rng = check_random_state(random_state)
    place, names = find_truths(truth, votes)
    true = np.full(votes.n_tasks, -1, dtype=np.int64)
    true[place] = locate(votes.classes, names)
    order = shuffle_within(votes, rng)
    told = rng.choice(place, min(n_gold, len(place)), replace=False)
    gold = None if not n_gold else pd.Series(votes.classes[true[told]], index=votes.tasks[told])
    bought = np.minimum(votes.redundancy, 1)
    size = max(round(batch * votes.n_tasks), 1)
    rows = []
    while True:
        seen = votes.filter(order < np.repeat(bought, votes.redundancy))
        rest = votes.tasks[bought < votes.redundancy]
        asked = planner.next(seen, size, tasks=rest, gold=gold)
        rows.append({"labels": int(bought.sum()), **measure(planner, true)})
        if not len(rest) or not len(asked) or (stop and rows[-1]["done"] == votes.n_tasks):
            break
        at = locate(votes.tasks, asked["task"].to_numpy())
        bought = np.minimum(bought + np.bincount(at, minlength=votes.n_tasks), votes.redundancy)
    return pd.DataFrame(rows)


def shuffle_within(votes: Annotations, rng: np.random.RandomState) -> Ints:
    """A random number of each label among those of its task, from 0."""
    shuffled = np.lexsort((rng.random_sample(votes.n_annotations), votes.task))
    order = np.empty(votes.n_annotations, dtype=np.int64)
    order[shuffled] = np.arange(votes.n_annotations) - votes.indptr[votes.task]
    return order


def measure(planner: Planner, true: Ints) -> dict[str, float]:
    """How many labels are right: of all tasks with a truth, and of those that are done."""
    posterior, promise = planner.outlook_.posterior, planner.done()
    right = right_share(posterior, true)
    done: Array = np.isin(
        np.arange(len(true)), locate(planner.outlook_.votes.tasks, promise.tasks.index)
    )
    known = true >= 0
    return {
        "accuracy": float(right[known].mean()),
        "done": int(done.sum()),
        "done_accuracy": float(right[known & done].mean()) if (known & done).any() else np.nan,
        "promised": promise.low,
    }


def right_share(posterior: Floats, true: Ints) -> Floats:
    """Whether each task's best class is the true one."""
    return (posterior.argmax(axis=1) == true).astype(np.float64)
