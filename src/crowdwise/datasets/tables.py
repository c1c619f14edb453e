"""The result of a parser: published tables, still with their published ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pandas as pd
from numpy.typing import ArrayLike

from crowdwise.typing import Array

Files = Mapping[str, Path]


@dataclass(frozen=True)
class PublishedTables:
    """A set as it is published; every id and label may still be text.

    ``annotations`` has the columns ``task``, ``worker``, ``label`` (and ``weight``);
    ``truth`` and ``split`` are series by task; ``items`` is a frame by task, ``workers``
    one by worker; row ``i`` of ``X`` describes ``X_tasks[i]``; ``extra`` has everything else
    that the authors publish, by name.
    """

    annotations: pd.DataFrame | None = None
    truth: pd.Series | None = None
    X: Array | None = None
    X_tasks: Array | None = None
    items: pd.DataFrame | None = None
    split: pd.Series | None = None
    workers: pd.DataFrame | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def read_table(source: Path | IO[bytes], **options: Any) -> pd.DataFrame:
    """Read a delimited file as text; numbers and missing values are not parsed."""
    return pd.read_csv(source, dtype=str, keep_default_na=False, **options)


def by_task(tasks: ArrayLike, values: ArrayLike, name: str) -> pd.Series:
    """Return a series with one value per task."""
    return pd.Series(values, index=pd.Index(tasks, name="task"), name=name)


def truth_of(rows: pd.DataFrame, column: str = "truth") -> pd.Series:
    """Return one truth per task, from a table that repeats it on every annotation."""
    once = rows.drop_duplicates("task")
    return by_task(once["task"].to_numpy(), once[column].to_numpy(), "truth")
