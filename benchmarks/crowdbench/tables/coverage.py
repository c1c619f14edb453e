"""How often intervals cover the truth, in simulated crowds."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crowdbench.table import Column, Row, Table
from crowdwise import aggregate
from crowdwise.annotations import Annotations
from crowdwise.evaluate import uncertainty
from crowdwise.inference.simplex import normalize
from crowdwise.typing import Floats, Ints

N_LABELS = 60  # of each worker, on average


class Simulated(NamedTuple):
    """Labels, the truth, and what there is to find out."""

    annotations: Annotations
    accuracy: Floats  # (worker,): the probability of being right
    truth: Ints  # (task,)
    prior: Floats  # (class,): the probability of each class
    confusion: Floats  # (worker, truth, label): NaN where there is no task of a class


def simulate(
    seed: int,
    *,
    n_workers: int,
    per_task: int,
    n_classes: int = 2,
    spread: float = 0.0,
    traps: float = 0.0,
    rare: float | None = None,
    spammers: float = 0.0,
    clique: float = 0.0,
) -> Simulated:
    """Workers who are right 55 to 95 % of the time, and more or less so on each class.

    Tasks differ in difficulty by ``spread``, the standard deviation of its logarithm, by which
    log-odds are divided; on ``traps``, a share of the tasks, all are wrong three times in four.
    ``rare`` is the share of the first class, ``spammers`` that of workers who toss a coin, and
    ``clique`` that of workers who give, seven times in ten, the answer that they agreed upon.
    """
    rng = np.random.default_rng(seed)
    n_tasks = n_workers * N_LABELS // per_task
    prior = rng.dirichlet(np.full(n_classes, 5.0))
    if rare is not None:
        prior = np.append(rare, np.full(n_classes - 1, (1.0 - rare) / (n_classes - 1)))
    truth = rng.choice(n_classes, n_tasks, p=prior)
    right = rng.uniform(0.55, 0.95, (n_workers, 1)) + rng.uniform(-0.1, 0.1, (n_workers, n_classes))
    odds = np.log(np.clip(right, 0.4, 0.98) / (1.0 - np.clip(right, 0.4, 0.98)))
    odds[: round(spammers * n_workers)] = np.log(1.0 / (n_classes - 1))
    habit = normalize(rng.gamma(1.0, size=(n_workers, n_classes, n_classes)) + 1e-9)
    habit[:, np.eye(n_classes, dtype=bool)] = 0.0
    habit = normalize(habit)
    difficulty = np.exp(spread * rng.normal(size=n_tasks))
    chance = 1.0 / (1.0 + np.exp(-odds[:, truth].T / difficulty[:, None]))  # (task, worker)
    chance[rng.random(n_tasks) < traps] = 0.25
    table = habit[:, truth].swapaxes(0, 1) * (1.0 - chance[:, :, None])  # (task, worker, label)
    table[np.arange(n_tasks), :, truth] = chance
    if clique:
        agree_upon(table, round(clique * n_workers), rng)
    worker = rng.random((n_tasks, n_workers)).argpartition(per_task - 1)[:, :per_task].ravel()
    task = np.repeat(np.arange(n_tasks), per_task)
    level = np.cumsum(table[task, worker], axis=1)
    label = np.minimum((rng.random(len(task))[:, None] > level).sum(axis=1), n_classes - 1)
    votes = Annotations.from_codes(
        task,
        worker,
        label,
        tasks=np.arange(n_tasks),
        workers=np.arange(n_workers),
        classes=np.arange(n_classes),
    )
    accuracy = table[np.arange(n_tasks), :, truth].mean(axis=0)
    return Simulated(votes, accuracy, truth, prior, average_by_truth(table, truth))


def agree_upon(table: Floats, size: int, rng: np.random.Generator) -> None:
    """Let the first workers share most of their answers, those of the first of them."""
    level = np.cumsum(table[:, 0], axis=1)
    answer = np.minimum((rng.random(len(table))[:, None] > level).sum(axis=1), table.shape[2] - 1)
    table[:, :size] *= 0.3
    table[np.arange(len(table)), :size, answer] += 0.7


def average_by_truth(table: Floats, truth: Ints) -> Floats:
    """P(label | truth) of each worker over all tasks of a class."""
    n_classes = table.shape[2]
    mean = np.full((table.shape[1], n_classes, n_classes), np.nan)
    for k in np.unique(truth):
        mean[:, k] = table[truth == k].mean(axis=0)
    return mean


def measure(model: Any, data: Simulated, seed: int) -> dict[str, float]:
    """Share of the intervals that hold what is true, and how wide those of workers are."""
    votes, truth = data.annotations, data.truth
    model.fit(votes)
    found = uncertainty(votes, model, confusion=True, random_state=seed)
    right = float(np.mean(model.posterior_.argmax(axis=1) == truth))
    assert found.confusion is not None
    return {
        "coverage": share_held(found.workers, data.accuracy),
        "width": float((found.workers["high"] - found.workers["low"]).mean()),
        "of entries": share_held(found.confusion, data.confusion.reshape(-1)),
        "of classes": share_held(found.shares, data.prior),
        "of labels": float(found.accuracy.low <= right <= found.accuracy.high),
    }


def share_held(bounds: pd.DataFrame, truth: Floats) -> float:
    known = np.isfinite(truth)
    inside = (bounds["low"].to_numpy() <= truth) & (truth <= bounds["high"].to_numpy())
    return float(inside[known].mean())


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

COLUMNS |= {
    f"{settings['n_workers']} workers, {settings['per_task']} labels per task, {what}": column(
        about, **settings
    )
    for what, about, settings in (
        ("all by all", "2 classes", {"n_workers": 10, "per_task": 10}),
        ("10 classes", "10 classes", {"n_workers": 50, "per_task": 3, "n_classes": 10}),
        (
            "a rare class",
            "3 classes, one of them 5 % of the tasks",
            {"n_workers": 40, "per_task": 3, "n_classes": 3, "rare": 0.05},
        ),
        (
            "a third spammers",
            "a third of the workers toss a coin",
            {"n_workers": 60, "per_task": 4, "spammers": 1 / 3},
        ),
        (
            "a clique",
            "a fifth of the workers mostly give an answer that they agreed upon",
            {"n_workers": 30, "per_task": 4, "clique": 0.2},
        ),
        (
            "a large clique",
            "half of the workers mostly give an answer that they agreed upon",
            {"n_workers": 30, "per_task": 4, "clique": 0.5},
        ),
    )
}

TABLE = Table(
    name="coverage",
    title="How often intervals cover the truth",
    source="Simulated crowds, with 60 labels of each worker on average.",
    about=(
        "Nominal coverage is 0.95: of workers' accuracy, the mean probability of being right over "
        "all tasks; of the entries of their confusion matrices; of class shares; and of the share "
        "of inferred labels that are right. Intervals are those of `evaluate.uncertainty`, those "
        "of workers also of `crowdwise workers`. What is bounded is what more such tasks would "
        "show, not the tasks at hand. Nothing in the labels shows that a crowd is misled on some "
        "tasks; how many that may be is a belief (see `uncertainty`), so intervals are a little "
        "wider than needed where it is misled on few, and too narrow where it is misled on more, "
        "or where half of the workers agreed upon answers. The belief was settled with such "
        "simulated crowds in view; `python benchmarks/held_out_crowds.py` has some that were "
        "looked at once, after it was settled."
    ),
    rows={"BayesBag": Row(lambda _: aggregate.BayesBag())},
    columns=COLUMNS,
    measure=measure,
    metrics=("coverage", "width", "of entries", "of classes", "of labels"),
    seeds=80,
    quick_seeds=2,
    quick_columns=tuple(COLUMNS)[:3],
)
