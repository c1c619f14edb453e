"""How often intervals cover the truth in simulated crowds that `crowdwise bench coverage` lacks.

    python benchmarks/held_out_crowds.py

Workers of uneven diligence, other kinds of dependence, other sizes. Some were in view when the
belief about misled crowds was settled (crowdwise.evaluate.misled), the others were looked at
once, afterward. Writes benchmarks/results/held-out-crowds.{json,md}.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from results_files import provenance, save, table

from crowdbench.tables.coverage import Simulated, average_by_truth, measure
from crowdwise.aggregate import BayesBag
from crowdwise.annotations import Annotations
from crowdwise.inference.simplex import normalize
from crowdwise.typing import Floats

NAME, WORKERS = "held-out-crowds", 400  # workers of each kind, at least
METRICS = ("coverage", "width", "of classes", "of labels")
Range = tuple[float, float]


def simulate(
    seed: int,
    *,
    n_workers: int = 40,
    per_task: int = 4,
    n_classes: int = 2,
    right: Range = (0.55, 0.95),
    prior: tuple[float, ...] = (),
    uneven: float = 0.0,
    common: float = 0.0,
    misled: float = 0.0,
    family: int = 1,
    copied: float = 0.0,
    copiers: float = 1.0,
    confused: float = 0.0,
    diligence: float = 0.0,
    spammers: float = 0.0,
) -> Simulated:
    """Workers with 60 labels each on average, who err together in one way or another.

    Log-odds of being right are divided by ``exp(uneven * z)`` of the task and moved by ``common *
    z``; on a share ``misled`` of the tasks all give one wrong class, three times in four; members
    of a family give the answer of the first with probability ``copied`` (``copiers``: the share
    of workers in families); on a share ``confused`` of the tasks of the first class half of the
    labels are the second. Workers are drawn to tasks by ``rank ** -diligence``.
    """
    rng = np.random.default_rng(seed)
    n_tasks = n_workers * 60 // per_task
    shares = np.array(prior) if prior else rng.dirichlet(np.full(n_classes, 5.0))
    truth = rng.choice(n_classes, n_tasks, p=shares)
    slack = rng.uniform(-0.1, 0.1, (n_workers, n_classes))
    skill = np.clip(rng.uniform(*right, (n_workers, 1)) + slack, 0.3, 0.985)
    skill[: round(spammers * n_workers)] = 1.0 / n_classes
    odds = np.log(skill / (1.0 - skill))[:, truth].T  # (task, worker)
    odds /= np.exp(uneven * rng.normal(size=n_tasks))[:, None]
    chance = 1.0 / (1.0 + np.exp(-odds - common * rng.normal(size=n_tasks)[:, None]))
    same = np.eye(n_classes, dtype=bool)
    habit = normalize(
        np.where(same, 0.0, rng.gamma(1.0, size=(n_workers, n_classes, n_classes)) + 1e-9)
    )
    cells = habit[:, truth].swapaxes(0, 1) * (1.0 - chance[:, :, None])  # (task, worker, label)
    cells[np.arange(n_tasks), :, truth] = chance
    bad = np.flatnonzero(rng.random(n_tasks) < misled)
    cells[bad] = 0.0
    cells[bad, :, truth[bad]] = 0.25
    cells[bad, :, (truth[bad] + rng.integers(1, n_classes, len(bad))) % n_classes] = 0.75
    both = np.flatnonzero((truth == 0) & (rng.random(n_tasks) < confused))
    cells[both] *= 0.5
    cells[both, :, 1] += 0.5
    for first in range(0, int(copiers * n_workers) if copied else 0, family):
        answer = draw_labels(cells[:, first], rng)
        cells[:, first : first + family] *= 1.0 - copied
        cells[np.arange(n_tasks), first : first + family, answer] += copied
    load = rng.permutation((1.0 + np.arange(n_workers)) ** -diligence)
    late = rng.exponential(size=(n_tasks, n_workers)) / load
    worker = late.argpartition(per_task - 1, axis=1)[:, :per_task].ravel()
    task = np.repeat(np.arange(n_tasks), per_task)
    votes = Annotations.from_codes(
        task,
        worker,
        draw_labels(cells[task, worker], rng),
        tasks=np.arange(n_tasks),
        workers=np.arange(n_workers),
        classes=np.arange(n_classes),
    )
    accuracy = cells[np.arange(n_tasks), :, truth].mean(axis=0)
    idle = np.bincount(worker, minlength=n_workers) == 0
    matrices = average_by_truth(cells, truth)
    return Simulated(votes, np.where(idle, np.nan, accuracy), truth, shares, matrices)


def draw_labels(chance: Floats, rng: np.random.Generator) -> np.ndarray:
    level = np.cumsum(chance[:, :-1], axis=1)
    return (rng.random(len(chance))[:, None] > level).sum(axis=1)


def kind(**settings: object) -> Callable[[int], Simulated]:
    return partial(simulate, **settings)


IN_VIEW = {
    "diligence varies, 3 classes": kind(n_workers=60, per_task=3, n_classes=3, diligence=1.0),
    "the same, uneven tasks": kind(
        n_workers=60, per_task=3, n_classes=3, diligence=1.0, uneven=0.8
    ),
    "10 % misled to one class of three": kind(n_classes=3, misled=0.1),
    "a good crowd, 20 % misled": kind(right=(0.75, 0.98), misled=0.2),
    "a common effect of each task, 1": kind(common=1.0),
    "a common effect of each task, 2": kind(common=2.0),
    "families of 5 who copy half": kind(n_classes=3, family=5, copied=0.5),
    "a good crowd": kind(per_task=3, n_classes=3, right=(0.85, 0.98)),
    "a poor crowd": kind(per_task=5, right=(0.5, 0.75)),
}
ONCE = {
    "200 workers, diligence varies, uneven tasks, 5 classes": kind(
        n_workers=200, per_task=3, n_classes=5, diligence=0.7, uneven=0.5
    ),
    "families of 3 who copy .7, half of the workers": kind(
        n_workers=48, per_task=3, n_classes=3, family=3, copied=0.7, copiers=0.5
    ),
    "uneven, 8 % misled, 15 % spammers": kind(
        n_workers=60, per_task=5, uneven=0.6, misled=0.08, spammers=0.15
    ),
    "12 workers, 3 classes, one of 6 %": kind(
        n_workers=12, n_classes=3, right=(0.6, 0.95), prior=(0.06, 0.5, 0.44)
    ),
    "300 workers, 2 labels, a mediocre crowd": kind(n_workers=300, per_task=2, right=(0.55, 0.85)),
    "30 % of one class look like another": kind(
        n_workers=50, per_task=3, n_classes=4, right=(0.6, 0.95), confused=0.3
    ),
    "a common effect of each task, 1.5, 4 classes": kind(per_task=3, n_classes=4, common=1.5),
    "8 labels, 12 % misled to one class of four": kind(
        n_workers=24, per_task=8, n_classes=4, misled=0.12
    ),
    "7 workers, diligence varies, uneven tasks": kind(
        n_workers=7, per_task=3, diligence=0.5, uneven=0.7
    ),
}


def run(job: tuple[str, int]) -> tuple[str, dict[str, float]]:
    name, seed = job
    warnings.simplefilter("ignore")
    return name, measure(BayesBag(), (IN_VIEW | ONCE)[name](seed), seed)


def jobs(kinds: dict[str, Callable[[int], Simulated]]) -> list[tuple[str, int]]:
    """As many crowds of a kind as have the workers asked for."""
    sizes = {name: make(0).annotations.n_workers for name, make in kinds.items()}
    return [(name, seed) for name, size in sizes.items() for seed in range(-(-WORKERS // size))]


def lines(found: list[tuple[str, dict[str, float]]]) -> list[list[str]]:
    rows = []
    for name in dict.fromkeys(name for name, _ in found):
        own = np.array([[one[m] for m in METRICS] for other, one in found if other == name])
        error = own[:, 0].std(ddof=1) / np.sqrt(len(own))
        mean = [f"{value:.3f}" for value in own.mean(axis=0)]
        rows.append([name, str(len(own)), f"{mean[0]} ± {error:.3f}", *mean[1:]])
    return rows


def main() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        seen, once = (list(pool.map(run, jobs(kinds))) for kinds in (IN_VIEW, ONCE))
    head = ["crowd", "runs", *METRICS]
    text = "\n\n".join(
        [
            "# Coverage in crowds that the table of coverage lacks",
            "Simulated crowds with 60 labels of each worker on average and, unless said, 40 "
            "workers, 4 labels per task, 2 classes and workers who are right 55 to 95 % of the "
            "time. "
            "Nominal coverage is 0.95; columns are those of `crowdwise bench coverage`.",
            "In view when the belief about misled crowds was settled:",
            table(head, lines(seen)),
            "Looked at once, afterward:",
            table(head, lines(once)),
        ]
    )
    rows = [{"crowd": name, **own} for name, own in seen + once]
    save(NAME, provenance("python benchmarks/held_out_crowds.py"), rows, text)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
