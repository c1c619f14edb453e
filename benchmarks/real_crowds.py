"""Real crowds on this disk, where there are any.

The environment variable ``CROWDWISE_DATA`` names a folder with one subfolder per set, each
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
# Votes dealt to numbered slots, or simulated: a worker there is nobody, so there is no
# worker quality to find, and the truth of the first two is the majority vote itself.
WITHOUT_WORKERS = ("hotel", "classroom_on_task", "neucrowd_syn_valid")


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
    """All sets with real workers and a truth."""
    root = folder()
    if root is None:
        return []
    found = (path.parent for path in root.glob("*/truth.csv"))
    return sorted(p.name for p in found if p.name not in WITHOUT_WORKERS and _annotations_file(p))


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
