"""What some kinds of files cannot hold, in words."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations.table import Annotations
from crowdwise.errors import explain


def warn_of_losses(annotations: Annotations, layout: str) -> None:
    """Say which columns there is no place for."""
    extra = ("weight", "time", "soft", "gold")
    lost = [name for name in extra if getattr(annotations, name) is not None]
    if lost:
        fact = f"{layout} has no place for {', '.join(lost)}: left out."
        warnings.warn(explain(fact, fix="write csv, json or parquet to keep it"), stacklevel=3)


def warn_of_twins(names: Any, role: str) -> None:
    """Say that names of different types, such as 1 and "1", cannot be told apart as text."""
    values = np.asarray(names, dtype=object)
    own = values[~pd.isna(values)].tolist()
    if len(set(map(type, own))) < 2:
        return
    by_text: dict[str, list[Any]] = {}
    for name in own:
        by_text.setdefault(str(name), []).append(name)
    twins = [alike for alike in by_text.values() if len(alike) > 1]
    if twins:
        shown = " and ".join(map(repr, twins[0]))
        fact = f"{len(twins):,} names in {role} are alike as text, and read back as one."
        fix = "rename them, or write json or jsonl, which keep numbers and text apart"
        warnings.warn(explain(fact, first=shown, fix=fix), stacklevel=3)
