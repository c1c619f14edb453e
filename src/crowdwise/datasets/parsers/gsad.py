"""Gas Sensor Array Drift: 128 features per sample, ten batches, no workers."""

from io import StringIO

import numpy as np
import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, by_task
from crowdwise.typing import Array, Ints

BATCHES = range(1, 11)
RAW_BATCHES = (1, 2, 3, 4, 5, 6, 8, 9)


def parse(files: Files, variant: str) -> PublishedTables:
    """``standardized`` within each batch (all ten), or ``raw`` (all but 7 and 10)."""
    read, batches = (_raw, RAW_BATCHES) if variant == "raw" else (_standardized, BATCHES)
    parts = [read(files, number) for number in batches]
    sizes = [len(y) for _, y in parts]
    tasks = [
        f"b{b:02d}-{i:04d}" for b, size in zip(batches, sizes, strict=True) for i in range(size)
    ]
    return PublishedTables(
        truth=by_task(tasks, np.concatenate([y for _, y in parts]), "truth"),
        X=np.concatenate([X for X, _ in parts]),
        X_tasks=np.array(tasks),
        items=pd.DataFrame({"batch": np.repeat(batches, sizes)}, pd.Index(tasks, name="task")),
    )


def _standardized(files: Files, number: int) -> tuple[Array, Ints]:
    X = pd.read_csv(files[f"batch{number}_ext.txt"], sep=r"\s+", header=None, dtype=np.float32)
    y = pd.read_csv(files[f"batch{number}_lab.txt"], header=None)
    return X.to_numpy(), y[0].to_numpy()


def _raw(files: Files, number: int) -> tuple[Array, Ints]:
    """Parse rows ``class 1:value 2:value …``, each with all 128 features in order."""
    text = files[f"batch{number}.dat"].read_text().replace(":", " ")
    table = pd.read_csv(StringIO(text), sep=r"\s+", header=None)
    return table.iloc[:, 2::2].to_numpy(np.float32), table[0].to_numpy()
