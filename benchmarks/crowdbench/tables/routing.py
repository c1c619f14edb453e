"""How many labels a policy saves, by real crowds played back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.isotonic import IsotonicRegression

from crowdbench.judges import read_panel
from crowdbench.sets import crowd
from crowdbench.table import Column, Row, Table
from crowdwise.aggregate import BayesBag
from crowdwise.annotations import Annotations
from crowdwise.datasets.crowd import with_tasks
from crowdwise.plan import FewestLabels, Outlook, Planner, Policy
from crowdwise.plan.outlook import infer
from crowdwise.plan.planner import N_BAGS
from crowdwise.simulate import replay
from crowdwise.typing import Floats, GoldLike, Names

# Every registered set with truths and four labels a task or more where labels help: with all of
# them at least one task in a hundred more is right than with one label each.
SETS = (
    *("adult", "bluebirds", "dog", "face", "hotel", "medical_causes", "medical_treats", "mgc"),
    *("relevance", "rte", "sentiment_tweets", "sp_amt", "spc", "temp", "weather_amt", "wsd"),
    "zencrowd_us",
)
# Panels of language models: the score from which on a judge says yes, and that above which it
# is true.
PANELS = {"judges_civilcomments": (4.5, 0.5), "judges_asset": (50.0, 50.0)}
# How workers are judged, that their skills are drawn, and that a label counts less the more its
# task has, were chosen by one to five replays of these with seed 0, panels included; that two
# models judge the workers, by simulated crowds and seed 0 of eight of these.
SEEN = "policies were tried on these sets, over all of them together"
TRIED = dict.fromkeys((*SETS, *PANELS), SEEN)
MOST_TASKS = 400  # of a set; others are left out, by the seed
N_ORDERS = 5  # replays of a run, whose mean course is measured
BATCH = 0.5  # labels bought at a time, per task
N_LOOKS = 12  # times that accuracy is measured in a replay, and at the end
POINTS = (0.3, 0.5, 0.7, 1.0)  # shares of all labels at which accuracy is compared
DEPENDENCE = 0.1  # of workers, about that of most sets; to measure it takes most of the time
AS_GOOD = 0.005  # a difference in accuracy that is none


class Way(BaseEstimator):
    """How labels are bought: by a policy, with workers who are chosen or come at random."""

    def __init__(self, policy: Policy | None = None, by_worker: bool = True) -> None:
        self.policy, self.by_worker = policy, by_worker


WAYS = {
    "default, workers chosen": Way(),
    "fewest labels, workers chosen": Way(FewestLabels()),
    "default": Way(by_worker=False),
    "fewest labels": Way(FewestLabels(), by_worker=False),
}
ALIKE = "fewest labels"


@dataclass(frozen=True, eq=False)
class Played:
    """Labels to be played back, and the truth of every task."""

    name: str
    annotations: Annotations
    truth: pd.Series


def load(name: str, seed: int, most: int = MOST_TASKS) -> Played:
    """The tasks of a crowd that have a truth, at most so many of them."""
    votes, truth = read(name)
    truth = truth[truth.isin(votes.classes)]
    tasks = votes.tasks[np.isin(votes.tasks, truth.index)]
    chosen = np.random.RandomState(seed).permutation(len(tasks))[:most]
    votes = with_tasks(votes, tasks[np.sort(chosen)]).nonempty().without_repeats("last")
    return Played(name, votes, truth.loc[votes.tasks])


def read(name: str) -> tuple[Annotations, pd.Series]:
    """All labels of a crowd, and the truths that are known."""
    if name in PANELS:
        cut, least = PANELS[name]
        votes, scores = read_panel(name, cut, scores=False)
        return votes, pd.Series((scores > least).astype(int), index=votes.tasks)
    whole = crowd(name)
    assert whole.truth is not None
    return whole.annotations, whole.truth


def make(way: Way, _column: str) -> Way:
    return way


def play(way: Way, data: Played, seed: int) -> dict[str, float]:
    """Accuracy after shares of all labels; labels that uniform redundancy's accuracy takes."""
    alike = uniform(data.name, seed)
    course = follow(way, data, seed) if way.policy is None or way.by_worker else alike
    return compare(course, alike)


def compare(course: pd.Series, other: pd.Series) -> dict[str, float]:
    """Accuracy after shares of all labels; labels that the other course's accuracy takes."""
    first, last = float(other.index[0]), float(other.index[-1])
    spent = first + np.array(POINTS) * (last - first)
    found = np.interp(spent, course.index, course)
    goals = np.interp(spent, other.index, rising(other)) - AS_GOOD
    ratios = [labels_to_reach(course, goal) / labels_to_reach(other, goal) for goal in goals]
    at = {f"accuracy at {share:.0%}": value for share, value in zip(POINTS, found, strict=True)}
    gain = np.mean(found[:-1] - np.interp(spent[:-1], other.index, other))
    return {
        **at,
        "gain": float(gain),
        "labels": float(np.mean(ratios)),
        "labels for all": ratios[-1],
    }


@lru_cache(maxsize=64)
def uniform(name: str, seed: int) -> pd.Series:
    """The course of labeling all tasks alike."""
    return follow(WAYS[ALIKE], load(name, seed), seed)


