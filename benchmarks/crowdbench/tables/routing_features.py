"""Whether a learner that knows who is good at what chooses better workers than plain skill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.base import BaseEstimator, clone

from crowdbench.sets import LearningSet, learning_set
from crowdbench.table import Column, Row, Table
from crowdbench.tables.routing import POINTS, Frugal, compare, play_back
from crowdwise.annotations import Annotations
from crowdwise.datasets.crowd import with_tasks
from crowdwise.learn import LIA, CrowdClassifier
from crowdwise.plan import FeatureSkills, PredictedSkills, Skills
from crowdwise.simulate import ModelWorker, class_features, simulate_crowd
from crowdwise.typing import Array, Floats

N_WORKERS, N_TASKS, N_TOPICS = 20, 400, 4  # of a simulated crowd
PER_TASK = 8
MOST_TASKS = 800  # of a real crowd
N_ORDERS = 2  # replays of a run, whose mean course is measured
BATCH = 0.25  # labels bought at a time, per task


@dataclass(frozen=True, eq=False)
class Pilot:
    """A crowd with features, of which some tasks have been labeled already."""

    X: Array  # a row for each task
    votes: Annotations
    truth: pd.Series  # of the other tasks alone
    labeled: Array  # (task,): whether it has been


class Choice(BaseEstimator):
    """How workers are chosen: at random, by plain skill, by features, or by a learner."""

    def __init__(
        self,
        learner: CrowdClassifier | None = None,
        by_features: bool = False,
        by_worker: bool = True,
    ) -> None:
        self.learner, self.by_features, self.by_worker = learner, by_features, by_worker

    @property
    def is_plain(self) -> bool:
        """Whether workers are chosen by plain skill."""
        return self.learner is None and not self.by_features and self.by_worker

    def skills(self, data: Pilot) -> Skills | None:
        """What the planner is given, once the learner knows the pilot."""
        if self.by_features:
            return FeatureSkills(data.X)
        if self.learner is None:
            return None
        self.learner.fit(data.X, data.votes.filter(data.labeled[data.votes.task]))
        return PredictedSkills(self.learner, data.X)


SIMULATED = ("specialists", "by degrees", "alike")


def specialists(topic: Floats, rng: np.random.RandomState) -> Floats:
    """Workers who know one of four topics well, and the others hardly; (task, worker)."""
    nearest, own = topic.argmax(axis=1), rng.randint(N_TOPICS, size=N_WORKERS)
    return np.where(nearest[:, None] == own, 0.95, 0.6)


def by_degrees(topic: Floats, rng: np.random.RandomState) -> Floats:
    """Workers with leanings of their own, from barely better than chance to nearly perfect."""
    odds = topic @ rng.standard_normal((N_TOPICS, N_WORKERS)) - 0.5
    return 0.5 + 0.5 * expit(odds)


def alike(topic: Floats, rng: np.random.RandomState) -> Floats:
    """Workers who are as good at one task as at another."""
    return np.broadcast_to(rng.uniform(0.55, 0.95, N_WORKERS), (len(topic), N_WORKERS))


def simulated(right: Callable[[Floats, np.random.RandomState], Floats], seed: int) -> Pilot:
    """Two classes and tasks of four topics; features show both, with some noise."""
    rng = np.random.RandomState(seed)
    truth, spread = rng.randint(2, size=N_TASKS), rng.standard_normal((N_TASKS, N_TOPICS))
    topic = 2.0 * np.eye(N_TOPICS)[rng.randint(N_TOPICS, size=N_TASKS)] + 0.5 * spread
    X = np.hstack([class_features(truth, 6, random_state=rng), topic])
    X[:, -N_TOPICS:] += 0.3 * rng.standard_normal(topic.shape)
    shares, hit = right(topic, rng), np.eye(2)[truth]
    workers = [ModelWorker(p * hit + (1 - p) * (1 - hit), truth) for p in shares.T[:, :, None]]
    votes = simulate_crowd(
        workers=workers, truth=truth, n_classes=2, per_task=PER_TASK, random_state=rng
    ).annotations
    return halve(X, votes, pd.Series(votes.classes[truth], index=votes.tasks), rng)


def real(name: str, features: str, seed: int) -> Pilot:
    """The tasks of a set that have a label and a truth, at most so many of them."""
    data, rng = whole(name, features), np.random.RandomState(seed)
    known = np.isin(data.annotations.tasks, data.truth.index)
    fit = np.flatnonzero(known & (data.annotations.redundancy > 0))
    rows = np.sort(rng.permutation(fit)[:MOST_TASKS])
    votes = with_tasks(data.annotations, data.annotations.tasks[rows]).without_repeats("last")
    return halve(data.X[rows], votes, data.truth.loc[votes.tasks], rng)


@lru_cache(maxsize=2)
def whole(name: str, features: str) -> LearningSet:
    return learning_set(name, features=features, cut=False)


def halve(X: Array, votes: Annotations, truth: pd.Series, rng: np.random.RandomState) -> Pilot:
    labeled = rng.permutation(votes.n_tasks) < votes.n_tasks // 2
    return Pilot(X, votes, truth[~labeled], labeled)


def make(choice: Choice, _column: str) -> Choice:
    return clone(choice)


def play(choice: Choice, data: Pilot, seed: int) -> dict[str, float]:
    """How well the tasks that are new are labeled, against choosing workers by plain skill."""
    plain = by_plain_skill(data, seed)
    return compare(plain if choice.is_plain else follow(choice, data, seed), plain)


@lru_cache(maxsize=2)
def by_plain_skill(data: Pilot, seed: int) -> pd.Series:
    """The course of choosing workers by plain skill."""
    return follow(Choice(), data, seed)


def follow(choice: Choice, data: Pilot, seed: int) -> pd.Series:
    """Accuracy of the new tasks by the number of their labels, the mean of several replays."""
    skills, labeled = choice.skills(data), data.votes.tasks[data.labeled]
    course = play_back(
        [Frugal(target=1.0, skills=skills) for _ in range(N_ORDERS)],
        data.votes,
        data.truth,
        seed,
        batch=BATCH,
        by_worker=choice.by_worker,
        labeled=labeled,
    )
    return course.set_axis(course.index - data.votes.redundancy[data.labeled].sum())


SEEN = "how often the best worker was right was seen, on two seeds of all of these"
TABLE = Table(
    name="routing-features",
    title="Whether a learner that knows who is good at what chooses better workers",
    source="Data sets as published; see the page on data sets.",
    about=(
        "Half of the tasks, drawn by the seed, are a pilot and have all their labels. Learners "
        "are fitted to these, once. Of the other tasks each begins with one of its labels, and a "
        "planner with its default settings asks for more, as in `routing`: by workers who are "
        "chosen by plain skill, by features and all labels so far (`FeatureSkills`), by what the "
        "learner predicts of the task's features (`PredictedSkills`), or who come at random. All "
        "see the labels of the pilot, and accuracy is that of the other tasks, the mean of two "
        "replays. Labels: how many of them it takes to be as accurate, to within half a point, as"
        " with plain skill, as a share of what that takes; below 1 the learner chooses better. "
        "Gain: how much more accurate it is than with plain skill at 30%, 50% and 70% of the "
        "labels, on average. Simulated are 20 workers, two classes, ten features and 400 tasks "
        "with eight labels each. Specialists: each worker is right on 95% of one of four topics "
        "and on 60% of the others. By degrees: competence follows a direction in the features, "
        "another one for each worker. Alike: workers are equally good at all tasks. Real sets: at"
        " most 800 tasks."
    ),
    rows={
        "workers at random": Row(partial(make, Choice(by_worker=False))),
        "plain skill": Row(partial(make, Choice())),
        "by features": Row(partial(make, Choice(by_features=True)), not_blind=SEEN),
        "LIA": Row(partial(make, Choice(LIA()))),
        "LIA with 4 slots": Row(partial(make, Choice(LIA(n_slots=4))), columns=SIMULATED),
    },
    columns={
        "specialists": Column(partial(simulated, specialists), redrawn=True),
        "by degrees": Column(partial(simulated, by_degrees), redrawn=True),
        "alike": Column(partial(simulated, alike), redrawn=True),
        "mgc": Column(partial(real, "mgc", "published"), redrawn=True),
        "medical_treats": Column(partial(real, "medical_treats", "stored"), redrawn=True),
        "bluebirds": Column(partial(real, "bluebirds", "stored"), redrawn=True),
    },
    measure=play,
    metrics=(*(f"accuracy at {share:.0%}" for share in POINTS), "gain"),
    losses=("labels", "labels for all"),
    seeds=3,
    quick_seeds=1,
    quick_rows=("plain skill", "by features"),
    quick_columns=("specialists",),
)
