"""Where each method breaks down as one class gets rarer: all aggregators, and ICED."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import IO, Any

import numpy as np
import pandas as pd

from crowdbench.plain import without_search
from crowdbench.sets import LearningSet
from crowdbench.table import Column, Row, Table
from crowdbench.tables._iced import SEEN, Rebalanced, iced, of_training_truths
from crowdwise import aggregate
from crowdwise.aggregate import IBCC, DawidSkene
from crowdwise.simulate import label_by_crowd

N_TASKS, N_WORKERS, PER_TASK, N_FEATURES = 1020, 15, 5, 10
RATIOS = (1, 2, 5, 10, 20, 50)


def draw(ratio: int, seed: int) -> LearningSet:
    """Two overlapping clouds; workers with an accuracy from 0.5 to 0.9 for either class."""
    rng = np.random.RandomState(seed)
    truth = rng.permutation(np.arange(N_TASKS) < N_TASKS // (ratio + 1)).astype(np.int64)
    X = rng.normal(size=(N_TASKS, N_FEATURES)) + 0.8 * truth[:, None]
    right = rng.uniform(0.5, 0.9, size=(N_WORKERS, 2))[:, :, None]
    confusion = np.where(np.eye(2, dtype=bool), right, 1.0 - right)
    votes = label_by_crowd(truth, confusion, PER_TASK, random_state=rng)
    return LearningSet(f"1:{ratio}", X, votes, pd.Series(truth, index=votes.tasks))


def plain(name: str) -> Callable[[str], Any]:
    """An aggregator with its default settings."""
    return lambda _: getattr(aggregate, name)()


def figure(summary: Any, file: IO[bytes]) -> None:
    """Balanced accuracy by imbalance: a line per method, the well-known ones in color."""
    from matplotlib.figure import Figure

    shown = summary[summary["metric"] == "balanced accuracy"]
    picture = Figure(figsize=(8, 5), layout="constrained")
    axes = picture.add_subplot()
    bold = ("MajorityVote", "DawidSkene", "HardDawidSkene", "IBCC", "GLAD", "KOS", *ICED_ROWS)
    for name, own in shown.groupby("row", sort=False):
        lines = own.set_index("column")["mean"].reindex([f"1:{r}" for r in RATIOS])
        if name in bold:
            wide = 2.5 if name in ICED_ROWS else 1.5
            axes.plot(lines.index, lines, label=name, linewidth=wide, marker="o", markersize=3)
        else:
            axes.plot(lines.index, lines, color="0.8", linewidth=1, zorder=0)
    axes.axhline(0.5, color="0.5", linestyle=":", linewidth=1)
    axes.set_xlabel("rare class to frequent class")
    axes.set_ylabel("balanced accuracy of inferred truths")
    axes.legend(fontsize="small", loc="lower left")
    picture.savefig(file, format="svg")


ICED_ROWS = {
    "ICED": Row(lambda _: iced(), not_blind=SEEN),
    "ICED (network prior)": Row(lambda _: iced("network"), not_blind=SEEN),
    "ICED (network prior), rebalanced": Row(lambda _: Rebalanced(iced("network")), not_blind=SEEN),
}

TABLE = Table(
    name="imbalance-sweep",
    title="Truth inference as one class gets rarer, from 1:1 to 1:50",
    source="Our own: 1,020 simulated tasks, 15 workers, 5 labels per task.",
    about=(
        "The features, two overlapping clouds in ten dimensions, are used by ICED alone; workers "
        "have an accuracy from 0.5 to 0.9 for either class. Gray lines are the other aggregators. "
        "Rebalanced rows decide as if classes were equally frequent (`rebalance`), by the "
        "posterior alone."
    ),
    rows=without_search(
        {
            **{name: Row(plain(name)) for name in aggregate.__all__},
            "DawidSkene, uniform prior": Row(lambda _: DawidSkene(class_prior="uniform")),
            "IBCC, uniform prior": Row(lambda _: IBCC(class_prior="uniform")),
            "DawidSkene, rebalanced": Row(lambda _: Rebalanced(DawidSkene())),
            "IBCC, rebalanced": Row(lambda _: Rebalanced(IBCC())),
            **ICED_ROWS,
        }
    ),
    columns={f"1:{ratio}": Column(partial(draw, ratio), redrawn=True) for ratio in RATIOS},
    measure=of_training_truths,
    metrics=("balanced accuracy", "training minority recall", "macro F1", "accuracy"),
    quick_rows=("MajorityVote", "DawidSkene", "IBCC", "ICED (network prior)"),
    quick_columns=("1:1", "1:10"),
    figure=figure,
)
