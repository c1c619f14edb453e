"""Classroom exchanges: how many of three raters found the pupil on task."""

import numpy as np
import pandas as pd

from crowdwise.datasets.parsers.neucrowd import deal
from crowdwise.datasets.tables import Files, PublishedTables, by_task, read_table

RATERS = 3


def parse(files: Files) -> PublishedTables:
    """Parse texts, labels dealt to raters, their majority as truth, and a split by lesson."""
    table = read_table(files["uptake_data.csv"])
    tasks = (table["obs_id"] + "-" + table["exchange_idx"]).to_numpy()
    positive = _votes(table["student_on_task"])
    items = pd.DataFrame(
        {
            "lesson": table["obs_id"].to_numpy(),
            "teacher_on_task_votes": _votes(table["teacher_on_task"]),
            "uptake_mean": pd.to_numeric(table["uptake"]).round(4).to_numpy(),
            "student_text": table["student_text"].to_numpy(),
            "teacher_text": table["teacher_text"].to_numpy(),
        },
        index=pd.Index(tasks, name="task"),
    )
    return PublishedTables(
        deal(tasks, positive, RATERS),
        by_task(tasks, (2 * positive > RATERS).astype(int), "truth"),
        items=items,
        split=split_by(items["lesson"]),
    )


def split_by(lesson: pd.Series) -> pd.Series:
    """Split by lesson: 60% for training, 15% for validation, the rest for testing."""
    lessons = lesson.unique()
    order = np.random.default_rng(0).permutation(lessons)
    edges = [round(0.6 * len(lessons)), round(0.75 * len(lessons))]
    train, valid, test = np.split(order, edges)
    parts = {"train": train, "valid": valid, "test": test}
    part_of = {one: name for name, part in parts.items() for one in part}
    return lesson.map(part_of).rename("split")


def _votes(share: pd.Series) -> np.ndarray:
    return (share.astype(float) * RATERS).round().astype(int).to_numpy()
