"""How often intervals of workers' accuracy cover the truth, in simulated crowds."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from crowdbench.table import Column, Row, Table
from crowdwise import aggregate
from crowdwise.annotations import Annotations
from crowdwise.evaluate import worker_quality
from crowdwise.inference.simplex import normalize
from crowdwise.typing import Floats, Ints

N_LABELS = 60  # of each worker, on average


class Simulated(NamedTuple):
    """Labels, the truth, and each worker's probability of being right."""

    annotations: Annotations
    accuracy: Floats  # (worker,)
    truth: Ints  # (task,)


def simulate(
    seed: int,
    *,
    n_workers: int,
    per_task: int,
    n_classes: int = 2,
    spread: float = 0.0,
    traps: float = 0.0,
) -> Simulated:
    """Workers who are right 55 to 95 % of the time, and more or less so on each class.

    Tasks differ in difficulty by ``spread``, the standard deviation of its logarithm, by which
    log-odds are divided; on ``traps``, a share of the tasks, all are wrong three times in four.
    """
    rng = np.random.default_rng(seed)
    n_tasks = n_workers * N_LABELS // per_task
    truth = rng.choice(n_classes, n_tasks, p=rng.dirichlet(np.full(n_classes, 5.0)))
    right = rng.uniform(0.55, 0.95, (n_workers, 1)) + rng.uniform(-0.1, 0.1, (n_workers, n_classes))
    odds = np.log(np.clip(right, 0.4, 0.98) / (1.0 - np.clip(right, 0.4, 0.98)))
    habit = normalize(rng.gamma(1.0, size=(n_workers, n_classes, n_classes)) + 1e-9)
    difficulty = np.exp(spread * rng.normal(size=n_tasks))
    chance = 1.0 / (1.0 + np.exp(-odds[:, truth].T / difficulty[:, None]))  # (task, worker)
    chance[rng.random(n_tasks) < traps] = 0.25
    worker = rng.random((n_tasks, n_workers)).argpartition(per_task - 1)[:, :per_task].ravel()
    task = np.repeat(np.arange(n_tasks), per_task)
    wrong = habit[worker, truth[task]]
    wrong[np.arange(len(task)), truth[task]] = 0.0
    level = np.cumsum(normalize(wrong), axis=1)
    other = np.minimum((rng.random(len(task))[:, None] > level).sum(axis=1), n_classes - 1)
    label = np.where(rng.random(len(task)) < chance[task, worker], truth[task], other)
    votes = Annotations.from_codes(
        task, worker, label, workers=np.arange(n_workers), classes=np.arange(n_classes)
    )
    return Simulated(votes, chance.mean(axis=0), truth)


def measure(model: Any, data: Simulated, seed: int) -> dict[str, float]:
    """Share of the workers whose interval holds their accuracy, and its mean width."""
    found = worker_quality(data.annotations, model, random_state=seed)
    low, high = found["accuracy_low"].to_numpy(), found["accuracy_high"].to_numpy()
    inside = (low <= data.accuracy) & (data.accuracy <= high)
    return {"coverage": float(inside.mean()), "width": float((high - low).mean())}


def column(about: str, **settings: Any) -> Column:
    return Column(partial(simulate, **settings), redrawn=True, about=about)


SIZES = ((5, 2, 2), (5, 5, 3), (20, 2, 2), (20, 3, 3), (100, 2, 2), (100, 5, 4), (500, 2, 2))
COLUMNS = {
    f"{n} workers, {r} labels per task": column(
        f"{k} classes", n_workers=n, per_task=r, n_classes=k
    )
    for n, r, k in SIZES
}
COLUMNS |= {
    f"{n} workers, {r} labels per task, {what}": column(about, n_workers=n, per_task=r, **how)
    for n, r in ((20, 3), (100, 5))
    for what, about, how in (
        ("uneven tasks", "difficulty varies: all err more on hard tasks", {"spread": 1.0}),
        ("5 % traps", "most are wrong together on one task in 20", {"traps": 0.05}),
        ("15 % traps", "most are wrong together on three tasks in 20", {"traps": 0.15}),
    )
}

TABLE = Table(
    name="coverage",
    title="How often intervals of workers' accuracy cover the truth",
    source="Simulated crowds, with 60 labels of each worker on average.",
    about=(
        "Nominal coverage is 0.95. A worker's true accuracy is the mean probability of being right "
        "over all tasks. Intervals are those of `crowdwise workers` with the posterior of the "
        "method."
    ),
    rows={"BayesBag": Row(lambda _: aggregate.BayesBag())},
    columns=COLUMNS,
    measure=measure,
    metrics=("coverage", "width"),
    seeds=20,
    quick_seeds=2,
    quick_columns=tuple(COLUMNS)[:3],
)
