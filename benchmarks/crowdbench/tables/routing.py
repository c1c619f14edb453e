"""How many labels a policy saves, by real crowds played back."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from crowdbench.sets import crowd
from crowdbench.table import Column, Row, Table
from crowdwise.aggregate import BayesBag
from crowdwise.datasets import Crowd
from crowdwise.datasets.crowd import with_tasks
from crowdwise.plan import (
    AccuracyGain,
    FewestLabels,
    InformationGain,
    LeastConfident,
    Planner,
    Policy,
    RandomTasks,
)
from crowdwise.simulate import replay

SETS = (
    *("bluebirds", "dog", "face", "mgc", "rte", "sentiment_tweets"),
    *("sp_amt", "temp", "weather_amt", "wsd", "zencrowd_us"),
)
POLICIES: dict[str, Policy] = {
    "information gain": InformationGain(),
    "accuracy gain": AccuracyGain(),
    "least confident": LeastConfident(),
    "fewest labels": FewestLabels(),
    "random": RandomTasks(0),
}
# Policies were tried on these before the default was chosen.
TRIED = dict.fromkeys(
    ("bluebirds", "rte", "temp", "weather_amt"),
    "the default policy was chosen after a trial on this set",
)
MOST_TASKS = 400  # of a set; others are left out, by the seed
BATCH = 0.5  # labels bought at a time, per task
POINTS = (0.3, 0.5, 0.7)  # shares of all labels at which accuracy is compared


def load(name: str, seed: int) -> Crowd:
    """The tasks of a crowd that have a truth, at most 400 of them."""
    whole = crowd(name)
    assert whole.truth is not None
    truth = whole.truth[whole.truth.isin(whole.annotations.classes)]
    tasks = whole.annotations.tasks[np.isin(whole.annotations.tasks, truth.index)]
    chosen = np.random.RandomState(seed).permutation(len(tasks))[:MOST_TASKS]
    votes = with_tasks(whole.annotations, tasks[np.sort(chosen)]).nonempty()
    return Crowd(name, votes, whole.info, truth=truth.loc[votes.tasks])


def make(policy: Policy, _column: str) -> Planner:
    return Planner(BayesBag.default_base, policy=policy, target=1.0)


def play(planner: Planner, data: Crowd, seed: int) -> dict[str, float]:
    """Accuracy after shares of all labels; labels that uniform redundancy's accuracy takes."""
    course = follow(planner, data, seed)
    alike = course
    if not isinstance(planner.policy, FewestLabels):
        alike = follow(make(FewestLabels(), ""), data, seed)
    first, last = float(course["labels"].iloc[0]), float(course["labels"].iloc[-1])
    spent = first + np.array(POINTS) * (last - first)
    found = np.interp(spent, course["labels"], course["accuracy"])
    goal = np.interp(spent, alike["labels"], alike["accuracy"])
    needed = [labels_to_reach(course, accuracy) for accuracy in goal]
    usual = [labels_to_reach(alike, accuracy) for accuracy in goal]
    at = {f"accuracy at {share:.0%}": value for share, value in zip(POINTS, found, strict=True)}
    return {**at, "labels": float(np.mean(np.divide(needed, usual)))}


def follow(planner: Planner, data: Crowd, seed: int) -> pd.DataFrame:
    return replay(data.annotations, data.truth, planner, batch=BATCH, random_state=seed)


def labels_to_reach(course: pd.DataFrame, accuracy: float) -> float:
    """When the course first is as accurate; between two batches, in proportion."""
    best = course["accuracy"].cummax().to_numpy()
    labels = course["labels"].to_numpy(dtype=np.float64)
    at = int(np.searchsorted(best, accuracy - 1e-9))
    if at == 0 or at == len(best):
        return float(labels[min(at, len(labels) - 1)])
    part = (accuracy - best[at - 1]) / max(best[at] - best[at - 1], 1e-12)
    return float(labels[at - 1] + part * (labels[at] - labels[at - 1]))


TABLE = Table(
    name="routing",
    title="How many labels a policy saves, by real crowds played back",
    source="Data sets as published; see the page on data sets.",
    about=(
        "Every task begins with one of its labels; then a planner asks for labels, half as "
        "many as there are tasks at a time, and gets some that were really given, in random "
        "order. Accuracy is that of all tasks (at most 400 of a set, drawn by the seed) once a "
        "share of the labels is bought. Labels: how many it takes to be as accurate as "
        "labeling all tasks alike (fewest labels) is then, as a share of what that takes, the "
        "mean over the three points; below 1 labels are saved."
    ),
    rows={
        name: Row(
            partial(make, policy),
            not_blind=TRIED if isinstance(policy, InformationGain) else "",
        )
        for name, policy in POLICIES.items()
    },
    columns={name: Column(partial(load, name), redrawn=True) for name in SETS},
    measure=play,
    metrics=tuple(f"accuracy at {share:.0%}" for share in POINTS),
    losses=("labels",),
    overall=True,
    seeds=3,
    quick_seeds=1,
    quick_rows=("information gain", "fewest labels"),
    quick_columns=("bluebirds", "temp"),
)
