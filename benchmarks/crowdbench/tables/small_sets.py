"""The learner to start with, where there are 30 to 240 tasks to learn from."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from sklearn import datasets

from crowdbench.sets import LearningSet, learning_set
from crowdbench.table import Column, Row, Table
from crowdbench.tables._defaults import REAL, SIMULATED, described
from crowdbench.tables.defaults import BASELINES, START, baseline, learner, measure
from crowdwise.annotations import Annotations
from crowdwise.simulate import label_by_crowd
from crowdwise.typing import Array, Floats

SIZES = (30, 60, 120, 240)
CROWDS = tuple(name for name in REAL if name != "wordsim")  # which has 30 tasks in all
TABLES = {
    "digits": datasets.load_digits,
    "breast cancer": datasets.load_breast_cancer,
    "wine": datasets.load_wine,
    "iris": datasets.load_iris,
}
SOURCES = (*CROWDS, *TABLES, *SIMULATED)
FIRST = 5000  # seeds that no other table draws with
MOST_TRAINED, MOST_TESTED = 0.6, 1000  # share of the tasks, and tasks
USELESS = 0.15  # how often features of a simulated crowd say nothing
N_DRAWS = 6 * len(SOURCES)
SEEN = "how plain regressions count beside it was settled on other draws of the same sets."


def draw(size: int, seed: int) -> LearningSet:
    """Some tasks of a set, with some or all of their labels; all others are the test part."""
    name = SOURCES[seed % len(SOURCES)]
    rng = np.random.RandomState(FIRST + 1000 * size + seed)
    if name in CROWDS:
        X, truth, votes = labeled(name)
    else:
        X, truth = TABLES[name](return_X_y=True) if name in TABLES else described(name)
        X, truth, votes = X.astype(np.float32), np.unique(truth, return_inverse=True)[1], None
    order = rng.permutation(len(X))
    size = min(size, int(MOST_TRAINED * len(X)))
    train, test = order[:size], order[size:][:MOST_TESTED]
    part = votes[train] if votes else simulated(truth[train], truth.max() + 1, rng)
    n_labels = rng.choice([1, 2, 3, 5, 0])
    if votes and n_labels:
        part = part.subsample(int(n_labels), random_state=rng.randint(2**31 - 1))
    useless = votes is None and rng.rand() < USELESS
    rows = X[rng.permutation(train)] if useless else X[train]
    known = pd.Series(truth[train], index=part.tasks)
    return LearningSet(name, rows, part, known, X[test], truth[test])


def labeled(name: str) -> tuple[Array, Array, Annotations]:
    """Features, truths and labels of the tasks that have all of them."""
    whole = learning_set(name, features=REAL[name], cut=False)
    known = np.isin(whole.annotations.tasks, whole.truth.index)
    votes = whole.annotations[known]
    with_labels = votes.redundancy > 0
    votes = votes[with_labels]
    return whole.X[known][with_labels], whole.truth.loc[votes.tasks].to_numpy(), votes


def simulated(truth: Array, n_classes: int, rng: np.random.RandomState) -> Annotations:
    """Labels by 3 to 40 workers of any skill, better than chance, who err with habits."""
    n_workers, least = int(rng.choice([3, 5, 15, 40])), rng.choice([0.35, 0.5, 0.65])
    right = rng.uniform(least, min(least + 0.35, 0.95), (n_workers, n_classes, 1))
    confusion = confuse(np.maximum(right, 1.0 / n_classes + 0.03), rng)
    n_labels = min(int(rng.choice([1, 2, 3, 5])), n_workers)
    return label_by_crowd(truth, confusion, n_labels, random_state=rng)


def confuse(right: Floats, rng: np.random.RandomState) -> Floats:
    """Confusion matrices with these diagonals, (worker, truth, 1), and random habits beside."""
    n_workers, n_classes, _ = right.shape
    diagonal = np.eye(n_classes)
    habits = rng.dirichlet(np.ones(n_classes), (n_workers, n_classes)) * (1.0 - diagonal)
    return diagonal * right + (1.0 - right) * habits / habits.sum(axis=2, keepdims=True)


TABLE = Table(
    name="small-sets",
    title=f"{START} with its defaults, where there are few tasks",
    source="Our own: small random parts of real crowds, and of sets with simulated crowds.",
    about=(
        f"Each run draws its tasks anew, from {len(SOURCES)} sets by turns, with 1, 2, 3, 5 or all "
        "labels a task. Simulated crowds have 3 to 40 workers of any skill better than chance, and "
        "features that say nothing in 15 of 100 draws. Paired differences are to each baseline on "
        "the same draws; no baseline is the best of them on all."
    ),
    rows={
        **{title: Row(baseline(targets)) for title, targets in BASELINES.items()},
        START: Row(learner(START), not_blind=SEEN),
    },
    columns={f"{size} tasks": Column(partial(draw, size), redrawn=True) for size in SIZES},
    measure=measure,
    metrics=("accuracy", "balanced accuracy"),
    losses=("log loss",),
    pairs=[(START, title) for title in BASELINES],
    seeds=N_DRAWS,
    quick_seeds=len(SOURCES),
    quick_columns=("60 tasks",),
    overall=True,
)
