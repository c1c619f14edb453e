"""The default answer on simulated crowds of odd shapes, beside single methods.

    python benchmarks/odd_crowds.py

Mean accuracy and log loss over some seeds: few workers, single labels, many classes, rare ones,
adversaries, tasks on which all err together.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping

import numpy as np
from results_files import provenance, save, table

from crowdwise import Annotations
from crowdwise.aggregate import IBCC, BayesBag, DawidSkene, MajorityVote
from crowdwise.base import Aggregator
from crowdwise.evaluate.scores import log_loss
from crowdwise.inference.posteriors import share_right
from crowdwise.typing import Floats, Ints

SEEDS = 5
METHODS = (BayesBag, MajorityVote, DawidSkene, IBCC)


def draw(
    seed: int,
    n_tasks: int,
    right: Floats,
    per_task: int,
    prior: Floats | None = None,
    n_classes: int = 2,
    traps: float = 0.0,
) -> tuple[Annotations, Ints]:
    """Workers who are right with a probability each, and else give any other class.

    On ``traps``, a share of the tasks, everybody is right one time in four.
    """
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n_tasks, p=prior)
    chance = np.tile(right, (n_tasks, 1))
    chance[rng.random(n_tasks) < traps] = 0.25
    worker = rng.random(chance.shape).argsort(axis=1)[:, :per_task].ravel()
    task = np.repeat(np.arange(n_tasks), per_task)
    other = (truth[task] + rng.integers(1, n_classes, len(task))) % n_classes
    label = np.where(rng.random(len(task)) < chance[task, worker], truth[task], other)
    votes = Annotations.from_codes(
        task, worker, label, workers=np.arange(len(right)), classes=np.arange(n_classes)
    )
    return votes, truth


def spread(low: float, high: float, n: int) -> Floats:
    return np.linspace(low, high, n)


CROWDS: Mapping[str, tuple[object, ...]] = {
    "2 workers, one better": (300, np.array([0.9, 0.65]), 2),
    "3 workers": (300, np.array([0.9, 0.75, 0.6]), 3),
    "one label per task": (600, spread(0.55, 0.95, 20), 1),
    "10 tasks": (10, spread(0.6, 0.9, 7), 5),
    "5 labels per worker": (200, spread(0.5, 0.95, 120), 3),
    "30 classes": (500, spread(0.3, 0.9, 30), 5, None, 30),
    "2 % of one class": (1000, spread(0.8, 0.97, 20), 5, np.array([0.98, 0.02])),
    "5 classes, very uneven": (800, spread(0.5, 0.9, 25), 4, np.array([80, 12, 5, 2, 1]) / 100, 5),
    "3 of 10 lie": (400, np.r_[np.full(3, 0.1), spread(0.7, 0.9, 7)], 5),
    "60 % answer at random": (500, np.r_[np.full(18, 0.5), spread(0.7, 0.95, 12)], 7),
    "40 labels per task": (150, spread(0.55, 0.75, 40), 40),
    "15 % traps": (500, spread(0.65, 0.95, 20), 8, None, 2, 0.15),
}


def measure(method: type[Aggregator], crowd: tuple[object, ...]) -> tuple[float, float]:
    """Mean accuracy and log loss over the seeds."""
    found = []
    for seed in range(SEEDS):
        votes, truth = draw(seed, *crowd)
        posterior = method().fit(votes).posterior_
        found.append([share_right(posterior, truth).mean(), log_loss(posterior, truth)])
    accuracy, loss = np.mean(found, axis=0)
    return float(accuracy), float(loss)


def main() -> None:
    warnings.simplefilter("ignore")
    rows, lines = [], []
    for name, crowd in CROWDS.items():
        scores = {method.__name__: measure(method, crowd) for method in METHODS}
        rows.append({"crowd": name, **scores})
        lines.append([name, *(f"{a:.3f} ({loss:.2f})" for a, loss in scores.values())])
    head = ["crowd", *(method.__name__ for method in METHODS)]
    text = f"# Crowds of odd shapes\n\nMean accuracy (log loss) over {SEEDS} simulated crowds.\n\n"
    text += table(head, lines)
    sys.stdout.write(text + "\n")
    save("odd-crowds", provenance("python benchmarks/odd_crowds.py"), rows, text)


if __name__ == "__main__":
    main()
