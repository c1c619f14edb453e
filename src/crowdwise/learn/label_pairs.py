"""Several yes-or-no labels of a task, as pairs of task and label name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import as_names, locate
from crowdwise.errors import AnnotationError, explain, listing
from crowdwise.io import as_annotations
from crowdwise.nets.features import Features, named_table
from crowdwise.typing import AnnotationsLike, Array, FeaturesLike, Floats, GoldLike, Ints


@dataclass(frozen=True)
class PairFeatures(Features):
    """Features of pairs: those of the task, followed by the number of the label name.

    All pairs are included, or those whose numbers are in ``order``.
    """

    n_names: int = 1

    @property
    def n_tasks(self) -> int:
        return int(self.source.n_tasks) * self.n_names if self.order is None else len(self.order)

    @property
    def shape(self) -> tuple[int, ...]:
        inner = self.source.shape
        return (inner[0] + 1,) if len(inner) == 1 else super().shape

    def rows(self, chosen: Tensor) -> Tensor:
        pair = chosen
        if self.order is not None:
            pair = torch.as_tensor(self.order)[chosen.cpu()].to(chosen.device)
        x = self.source.rows(pair // self.n_names)
        return torch.cat([x, (pair % self.n_names).to(x.dtype)[:, None]], dim=1)

    def to(self, device: torch.device) -> PairFeatures:
        return PairFeatures(self.source.to(device), self.order, self.n_names)


@dataclass(frozen=True)
class LabelPairs:
    """Annotations whose tasks are pairs: number ``task * n_names + name``."""

    annotations: Annotations
    tasks: Array
    names: Array


def as_pairs(annotations: AnnotationsLike, column: str, names: Array | None = None) -> LabelPairs:
    """Convert ``{label name: annotations}``, or a long frame with label names in ``column``.

    The tasks of all label names are combined. ``names`` are the possible label names, if known.
    """
    parts = _parts(annotations, column)
    found = as_names(list(parts))
    names = found if names is None else names
    number = locate(names, found)
    if (number < 0).any():
        raise AnnotationError(
            explain(
                f"There are annotations of an unknown label name, {found[number.argmin()]!r}.",
                expected=f"one of {listing(names)}",
                fix="leave these annotations out, or include the label in fit",
            )
        )
    votes = list(parts.values())
    tasks, workers, classes = (
        _union([getattr(part, role) for part in votes]) for role in ("tasks", "workers", "classes")
    )
    if len(classes) != 2:
        raise AnnotationError(
            explain(
                f"The labels have {len(classes)} values: {listing(classes)}.",
                expected="two, such as 0 and 1: whether a label name applies or not",
                fix="if nobody used one of the two, declare both with classes=[…]",
            )
        )
    stacked = _stack(votes, number, (tasks, workers, classes), len(names))
    return LabelPairs(stacked, tasks, names)


def as_pair_gold(gold: GoldLike, pairs: LabelPairs) -> dict[int, Hashable]:
    """Return known truths by pair, from ``{label name: {task: truth}}`` or tasks x names."""
    table = pd.DataFrame(gold)
    row = locate(pairs.tasks, table.index.to_numpy())
    found: dict[int, Hashable] = {}
    for number, name in enumerate(pairs.names):
        if name in table.columns:
            truth = table[name].to_numpy()
            ok = ~pd.isna(truth) & (row >= 0)
            pair = row[ok].astype(np.int64) * len(pairs.names) + number
            found.update(zip(pair.tolist(), as_names(truth[ok]).tolist(), strict=True))
    return found


def are_annotations(y: AnnotationsLike, column: str) -> bool:
    """Return whether these are labels by workers, not truths."""
    if isinstance(y, Mapping) and not hasattr(y, "columns"):
        part = next(iter(y.values()), None)
        nested = isinstance(part, Mapping) and isinstance(next(iter(part.values()), None), Mapping)
        return nested or isinstance(part, Annotations) or hasattr(part, "columns")
    return isinstance(y, Annotations) or column in getattr(y, "columns", ())


def as_truths(
    y: AnnotationsLike, names: pd.Index, n_rows: int, rows: pd.Index | None = None
) -> pd.DataFrame:
    """Return truths by row and label name, matched by name if ``y`` has names."""
    table = pd.DataFrame(y)
    named = isinstance(y, pd.DataFrame | Mapping)
    if not named and table.shape[1] == len(names):
        table.columns = names
    if isinstance(y, pd.DataFrame) and names.isin(table.columns).all():
        table = table[list(names)]  # a frame may have other columns too
    strange = table.columns.difference(names, sort=False)
    if len(table) != n_rows or len(strange):
        found = f" and the columns {listing(table.columns)}" if named else ""
        raise AnnotationError(
            explain(
                f"The truths have shape {table.shape}{found}.",
                expected=f"{n_rows:,} rows as in X, and columns for {listing(names)}",
                fix="give a row per task and a column per label",
            )
        )
    if rows is not None and not _numbered(table.index):
        table = _in_row_order(table, rows)
    return table.reindex(columns=names)


def share_right(
    predicted: pd.DataFrame,
    y: AnnotationsLike,
    X: FeaturesLike,
    classes: Array,
    weight: ArrayLike | None = None,
) -> float:
    """Return the share of known truths that were predicted, each row by its weight."""
    rows = X.index if isinstance(X, pd.DataFrame) and not _numbered(X.index) else None
    truths = as_truths(y, predicted.columns, len(predicted), rows).to_numpy(dtype=object)
    known = ~pd.isna(truths)
    if not known.any() or not np.isin(truths[known], classes).all():
        raise AnnotationError(
            explain(
                f"The truths have the values [{listing(pd.unique(truths[known]))}].",
                expected=f"{listing(classes)}; NaN where unknown, but not everywhere",
                fix="write truths in the same way as labels",
            )
        )
    right = (predicted.to_numpy() == truths) & known
    weights = np.ones(len(right)) if weight is None else np.asarray(weight)
    return float((right.sum(axis=1) @ weights) / (known.sum(axis=1) @ weights))


def _in_row_order(table: pd.DataFrame, rows: pd.Index) -> pd.DataFrame:
    """Put rows in this order if they have these names; leave them if they have none of them."""
    shared = table.index.isin(rows)
    if not shared.any():
        return table
    if not (shared.all() and table.index.is_unique and rows.is_unique):
        raise AnnotationError(
            explain(
                "The truths and X share some row names, but not all.",
                first=f"the truths have {listing(table.index)}; X has {listing(rows)}",
                expected="the same names in both, each once",
                fix="give the same index to both, or two arrays",
            )
        )
    return table.loc[rows]


def label_table(features: FeaturesLike, names: Array) -> Tensor | None:
    """Return features of label names as a tensor, one row each."""
    return None if features is None else named_table(features, names, "label", "label_features")


def _numbered(index: pd.Index) -> bool:
    """Return whether an index only counts rows."""
    return bool(isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index))))


def _parts(annotations: AnnotationsLike, column: str) -> dict[Hashable, Annotations]:
    """Return the annotations of each label name."""
    if isinstance(annotations, Mapping) and not hasattr(annotations, "columns") and annotations:
        return {name: as_annotations(part) for name, part in annotations.items()}
    frame = nw.from_native(annotations, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise AnnotationError(
            explain(
                f"These annotations ({type(annotations).__name__}) do not say which label name "
                "they are for.",
                expected=f"{{label name: annotations}}, or a frame with the column {column!r}",
                fix="give its name: {'name': annotations}, or use LIA",
            )
        )
    if column not in frame.columns:
        raise AnnotationError.missing_column(
            column,
            where="The frame",
            found=frame.columns,
            fix="rename the column of label names, or set column=…",
        )
    return {
        name: as_annotations(frame.filter(nw.col(column) == name).drop(column).to_native())
        for name in sorted(frame[column].unique().to_list())
    }


def _union(names: list[Array]) -> Array:
    """Return all names: in their own order if all lists are equal, else sorted."""
    if all(np.array_equal(names[0], other) for other in names[1:]):
        return names[0]
    return as_names(pd.Index(np.concatenate(names)).unique().sort_values())


def _stack(
    votes: list[Annotations], number: Ints, names: tuple[Array, Array, Array], n_names: int
) -> Annotations:
    """Combine all parts in one table; part ``i`` is about the label name ``number[i]``."""
    tasks, workers, classes = names
    task = [locate(tasks, part.tasks)[part.task].astype(np.int64) for part in votes]
    pair = [n_names * code + of for code, of in zip(task, number, strict=True)]
    ones = [np.ones(part.n_annotations) for part in votes]
    weight = [
        one if part.weight is None else part.weight for part, one in zip(votes, ones, strict=True)
    ]
    soft = any(part.soft is not None for part in votes)
    return Annotations.from_codes(
        np.concatenate(pair),
        np.concatenate([locate(workers, part.workers)[part.worker] for part in votes]),
        np.concatenate([locate(classes, part.classes)[part.label] for part in votes]),
        tasks=np.arange(n_names * len(tasks)),
        workers=workers,
        classes=classes,
        weight=np.concatenate(weight),
        soft=np.concatenate([_spread(part, classes) for part in votes]) if soft else None,
    )


def _spread(part: Annotations, classes: Array) -> Floats:
    """Return labels as distributions over all classes."""
    wide = np.zeros((part.n_annotations, len(classes)))
    share = np.eye(part.n_classes)[part.label] if part.soft is None else part.soft
    wide[:, locate(classes, part.classes)] = share
    return wide
