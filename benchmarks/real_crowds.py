"""Real crowds on this disk, where there are any.

The environment variable ``CROWDWISE_DATA`` names a folder with one sub-folder a set, each
with ``annotations.csv`` (or ``.csv.gz``) and ``truth.csv``. None of them is part of the
project; without the variable there are no real crowds.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from crowdwise import Annotations

# Expert labels corrected by adjudication are the truth to score against in these two.
ADJUDICATED = ("medical_causes", "medical_treats")


@dataclass(frozen=True)
class RealCrowd:
    """One set: its annotations, and the truth of the tasks that have one."""

    name: str
    annotations: Annotations
    truth: pd.Series


def folder() -> Path | None:
    """Where the sets are, or None."""
    place = os.environ.get("CROWDWISE_DATA")
    return Path(place) if place else None


def names() -> list[str]:
    """All sets that have workers and truth."""
    root = folder()
    if root is None:
        return []
    found = (path.parent for path in root.glob("*/truth.csv"))
    return sorted(path.name for path in found if _annotations_file(path) and _has_workers(path))


def load(name: str, *, repeats: str = "last", truth: str | None = None) -> RealCrowd:
    """Read a set; ``truth`` names another truth file, such as ``adjudicated``."""
    root = folder()
    if root is None:
        raise FileNotFoundError("CROWDWISE_DATA is not set")
    kind = truth or ("adjudicated" if name in ADJUDICATED else "")
    truth_file = root / name / (f"truth_{kind}.csv" if kind else "truth.csv")
    table = pd.read_csv(_annotations_file(root / name), dtype=str, keep_default_na=False)
    known = pd.read_csv(truth_file, dtype=str, keep_default_na=False)
    series = pd.Series(known["label"].to_numpy(), index=known["task"].to_numpy())
    classes = sorted({*table["label"], *series[series.index.isin(table["task"])]})
    annotations = Annotations.from_frame(table, classes=classes, repeats=repeats)
    return RealCrowd(name, annotations, series[series.index.isin(annotations.tasks)])


def _annotations_file(path: Path) -> Path | None:
    candidates = (path / "annotations.csv", path / "annotations.csv.gz")
    return next((file for file in candidates if file.exists()), None)


def _has_workers(path: Path) -> bool:
    columns = pd.read_csv(_annotations_file(path), nrows=0).columns
    return {"task", "worker", "label"} <= set(columns)
