"""A loaded set: a crowd's annotations with everything published with them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.datasets.registry import Info
from crowdwise.errors import ParameterError, explain, listing
from crowdwise.typing import Array

Table = TypeVar("Table", pd.Series, pd.DataFrame)


@dataclass(frozen=True, eq=False, repr=False)
class Crowd:
    """A real crowd.

    Attributes
    ----------
    annotations : Annotations
        Who gave which label to which task. People are numbered. Empty if a set has features
        and truth only.
    truth : Series by task, or None
        The known truths of tasks, labeled or not.
    X : ndarray of shape (n, n_features), or None
        Features; row ``i`` describes ``X_tasks[i]``. The tasks of ``annotations`` are in
        the same order, but may be only some of them: :meth:`part` makes them match.
    X_tasks : ndarray of shape (n,), or None
        The tasks of ``X``.
    items : DataFrame by task, or None
        What the workers saw, as far as it is published.
    split : Series by task, or None
        The part that each task belongs to, such as ``train``.
    workers : DataFrame by worker, or None
        Facts about the workers.
    extra : dict
        Everything else that is published, by name; ``info`` describes it.
    info : Info
        License, citation, counts, and pitfalls of this set.
    """

    name: str
    annotations: Annotations
    info: Info
    truth: pd.Series | None = None
    X: Array | None = None
    X_tasks: Array | None = None
    items: pd.DataFrame | None = None
    split: pd.Series | None = None
    workers: pd.DataFrame | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        about = [str(self.annotations).strip("<>").removeprefix("Annotations: ")]
        if self.truth is not None:
            about.append(f"truth of {len(self.truth):,}")
        if self.X is not None:
            about.append("X {:,} x {:,}".format(*self.X.shape))
        if self.split is not None:
            about.append("split " + ", ".join(map(str, self.split.unique())))
        return f"<{self.name}: {'; '.join(about)}>"

    def part(self, name: str) -> Crowd:
        """Keep only the tasks of one part of the split, all in the same order.

        Row ``i`` of ``X`` then describes ``annotations.tasks[i]``; a task that nobody labeled
        is included without annotations. ``truth`` and ``items`` are cut to the same tasks.
        """
        parts = [] if self.split is None else list(self.split.unique())
        if self.split is None or name not in parts:
            raise ParameterError(
                explain(
                    f"{self.name} has no part {name!r}.",
                    expected=listing(parts) or "a set with a split; this one has none",
                    fix="choose one of its parts, or take all tasks",
                )
            )
        tasks = self.split.index[self.split == name]
        if self.X_tasks is not None:
            described = pd.Index(self.X_tasks)
            tasks = described[described.isin(tasks)]
        rows = None if self.X_tasks is None else locate(self.X_tasks, tasks)
        return replace(
            self,
            annotations=with_tasks(self.annotations, tasks),
            truth=_cut(self.truth, tasks),
            X=None if self.X is None or rows is None else self.X[rows],
            X_tasks=None if self.X_tasks is None else self.X_tasks[rows],
            items=_cut(self.items, tasks),
            split=self.split.loc[tasks],
        )


def with_tasks(annotations: Annotations, tasks: ArrayLike) -> Annotations:
    """Return the annotations of these tasks, in this order; the rest is left out."""
    place = locate(np.asarray(tasks), annotations.tasks)[annotations.task]
    kept = place >= 0
    columns = {name: getattr(annotations, name) for name in ("weight", "time", "soft")}
    return Annotations.from_codes(
        place[kept],
        annotations.worker[kept],
        annotations.label[kept],
        tasks=np.asarray(tasks),
        workers=annotations.workers,
        classes=annotations.classes,
        notes=annotations.notes,
        **{name: None if column is None else column[kept] for name, column in columns.items()},
    )


def _cut(table: Table | None, tasks: pd.Index) -> Table | None:
    return None if table is None else table.loc[tasks[tasks.isin(table.index)]]
