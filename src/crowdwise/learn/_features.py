"""What tasks look like: arrays, frames, sparse matrices, tensors or torch datasets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import torch
from scipy.sparse import issparse
from torch import Tensor
from torch.utils.data import Dataset, Subset, default_collate

from crowdwise.data.names import positions
from crowdwise.errors import AnnotationError, explain
from crowdwise.typing import Array, Ints


@dataclass(frozen=True)
class Features:
    """Rows of features, one a task; ``rows`` fetches some of them as a tensor."""

    source: Any  # a tensor, a scipy matrix or a torch Dataset
    order: Ints | None = None  # row of the source for each task

    @property
    def n_tasks(self) -> int:
        return n_rows(self.source) if self.order is None else len(self.order)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one task's features."""
        if isinstance(self.source, Tensor) or issparse(self.source):
            return tuple(self.source.shape[1:])  # also where there are no rows
        return tuple(self.rows(torch.zeros(1, dtype=torch.long)).shape[1:])

    def rows(self, chosen: Tensor) -> Tensor:
        """The features of the chosen tasks; on the device of ``chosen``."""
        at = chosen if self.order is None else torch.as_tensor(self.order)[chosen.cpu()]
        if isinstance(self.source, Tensor):
            return self.source[at.to(self.source.device)].to(chosen.device)
        if issparse(self.source):
            dense = self.source[at.cpu().numpy()].toarray()
            return torch.as_tensor(dense, dtype=torch.float32, device=chosen.device)
        items = [_features_only(self.source[int(i)]) for i in at]
        return default_collate(items).to(chosen.device)

    def to(self, device: torch.device) -> Features:
        """Move the whole table at once, where there is one."""
        moved = self.source.to(device) if isinstance(self.source, Tensor) else self.source
        return Features(moved, self.order)


def as_features(X: Any, tasks: Array | None = None) -> Features:
    """Take features in any shape; ``tasks`` names the rows they must have.

    A frame whose index holds the tasks' names is put in their order; anything else must
    have one row per task, in the order of the tasks.
    """
    order = None
    if isinstance(X, Features):
        return X
    if X is None:
        source: Any = torch.arange(0 if tasks is None else len(tasks))
    elif isinstance(X, Dataset) or issparse(X):
        source = X.tocsr() if issparse(X) else X
    elif isinstance(X, Tensor):
        source = X.float() if X.is_floating_point() or X.ndim > 1 else X
    else:
        order = order_by_name(X, tasks)
        source = torch.as_tensor(_as_array(X), dtype=torch.float32)
    features = Features(source, order)
    if tasks is not None:
        _refuse_other_rows(features.n_tasks, tasks)
    _refuse_missing(features)
    return features


def in_task_order(X: Any, tasks: Array) -> Any:
    """The same X, of any kind, with one row per task in their order."""
    if isinstance(X, Features):
        return X
    order = order_by_name(X, tasks)
    if order is not None:
        return X.iloc[order]
    if X is not None:
        _refuse_other_rows(n_rows(X), tasks)
    return X


def n_rows(X: Any) -> int:
    """How many rows X has, of any kind."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def refuse_width(found: int, expected: int) -> None:
    """Another number of features than in fit."""
    if found != expected:
        raise AnnotationError(
            explain(
                f"X has {found:,} features.",
                expected=f"the {expected:,} features that were there in fit",
            )
        )


def refuse_other_shape(features: Features, shape: tuple[int, ...]) -> None:
    """Rows of another width than in fit, where they had ``shape``."""
    if len(shape) == len(features.shape) == 1:  # images may have other sizes
        refuse_width(features.shape[0], shape[0])


def take(X: Any, rows: Ints) -> Any:
    """Some rows of X, of any kind."""
    if isinstance(X, Dataset):
        return Subset(X, rows.tolist())
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "shape"):
        return X.tocsr()[rows] if issparse(X) else X[rows]
    return [X[row] for row in rows]


def _features_only(item: Any) -> Any:
    """A dataset's item without its label."""
    return item[0] if isinstance(item, tuple | list) else item


def _as_array(X: Any) -> Array:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    array = frame.to_numpy() if isinstance(frame, nw.DataFrame) else np.asarray(X)
    try:
        array = array.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise AnnotationError(
            explain(
                "X holds something that is not a number.",
                first=str(error),
                expected="numbers only",
                fix="encode text and categories first",
            )
        ) from None
    if array.ndim < 2:
        raise AnnotationError(
            explain(
                f"X has shape {array.shape}.",
                expected="two dimensions or more: rows are tasks",
                fix="use X.reshape(-1, 1) for a single feature",
            )
        )
    return array


def order_by_name(X: Any, tasks: Array | None) -> Ints | None:
    """The row of each task in a frame that is indexed by task; None for anything else."""
    if tasks is None or not isinstance(X, pd.DataFrame) or isinstance(X.index, pd.RangeIndex):
        return None
    if not X.index.is_unique:
        return None
    place = positions(X.index.to_numpy(), tasks)
    return place if (place >= 0).all() else None


def _refuse_other_rows(found: int, tasks: Array) -> None:
    if found != len(tasks):
        raise AnnotationError(
            explain(
                f"X has {found:,} rows, but there are {len(tasks):,} tasks.",
                expected="one row per task, in the order of annotations.tasks",
                fix="give a frame indexed by task, or declare all tasks: from_frame(…, tasks=…)",
            )
        )


def _refuse_missing(features: Features) -> None:
    table = features.source
    if not isinstance(table, Tensor) or not table.is_floating_point():
        return
    bad = ~torch.isfinite(table)
    if bad.any():
        first = torch.nonzero(bad)[0].tolist()
        raise AnnotationError(
            explain(
                f"X has {int(bad.sum()):,} values that are missing or infinite.",
                first=f"row {first[0]}, column {first[1] if len(first) > 1 else 0}",
                expected="finite numbers",
                fix="fill them in first, for example with sklearn.impute.SimpleImputer",
            )
        )
