"""Several yes-or-no labels of one task, as pairs of a task and a label name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import torch
from torch import Tensor

from crowdwise.data import Annotations, as_annotations
from crowdwise.data.names import as_names, positions
from crowdwise.errors import AnnotationError, explain, listing
from crowdwise.learn._features import Features
from crowdwise.typing import Array, Floats, Ints


@dataclass(frozen=True)
class PairFeatures(Features):
    """Features of pairs: those of the task, and at the end the number of the label name.

    The pairs are all there are, or those whose numbers are in ``order``.
    """

    n_names: int = 1

    @property
    def n_tasks(self) -> int:
        return int(self.source.n_tasks) * self.n_names if self.order is None else len(self.order)

    def rows(self, chosen: Tensor) -> Tensor:
        pair = chosen
        if self.order is not None:
            pair = torch.as_tensor(self.order)[chosen.cpu()].to(chosen.device)
        x = self.source.rows(pair // self.n_names)
        return torch.cat([x, (pair % self.n_names).to(x.dtype)[:, None]], dim=1)

    def to(self, device: torch.device) -> PairFeatures:
        return PairFeatures(self.source.to(device), self.order, self.n_names)


@dataclass(frozen=True)
class Pairs:
    """Annotations whose tasks are pairs: number ``task * n_names + name``."""

    annotations: Annotations
    tasks: Array
    names: Array


def as_pairs(annotations: Any, column: str, names: Array | None = None) -> Pairs:
    """Take ``{label name: annotations}``, or a long frame with the label name in ``column``.

    Tasks are those of any label name. ``names`` are the label names there may be, if known.
    """
    parts = _parts(annotations, column)
    found = as_names(list(parts))
    names = found if names is None else names
    number = positions(names, found)
    if (number < 0).any():
        raise AnnotationError(
            explain(
                f"There are annotations of an unknown label name, {found[number.argmin()]!r}.",
                expected=f"one of {listing(names)}",
            )
        )
    votes = list(parts.values())
    tasks, workers, classes = (
        _union([getattr(part, role) for part in votes]) for role in ("tasks", "workers", "classes")
    )
    if len(classes) != 2:
        raise AnnotationError(
            explain(
                f"The labels take {len(classes)} values: {listing(classes)}.",
                expected="two, such as 0 and 1: whether a label name applies or not",
                fix="declare both with classes=[…] where nobody used one of them",
            )
        )
    stacked = _stack(votes, number, (tasks, workers, classes), len(names))
    return Pairs(stacked, tasks, names)


def as_pair_gold(gold: Any, pairs: Pairs) -> dict[int, Any]:
    """Known truths by pair, from ``{label name: {task: truth}}`` or a frame tasks x names."""
    table = pd.DataFrame(gold)
    row = positions(pairs.tasks, table.index.to_numpy())
    found: dict[int, Any] = {}
    for number, name in enumerate(pairs.names):
        if name in table.columns:
            truth = table[name].to_numpy()
            ok = ~pd.isna(truth) & (row >= 0)
            pair = row[ok].astype(np.int64) * len(pairs.names) + number
            found.update(zip(pair.tolist(), as_names(truth[ok]).tolist(), strict=True))
    return found


def label_table(features: Any, names: Array) -> Tensor | None:
    """Features of label names as a tensor, one row each."""
    if features is None:
        return None
    if isinstance(features, pd.DataFrame) and not isinstance(features.index, pd.RangeIndex):
        features = features.reindex(names)
    table = np.asarray(features, dtype=np.float32)
    if table.ndim != 2 or len(table) != len(names) or not np.isfinite(table).all():
        raise AnnotationError(
            f"label_features have shape {table.shape} for {len(names):,} label names.\n"
            "  expected: one row of finite numbers per name, or a frame indexed by name"
        )
    return torch.as_tensor(table)


def _parts(annotations: Any, column: str) -> dict[Any, Annotations]:
    """The annotations of each label name."""
    if isinstance(annotations, Mapping) and not hasattr(annotations, "columns"):
        return {name: as_annotations(part) for name, part in annotations.items()}
    frame = nw.from_native(annotations, eager_only=True)
    if column not in frame.columns:
        raise AnnotationError.missing_column(
            column,
            where="The frame",
            found=frame.columns,
            fix="rename the column that says which label a row is about, or set column=…",
        )
    return {
        name: as_annotations(frame.filter(nw.col(column) == name).drop(column).to_native())
        for name in sorted(frame[column].unique().to_list())
    }


def _union(names: list[Array]) -> Array:
    """All names: in their own order if all lists are alike, else sorted."""
    if all(np.array_equal(names[0], other) for other in names[1:]):
        return names[0]
    return as_names(pd.Index(np.concatenate(names)).unique().sort_values())


def _stack(
    votes: list[Annotations], number: Ints, names: tuple[Array, Array, Array], n_names: int
) -> Annotations:
    """All parts in one table, part ``i`` being about the label name ``number[i]``."""
    tasks, workers, classes = names
    task = [positions(tasks, part.tasks)[part.task].astype(np.int64) for part in votes]
    pair = [n_names * code + of for code, of in zip(task, number, strict=True)]
    ones = [np.ones(part.n_annotations) for part in votes]
    weight = [
        one if part.weight is None else part.weight for part, one in zip(votes, ones, strict=True)
    ]
    soft = any(part.soft is not None for part in votes)
    return Annotations.from_codes(
        np.concatenate(pair),
        np.concatenate([positions(workers, part.workers)[part.worker] for part in votes]),
        np.concatenate([positions(classes, part.classes)[part.label] for part in votes]),
        tasks=np.arange(n_names * len(tasks)),
        workers=workers,
        classes=classes,
        weight=np.concatenate(weight),
        soft=np.concatenate([_spread(part, classes) for part in votes]) if soft else None,
    )


def _spread(part: Annotations, classes: Array) -> Floats:
    """Labels as distributions over all classes."""
    wide = np.zeros((part.n_annotations, len(classes)))
    share = np.eye(part.n_classes)[part.label] if part.soft is None else part.soft
    wide[:, positions(classes, part.classes)] = share
    return wide
