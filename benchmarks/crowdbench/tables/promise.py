"""Whether a promised share of labels is right, by real crowds played back until they are done."""

from __future__ import annotations

from functools import partial

from sklearn.base import BaseEstimator

from crowdbench.table import Column, Row, Table
from crowdbench.tables.routing import SETS, load
from crowdwise.datasets import Crowd
from crowdwise.plan import Planner
from crowdwise.simulate import replay

TARGETS = (0.90, 0.95, 0.99)
N_GOLD = 100  # tasks whose truth is told, in the rows with truths
BATCH = 2.0  # labels bought at a time, per task


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
        batch=BATCH,
        n_gold=model.n_gold,
        stop=True,
        random_state=seed,
    ).iloc[-1]
    kept = not end["done_accuracy"] < model.target  # not a number where nothing is promised
    share = (end["done"] - model.n_gold) / (data.annotations.n_tasks - model.n_gold)
    found = {"kept": float(kept), "done": float(share)}
    return {**found, "labels": float(end["labels"]) / data.annotations.n_annotations}


ROWS = {
    f"{target:.0%}{f' with {gold} truths' if gold else ''}": Row(partial(make, target, gold))
    for gold in (0, N_GOLD)
    for target in TARGETS
}
TABLE = Table(
    name="promise",
    title="Whether a promised share of labels is right, by real crowds played back",
    source="Data sets as published; see the page on data sets.",
    about=(
        "A planner with its default settings buys labels until all tasks are done or no label "
        "is left, two a task at a time. Kept: whether at least the promised share of the labels "
        "of tasks that are done is right, or nothing is promised. Done: share of the tasks. "
        "Labels: share of the labels that were bought; lower is better. With truths, those of "
        "100 tasks drawn at random (of at most 400) are told, and do not count: they can show "
        "90% and 95%, but never 99%. Without, what is said rests on labels alone."
    ),
    rows=ROWS,
    columns={name: Column(partial(load, name), redrawn=True) for name in SETS},
    measure=play,
    metrics=("kept", "done"),
    losses=("labels",),
    overall=True,
    seeds=3,
    quick_seeds=1,
    quick_rows=("90%", "95% with 100 truths"),
    quick_columns=("bluebirds", "temp"),
)
