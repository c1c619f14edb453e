"""How good each worker is, and how each of them errs."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from crowdwise.annotations import Annotations
from crowdwise.evaluate import worker_quality
from crowdwise.typing import Floats, Ints

MOST_WORKERS = 2_000  # rows of the table
MOST_CELLS = 120_000  # of confusion matrices
FLAGS = (
    "answers as if at random",
    "always the same label",
    "often contradicts the rest",
    "too few labels to say",
)


@dataclass(frozen=True)
class WorkerFacts:
    """One row a worker, the busiest first; all workers, or as many as a page can carry."""

    n_workers: int
    flags: dict[str, int]  # of all workers
    mean_accuracy: float  # over annotations, so that busy workers count more
    note: str
    number: Ints  # (row,): running number in the annotations
    name: list[str]
    n_labels: Ints
    accuracy: Floats
    low: Floats
    high: Floats
    agreement: Floats  # with another worker of the task
    skill: Floats  # 0 ignores the task, 1 knows every truth
    flag: list[str]
    n_gold: Ints | None  # labels on tasks whose truth is known
    gold_accuracy: Floats | None
    confusion: Floats  # (row, truth, label): expected counts, of as many rows as there is room

    @property
    def n_suspect(self) -> int:
        """Workers to look at; those with too few labels are not among them."""
        return sum(n for flag, n in self.flags.items() if "few" not in flag)


def worker_facts(data: Annotations, posterior: Floats, truth: pd.Series | None) -> WorkerFacts:
    """Judge all workers; ``data`` has one label per worker and task."""
    frame = pd.DataFrame(posterior, index=data.tasks, columns=data.classes)
    quality = worker_quality(data, frame)
    quality = quality.assign(number=np.arange(len(quality)))[quality["n_labels"] > 0]
    shown = quality.sort_values("n_labels", ascending=False, kind="stable").head(MOST_WORKERS)
    number = shown["number"].to_numpy()
    gold = None if truth is None else worker_quality(data, frame, truth).iloc[number]
    return WorkerFacts(
        n_workers=len(quality),
        flags={flag: int((quality["flag"] == flag).sum()) for flag in FLAGS},
        mean_accuracy=float(np.average(quality["accuracy"], weights=quality["n_labels"])),
        note=_left_out(len(shown), len(quality)),
        number=number,
        name=[str(name) for name in shown.index.tolist()],
        n_labels=shown["n_labels"].to_numpy(),
        accuracy=shown["accuracy"].to_numpy(),
        low=shown["accuracy_low"].to_numpy(),
        high=shown["accuracy_high"].to_numpy(),
        agreement=shown["agreement"].to_numpy(),
        skill=shown["skill"].to_numpy(),
        flag=shown["flag"].tolist(),
        n_gold=None if gold is None else gold["n_gold"].to_numpy(),
        gold_accuracy=None if gold is None else gold["gold_accuracy"].to_numpy(),
        confusion=confusions(data, posterior, number),
    )


def confusions(data: Annotations, posterior: Floats, number: Ints) -> Floats:
    """Expected counts (row, truth, label) of the first of these workers, while there is room."""
    n_classes = data.n_classes
    room = max(MOST_CELLS // max(n_classes, 1) ** 2, 0)
    number = number[:room]
    if not len(number):
        return np.zeros((0, n_classes, n_classes))
    row = np.full(data.n_workers, -1)
    row[number] = np.arange(len(number))
    kept = row[data.worker] >= 0
    at = row[data.worker[kept]] * n_classes + data.label[kept]
    size = len(number) * n_classes
    table = csr_array((np.ones(len(at)), (at, data.task[kept])), shape=(size, data.n_tasks))
    counts = (table @ posterior).reshape(len(number), n_classes, n_classes)
    return counts.swapaxes(1, 2)


def _left_out(n_rows: int, n_workers: int) -> str:
    if n_rows == n_workers:
        return ""
    return (
        f"The {n_rows:,} busiest of {n_workers:,} workers are listed; "
        "crowdwise workers writes all of them."
    )
