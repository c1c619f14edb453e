"""Limits: rare classes are merged and tasks sampled if all of them would be too many."""

from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.errors import plural
from crowdwise.typing import RandomState

MOST_CELLS = 2_000_000  # in all workers' confusion matrices together
FEWEST = 20  # classes that are never merged
OTHER = "(other classes)"


def merge_rare_classes(
    data: Annotations, truth: pd.Series | None
) -> tuple[Annotations, pd.Series | None, str]:
    """Merge all but the most frequent classes; returns a note about it."""
    most = max(int(np.sqrt(MOST_CELLS / max(data.n_workers, 1))), FEWEST)
    if data.n_classes <= most:
        return data, truth, ""
    counts = np.bincount(data.label, minlength=data.n_classes)
    kept = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
    code = np.full(data.n_classes, most - 1)
    code[kept] = np.arange(most - 1)
    classes = np.append(data.classes[kept].astype(object), OTHER)
    gold = None if data.gold is None else np.append(code, -1)[data.gold].astype(np.int32)
    fewer = replace(
        data, classes=classes, label=code[data.label].astype(np.int32), soft=None, gold=gold
    )
    if truth is not None:
        truth = truth.astype(object).where(truth.isin(data.classes[kept]), OTHER)
    rest = data.n_classes - most + 1
    merged = plural(rest, "rare class is", "rare classes are")
    return fewer, truth, f"{merged} merged into {OTHER}: there are too many classes."


def sample_tasks(
    data: Annotations, most: int, random_state: RandomState
) -> tuple[Annotations, str]:
    """Keep all labeled tasks, or a random sample of about ``most`` annotations, with a note."""
    data = data.nonempty()
    if data.n_annotations <= most:
        return data, ""
    n_tasks = max(int(data.n_tasks * most / data.n_annotations), 1)
    rows = check_random_state(random_state).permutation(data.n_tasks)[:n_tasks]
    return data[np.sort(rows)], f"From {n_tasks:,} of {data.n_tasks:,} tasks, drawn at random."
