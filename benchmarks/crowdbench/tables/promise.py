"""Whether a promised share of labels is right, by real crowds played back until they are done."""

from __future__ import annotations

from functools import partial

from sklearn.base import BaseEstimator

from crowdbench.table import Column, Row, Table
from crowdbench.tables.routing import SETS, Played, load
from crowdwise.plan import Planner
from crowdwise.simulate import replay

TARGETS = {0.90: 100, 0.95: 150, 0.99: 500}  # and how many truths are given
MOST_TASKS = 1_000  # of a set; at most half of its truths are given
BATCH = 1.0  # labels bought at a time, per task


class Promised(BaseEstimator):
    """A planner with a target, and how many truths it is given."""

    def __init__(self, target: float = 0.95, n_gold: int = 0) -> None:
        self.target, self.n_gold = target, n_gold


def make(target: float, n_gold: int, _column: str) -> Promised:
    return Promised(target, n_gold)


def play(model: Promised, data: Played, seed: int) -> dict[str, float]:
    """Label until all tasks are done or none is left; whether all that was promised came true."""
    n_gold, n_tasks = min(model.n_gold, data.annotations.n_tasks // 2), data.annotations.n_tasks
    course = replay(
        data.annotations,
        data.truth,
        Planner(target=model.target),
        batch=BATCH,
        n_gold=n_gold,
        stop=True,
        random_state=seed,
    )
    promised = course["promised"].notna()
    kept = not (course.loc[promised, "done_accuracy"] < model.target).any()
    end = course.iloc[-1]
    share = (end["done"] - n_gold) / (n_tasks - n_gold) if promised.iloc[-1] else 0.0
    spent = float(end["labels"]) / data.annotations.n_annotations
    return {"kept": float(kept), "done": float(share), "labels": spent}


ROWS = {
    f"{target:.0%} with {gold} truths": Row(partial(make, target, gold))
    for target, gold in TARGETS.items()
}
TABLE = Table(
    name="promise",
    title="Whether a promised share of labels is right, by real crowds played back",
    source="Data sets as published; see the page on data sets.",
    about=(
        "A planner with its default settings buys labels until all tasks are done or no label is "
        "left, one label per task at a time. Truths of tasks drawn at random are given, of at "
        "most half of the tasks; without truths nothing is promised. Kept: whether each time that"
        " something was promised at least that share of the labels was right, of the tasks that "
        "were done and whose truth was not given; 1 where nothing was promised. Done: share of "
        "these tasks of which the promise could be made in the end. Labels: share of the labels "
        "that were bought; lower is better. At most 1,000 tasks of a set, drawn by the seed: of so "
        "many, 90% takes 45 truths, 95% 94 and 99% 683, which is more than half of them, so that "
        "99% can be promised on none of these sets."
    ),
    rows=ROWS,
    columns={name: Column(partial(load, name, most=MOST_TASKS), redrawn=True) for name in SETS},
    measure=play,
    metrics=("kept", "done"),
    losses=("labels",),
    overall=True,
    seeds=20,
    quick_seeds=1,
    quick_rows=("90% with 100 truths",),
    quick_columns=("bluebirds", "temp"),
)