class Frugal(Planner):
    """Plans like any other planner, but infers its answers only after some batches.

    The default plans by two quick models of independent workers; its answers take longer.
    """

    every, seen = 1, 0  # batches between two answers, and batches so far
    random_state = 0  # of the answers' bags

    def look(self, annotations: Annotations, gold: GoldLike = None) -> Frugal:
        seen = Outlook(annotations, np.zeros((0, 0)))
        self._ahead = self.outlook_ = seen.with_posterior(seen.independent)
        if self.seen % self.every == 0:
            self.outlook_ = seen.with_posterior(answer(annotations, self.random_state))
        self._soft, self._right = self.outlook_.posterior, None
        self.seen += 1
        return self


def answer(votes: Annotations, random_state: int = 0) -> Floats:
    """P(truth) as the planner's default infers it, but for how confident it is."""
    model = BayesBag(n_bags=N_BAGS, dependence=DEPENDENCE, random_state=random_state)
    return infer(model, votes, None)


def follow(way: Way, data: Played, seed: int) -> pd.Series:
    """Accuracy by the number of labels, the mean of several replays."""
    planners = [Frugal(policy=way.policy, target=1.0) for _ in range(N_ORDERS)]
    return play_back(
        planners, data.annotations, data.truth, seed, batch=BATCH, by_worker=way.by_worker
    )


def play_back(
    planners: Sequence[Frugal],
    votes: Annotations,
    truth: pd.Series,
    seed: int,
    *,
    batch: float,
    by_worker: bool,
    labeled: Names = (),
) -> pd.Series:
    """Accuracy by the number of labels, the mean of a replay by each planner."""
    at_last = np.mean([accuracy(votes, truth, bags) for bags in range(len(planners))])
    new = ~np.isin(votes.tasks, list(labeled))
    n_batches = (votes.redundancy[new] - 1).sum() / (batch * votes.n_tasks)
    courses = []
    for order, planner in enumerate(planners):
        planner.every, planner.random_state = max(math.ceil(n_batches / N_LOOKS), 1), order
        course = replay(
            votes,
            truth,
            planner,
            batch=batch,
            by_worker=by_worker,
            labeled=labeled,
            random_state=len(planners) * seed + order,
        )
        inferred = course[:-1][:: planner.every]
        courses.append(pd.concat([inferred, course[-1:].assign(accuracy=at_last)]))
    return mean_course(courses)


def accuracy(votes: Annotations, truth: pd.Series, random_state: int) -> float:
    """Share of right answers by all labels."""
    best = pd.Series(votes.classes[answer(votes, random_state).argmax(axis=1)], index=votes.tasks)
    return float((best.loc[truth.index].to_numpy() == truth.to_numpy()).mean())


def mean_course(courses: Sequence[pd.DataFrame]) -> pd.Series:
    """Mean accuracy by the number of labels of the first."""
    labels = courses[0]["labels"].to_numpy(dtype=np.float64)
    values = [np.interp(labels, course["labels"], course["accuracy"]) for course in courses]
    return pd.Series(np.mean(values, axis=0), index=labels)


def rising(course: pd.Series) -> Floats:
    """The course without its ups and downs: the nearest one that never falls."""
    smooth: Floats = IsotonicRegression().fit_transform(course.index, course)
    return smooth


def labels_to_reach(course: pd.Series, accuracy: float) -> float:
    """When the course is as accurate; between two batches, in proportion."""
    smooth, labels = rising(course), course.index.to_numpy()
    at = int(np.searchsorted(smooth, accuracy - 1e-9))
    if at == 0 or at == len(smooth):
        return float(labels[min(at, len(labels) - 1)])
    part = (accuracy - smooth[at - 1]) / max(smooth[at] - smooth[at - 1], 1e-12)
    return float(labels[at - 1] + part * (labels[at] - labels[at - 1]))


TABLE = Table(
    name="routing",
    title="How many labels a policy saves, by real crowds played back",
    source="Data sets as published; see the page on data sets.",
    about=(
        "Every task begins with one of its labels, at random; then a planner with its default "
        "settings asks for labels, half as many as there are tasks at a time, and gets some that "
        "were really given: by the workers it chooses among those who labeled the task, or by "
        "workers at random. "
        "Accuracy is that of all tasks (at most 400 of a set, drawn by the seed) once a share of "
        "the labels is bought, inferred about twelve times in a replay; a run is the mean of five "
        "replays, each with bags of its own. Labels: how many it takes to be as accurate, to "
        "within half a point, as labeling all tasks alike by anyone (fewest labels) is then, as a "
        "share of what that takes, the mean over the four points; below 1 "
        "labels are saved. Labels for all: the same for the accuracy that all labels reach. Gain: "
        "how much more accurate it is than labeling all tasks alike at 30%, 50% and 70% of the "
        "labels, on average; where accuracy hardly depends on their number, this says more."
    ),
    rows={
        name: Row(partial(make, way), not_blind=TRIED if way.policy is None else {})
        for name, way in WAYS.items()
    },
    columns={name: Column(partial(load, name), redrawn=True) for name in (*SETS, *PANELS)},
    measure=play,
    metrics=(*(f"accuracy at {share:.0%}" for share in POINTS), "gain"),
    losses=("labels", "labels for all"),
    overall=True,
    seeds=3,
    quick_seeds=1,
    quick_rows=("default, workers chosen", "fewest labels"),
    quick_columns=("bluebirds", "temp"),
)
