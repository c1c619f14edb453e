"""The data of the table of defaults: real crowds with features, and simulated ones."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from crowdbench.sets import PLACE, LearningSet, crowd, learning_set, stored_features
from crowdbench.table import Column
from crowdwise.errors import plural
from crowdwise.simulate import label_by_crowd
from crowdwise.typing import Array, Ints

REAL = {  # and whose features they are
    "hotel": "published",
    "labelme": "published",
    "mgc": "published",
    "spc": "stored",
    "bluebirds": "stored",
    "rte": "stored",
    "wordsim": "stored",
    "medical_causes": "stored",
    "medical_treats": "stored",
    "classroom_on_task": "stored",
}
FEW_LABELS = (1, 2)
TEST_SHARE = 0.4  # of the tasks with a truth, where a set has no split of its own
SIMULATED = ("usps", "gsad", "mnist49")
RATIOS = (1, 10)  # of the most frequent class to the rarest
REDUNDANCIES = (1, 2, 5)
N_TRAIN, N_TEST, N_WORKERS = 600, 1000, 15


def columns() -> dict[str, Column]:
    """All of them, by name."""
    found = {}
    for name in REAL:
        found[name] = Column(partial(real, name, None), redrawn=not has_split(name))
        for n_labels in FEW_LABELS:
            title = f"{name}, {plural(n_labels, 'label')}"
            found[title] = Column(partial(real, name, n_labels), redrawn=True)
    for name in SIMULATED:
        for ratio in RATIOS:
            for n_labels in REDUNDANCIES:
                title = f"{name} 1:{ratio}, {plural(n_labels, 'label')}"
                found[title] = Column(partial(simulated, name, ratio, n_labels), redrawn=True)
    return found


def has_split(name: str) -> bool:
    """Whether a set comes with a test part."""
    return name in {"hotel", "labelme", "mgc", "spc", "medical_treats", "classroom_on_task"}


def real(name: str, n_labels: int | None, seed: int) -> LearningSet:
    """A real crowd, with at most ``n_labels`` random labels of every task."""
    data = learning_set(name, features=REAL[name])
    if data.X_test is None:
        data = cut(data, seed)
    if n_labels is None:
        return data
    return replace(data, annotations=data.annotations.subsample(n_labels, random_state=seed))


def cut(data: LearningSet, seed: int) -> LearningSet:
    """Some tasks with a truth become the test part, without their labels."""
    tasks = data.annotations.tasks
    known = np.flatnonzero(np.isin(tasks, data.truth.index))
    rng = np.random.RandomState(seed)
    test = np.sort(rng.choice(known, int(TEST_SHARE * len(known)), replace=False))
    train = np.setdiff1d(np.arange(len(tasks)), test)
    return replace(
        data,
        X=data.X[train],
        annotations=data.annotations[train],
        truth=data.truth.drop(tasks[test]),
        X_test=data.X[test],
        y_test=data.truth.loc[tasks[test]].to_numpy(),
    )


def simulated(
    name: str, ratio: float, n_labels: int, seed: int, n_workers: int = N_WORKERS
) -> LearningSet:
    """Real features, labeled by workers with confusion matrices of their own.

    Class sizes fall evenly on a log scale from the most frequent class to the rarest, in the
    test part too. A worker is right on half to four fifths of each class, and errs with habits.
    """
    X, names = described(name)
    rng = np.random.RandomState(seed)
    classes, truth = np.unique(names, return_inverse=True)
    row = draw_rows(truth, ratio, N_TRAIN + N_TEST, rng)
    train, test = row[:N_TRAIN], row[N_TRAIN:]
    right = rng.uniform(0.5, 0.8, (n_workers, len(classes), 1))
    habits = rng.dirichlet(np.ones(len(classes)), (n_workers, len(classes)))
    habits = np.where(np.eye(len(classes), dtype=bool), 0.0, habits)
    confusion = np.eye(len(classes)) * right + (1.0 - right) * habits / habits.sum(2, keepdims=True)
    votes = label_by_crowd(truth[train], confusion, n_labels, random_state=rng)
    return LearningSet(
        name, X[train], votes, pd.Series(truth[train], index=votes.tasks), X[test], truth[test]
    )


@lru_cache(maxsize=3)
def described(name: str) -> tuple[Array, Array]:
    """Features and truths of a set without labels; from the folder of features, if there."""
    file = Path(os.environ.get(PLACE, ".")) / name / "truth.csv"
    if file.exists():
        X, tasks = stored_features(name)
        truth = pd.read_csv(file, dtype=str).set_index("task")["label"]
        return X, truth.loc[tasks].to_numpy()
    whole = crowd(name)
    assert whole.X is not None
    assert whole.truth is not None
    return whole.X.astype(np.float32), whole.truth.loc[whole.X_tasks].to_numpy()


def draw_rows(truth: Ints, ratio: float, size: int, rng: np.random.RandomState) -> Ints:
    """Rows in random order, with classes from frequent to rare in a random order."""
    n_classes = truth.max() + 1
    share = ratio ** -np.linspace(0.0, 1.0, n_classes)
    share = rng.permutation(share / share.sum())
    parts = [
        rng.choice(np.flatnonzero(truth == k), round(size * share[k]), replace=False)
        for k in range(n_classes)
    ]
    return rng.permutation(np.concatenate(parts))[:size]
