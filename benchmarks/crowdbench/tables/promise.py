"""Whether a promised share of labels is right, by real crowds played back until they are done."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.base import BaseEstimator

from crowdbench.table import Column, Row, Table
from crowdbench.tables.routing import SETS, load
from crowdwise.datasets import Crowd
from crowdwise.plan import Planner
from crowdwise.simulate import replay

TARGETS = (0.90, 0.95, 0.99)
N_GOLD = 40  # tasks whose truth is told, in the rows with gold
MOST_TASKS = 200


class Promised(BaseEstimator):
    """A planner with a target, and how many truths it is told."""

    def __init__(self, target: float = 0.95, n_gold: int = 0) -> None:
        self.target, self.n_gold = target, n_gold


def make(target: float, n_gold: int, _column: str) -> Promised:
    return Promised(target, n_gold)


def play(model: Promised, data: Crowd, seed: int) -> dict[str, float]:
    """Label until all tasks are done or none is left; whether what was promised came true."""
    planner = Planner(target=model.target)
    end = replay(
        data.annotations,
        data.truth,
        planner,
        batch=1.0,
        n_gold=model.n_gold,
        stop=True,
        random_state=seed,
    ).iloc[-1]
    kept = not end["done"] or end["done_accuracy"] >= model.target
    found = {"kept": float(kept), "done": float(end["done"]) / data.annotations.n_tasks}
    return {**found, "labels": float(end["labels"]) / data.annotations.n_annotations}


def load_some(name: str, seed: int) -> Crowd:
    """A few of the tasks, so that a replay takes seconds."""
    whole = load(name, seed)
    votes = whole.annotations[np.arange(min(MOST_TASKS, whole.annotations.n_tasks))]
    assert whole.truth is not None
    return Crowd(name, votes, whole.info, truth=whole.truth.loc[votes.tasks])


ROWS = {
    f"{target:.0%}{', gold' if gold else ''}": Row(partial(make, target, gold))
    for gold in (0, N_GOLD)
    for target in TARGETS
}
TABLE = Table(
    name="promise",
    title="Whether a promised share of labels is right, by real crowds played back",
    source="Data sets as published; see the page on data sets.",
    about=(
        "A planner with its default settings buys labels until all tasks are done or no label "
        "is left. Kept: whether at least the promised share of the labels of tasks that are "
        "done is right, or nothing is promised. Done: share of the tasks. Labels: share of "
        "the labels that were bought; lower is better. With gold the truths of 40 tasks are told."
    ),
    rows=ROWS,
    columns={name: Column(partial(load_some, name), redrawn=True) for name in SETS},
    measure=play,
    metrics=("kept", "done"),
    losses=("labels",),
    overall=True,
    seeds=3,
    quick_seeds=1,
    quick_rows=("90%", "95%, gold"),
    quick_columns=("bluebirds", "temp"),
)
