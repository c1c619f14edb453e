"""Sets packaged by the Active Crowd Toolkit: worker, task, label, truth (and seconds)."""

from pathlib import Path

import numpy as np
import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, by_task, read_table, truth_of

COLUMNS = ["worker", "task", "label", "truth"]


def parse(files: Files, file: str) -> PublishedTables:
    """Parse the labels, and the truth repeated in every row."""
    rows = rows_of(files, file)
    return PublishedTables(rows[["task", "worker", "label"]], truth_of(rows))


def polarity(files: Files, file: str) -> PublishedTables:
    """Parse movie-review sentences. A task is a 1-based rank among the pure ASCII sentences."""
    rows = rows_of(files, file)
    positive, negative = (pure_lines(files[f"rt-polarity.{kind}"]) for kind in ("pos", "neg"))
    texts = positive + negative
    truth = [1] * len(positive) + [0] * len(negative)
    tasks = pd.RangeIndex(1, len(texts) + 1).astype(str).rename("task")
    split = np.where(tasks.isin(rows["task"]), "train", "test")
    return PublishedTables(
        rows[["task", "worker", "label"]],
        by_task(tasks, truth, "truth"),
        items=pd.DataFrame({"text": texts}, index=tasks),
        split=by_task(tasks, split, "split"),
    )


def pure_lines(path: Path) -> list[str]:
    """Return the lines that are pure ASCII."""
    lines = path.read_bytes().splitlines()
    return [line.decode().strip() for line in lines if line and line.isascii()]


def rows_of(files: Files, file: str) -> pd.DataFrame:
    """Return the columns worker, task, label and truth."""
    return read_table(files[file], header=None, usecols=range(4)).set_axis(COLUMNS, axis=1)
