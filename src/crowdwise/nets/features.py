"""Features of tasks: arrays, frames, sparse matrices, tensors or torch datasets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import torch
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.sparsefuncs import mean_variance_axis
from torch import Tensor, nn
from torch.utils.data import Dataset, Subset, default_collate

from crowdwise import memory
from crowdwise.base.fitting import (
    column_names,
    order_by_name,
    refuse_flat,
    refuse_other_columns,
    refuse_other_rows,
    refuse_width,
)
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.memory import LARGE, refuse_too_large
from crowdwise.nets.mapped import MappedRows
from crowdwise.typing import Array, FeaturesLike, Ints

ROWS_AT_ONCE = 8192
CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Features:
    """Rows of features, one per task; ``rows`` fetches some of them as a tensor."""

    source: Any  # a tensor, a scipy matrix or a torch Dataset
    order: Ints | None = None  # row of the source for each task
    names: Array | None = field(default=None, kw_only=True)  # names of the columns, if any

    @property
    def n_tasks(self) -> int:
        if self.order is not None:
            return len(self.order)
        tabular = isinstance(self.source, Tensor) or issparse(self.source)
        return int(self.source.shape[0]) if tabular else len(self.source)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one task's features."""
        if isinstance(self.source, Tensor) or issparse(self.source):
            return tuple(self.source.shape[1:])  # even if there are no rows
        if isinstance(self.source, MappedRows):
            return self.source.shape[1:]
        return tuple(self.rows(torch.zeros(1, dtype=torch.long)).shape[1:])

    def __deepcopy__(self, memo: object) -> Features:
        return self  # never changed; and a copy would take what is on disk into memory

    def rows(self, chosen: Tensor) -> Tensor:
        """Return the features of the chosen tasks, on the device of ``chosen``."""
        at = chosen if self.order is None else torch.as_tensor(self.order)[chosen.cpu()]
        if isinstance(self.source, Tensor):
            return self.source[at.to(self.source.device)].to(chosen.device)
        if issparse(self.source):
            dense = self.source[at.cpu().numpy()].toarray()
            return torch.as_tensor(dense, dtype=torch.float32, device=chosen.device)
        if isinstance(self.source, MappedRows):
            _refuse_rows(len(at), self.shape)
            items = self.source.rows(at.cpu().numpy())
        elif len(at):
            if len(at) > ROWS_AT_ONCE:
                _refuse_rows(len(at), self.shape)
            items = default_collate([_features_only(self.source[int(i)]) for i in at])
        else:
            items = torch.zeros((0, *self.shape))
        _refuse_missing(items, at)  # since such a table is never checked as a whole
        return items.to(chosen.device)

    def table(self, bytes_each: int = 4) -> Tensor:
        """Return all rows; ``bytes_each`` are needed for each number, with what is made of it."""
        tasks = torch.arange(self.n_tasks)
        if not isinstance(self.source, Dataset):
            return self.rows(tasks)
        shape = self.shape
        _refuse_rows(self.n_tasks, shape, bytes_each)
        found = torch.empty((len(tasks), *shape))
        for some in torch.split(tasks, rows_at_once(int(np.prod(shape)))):
            found[some] = self.rows(some).to(found)
        return found

    def fits(self, bytes_each: int = 4) -> bool:
        """Return whether there is memory for all rows, with what is made of them."""
        needed = float(self.n_tasks * bytes_each) * float(np.prod(self.shape))
        there = memory.available_memory()
        on_disk = isinstance(self.source, Dataset)
        return not on_disk or needed <= LARGE or there is None or needed <= there

    def some(self) -> Tensor:
        """Return two rows to try something on, without touching torch's random numbers."""
        with torch.random.fork_rng(devices=[]):
            return self.rows(torch.zeros(2, dtype=torch.long))

    def spread(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return standard deviation and mean of every feature, in parts if there is no table."""
        tasks = torch.arange(self.n_tasks, device=device)
        if issparse(self.source):
            mean, variance = mean_variance_axis(self.source.astype(np.float64), axis=0)
            deviation, mean = torch.as_tensor(np.sqrt(variance)), torch.as_tensor(mean)
            return deviation.float().to(device), mean.float().to(device)
        if not isinstance(self.source, Dataset):
            deviation, mean = torch.std_mean(self.rows(tasks), dim=0, correction=0)
            return deviation, mean
        total, square = torch.zeros(2, *self.shape, dtype=torch.float64, device=device)
        origin = self.rows(tasks[:1])[0].double()  # so squares of small numbers lose no digits
        for some in torch.split(tasks, rows_at_once(int(np.prod(self.shape)))):
            x = self.rows(some).double() - origin
            total, square = total + x.sum(dim=0), square + (x**2).sum(dim=0)
        mean = total / len(tasks)
        variance = (square / len(tasks) - mean**2).clamp_min(0.0)
        return variance.sqrt().float(), (mean + origin).float()

    def to(self, device: torch.device) -> Features:
        """Move the whole table at once, if there is one."""
        moved = self.source.to(device) if isinstance(self.source, Tensor) else self.source
        return Features(moved, self.order, names=self.names)


def as_features(X: FeaturesLike, tasks: Array | None = None) -> Features:
    """Convert features of any kind; ``tasks`` names the rows they must have.

    A frame indexed by the tasks' names is put in their order; anything else must
    have one row per task, in the order of the tasks.
    """
    order = None
    if isinstance(X, Features):
        return X
    if isinstance(X, np.memmap) and X.ndim > 1 and X.dtype.kind in "fiub":
        X = MappedRows(X)
    if X is None:
        source: Any = torch.arange(0 if tasks is None else len(tasks))
    elif isinstance(X, MappedRows):
        source = X.in_order(tasks)
    elif isinstance(X, Dataset) or issparse(X):
        source = X.tocsr() if issparse(X) else X
    elif isinstance(X, Tensor):
        plain = X.is_floating_point() or (X.ndim > 1 and not X.is_complex())
        source = X.detach().float() if plain else X
    else:
        order = order_by_name(X, tasks) if isinstance(X, pd.DataFrame | pd.Series) else None
        source = torch.as_tensor(_as_array(X), dtype=torch.float32)
    _refuse_complex(source)
    rows = issparse(source) or (isinstance(source, Tensor) and source.is_floating_point())
    if rows and (len(source.shape) < 2 or 0 in source.shape[1:]):
        refuse_flat(tuple(source.shape))
    names = X.names if isinstance(X, MappedRows) else None
    if hasattr(X, "columns"):
        names = column_names(X)
    features = Features(source, order, names=names)
    if tasks is not None and features.n_tasks != len(tasks):
        refuse_other_rows(features.n_tasks, tasks)
    if not isinstance(source, Dataset):
        _refuse_missing(source)
    return features


def refuse_other_shape(features: Features, shape: tuple[int, ...]) -> None:
    """Refuse rows of another width than in fit, where they had ``shape``."""
    if len(shape) == len(features.shape) == 1:  # images may have other sizes
        refuse_width(features.shape[0], shape[0])


def remember_columns(model: BaseEstimator, names: Array | None, number: int | None) -> None:
    """Set what scikit-learn's estimators know about the X in fit, if it is known."""
    known = {"feature_names_in_": names, "n_features_in_": number}
    for name, value in known.items():
        vars(model).pop(name, None)
        if value is not None:
            setattr(model, name, value)


def remember_features(model: BaseEstimator, features: Features) -> None:
    """Record the shape and the columns of the features that a model learns from."""
    model.feature_shape_ = features.shape
    own = features.source if isinstance(features.source, Features) else features
    remember_columns(model, own.names, own.shape[0] if len(own.shape) == 1 else None)


def refuse_other_features(features: Features, model: BaseEstimator) -> None:
    """Refuse features with other columns than in fit."""
    own = features.source if isinstance(features.source, Features) else features
    refuse_other_columns(own.names, getattr(model, "feature_names_in_", None))
    refuse_other_shape(features, model.feature_shape_)


def take(X: FeaturesLike, rows: Ints) -> FeaturesLike:
    """Return some rows of X, of any kind."""
    if isinstance(X, Dataset):
        return Subset(X, rows.tolist())
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "shape"):
        return X.tocsr()[rows] if issparse(X) else X[rows]
    return [X[row] for row in rows]


def _features_only(item: object) -> object:
    """Return a dataset's item without its label."""
    return item[0] if isinstance(item, tuple | list) else item


def _as_array(X: FeaturesLike) -> Array:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    array = frame.to_numpy() if isinstance(frame, nw.DataFrame) else np.asarray(X)
    _refuse_complex(array)
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
    return array


def _refuse_rows(n: int, shape: tuple[int, ...], bytes_each: int = 4) -> None:
    """Refuse to take so many rows from disk at once that they would not fit into memory."""
    needed = float(n * bytes_each) * float(np.prod(shape))
    if needed > LARGE:
        refuse_too_large(
            "A step that takes the features of many tasks at once",
            needed,
            f"{n:,} tasks x {int(np.prod(shape)):,} numbers",
            "choose a method that reads some rows at a time, such as SpeeLFC or LIA; or train in "
            "batches, with training=Training(batch_size=1000, batch_of='tasks')",
            AnnotationError,
        )


def _refuse_complex(X: FeaturesLike) -> None:
    if "complex" in str(getattr(X, "dtype", "")):
        raise AnnotationError(
            explain(
                "X holds complex numbers.",
                expected="real numbers",
                fix="give the real and the imaginary part as separate features",
            )
        )


def _refuse_missing(table: FeaturesLike, rows: Tensor | None = None) -> None:
    """Refuse values that are not finite numbers; ``rows`` are the rows of X in the table."""
    if issparse(table):
        bad = np.flatnonzero(~np.isfinite(table.data))
        row = np.searchsorted(table.indptr, bad, side="right") - 1
        place = np.stack([row, table.indices[bad]], axis=1)
    elif isinstance(table, Tensor) and table.is_floating_point():
        place = torch.nonzero(~torch.isfinite(table)).cpu().numpy()
    else:
        return
    if len(place):
        first = int(place[0, 0]) if rows is None else int(rows[place[0, 0]])
        raise AnnotationError(
            explain(
                f"X has {len(place):,} values that are missing or infinite.",
                first=f"row {first}, column {int(place[0, 1]) if place.shape[1] > 1 else 0}",
                expected="finite numbers",
                fix="fill them in first, for example with sklearn.impute.SimpleImputer",
            )
        )


def rows_at_once(cells: int) -> int:
    """Return how many rows to process together if each needs this many temporary numbers."""
    return max(1, min(ROWS_AT_ONCE, CELLS_AT_ONCE // max(cells, 1)))


def refuse_misfit(truth: nn.Module, x: Tensor, n_classes: int) -> None:
    """Refuse a user's truth model that does not turn the rows ``x`` into logits."""
    cause: Exception | None = None
    try:
        found = try_module(truth, x)
        first = str(tuple(found.shape)) if isinstance(found, Tensor) else repr(found)
    except Exception as error:
        first, cause = f"{type(error).__name__}: {error}", error
    wanted = (len(x), n_classes)
    if first != str(wanted):
        raise ParameterError(
            explain(
                "truth does not turn these features into logits.",
                first=f"{first:.200}",
                expected=f"a torch.nn.Module that turns features {tuple(x.shape)} into {wanted}: "
                "one row per task, one column per class",
                fix="check the input and output sizes of the module",
            )
        ) from cause


@torch.no_grad()
def try_module(module: nn.Module, x: Tensor) -> Any:
    """Apply a module to rows without changing it or torch's random numbers."""
    device, mode = next((p.device for p in module.parameters()), x.device), module.training
    try:
        with torch.random.fork_rng(devices=[]):
            return module.eval()(x.to(device))
    finally:
        module.train(mode)


def worker_table(features: FeaturesLike | None, workers: Array) -> Tensor | None:
    """Return features of workers, one row of numbers each; frames are matched by name."""
    return None if features is None else named_table(features, workers, "worker", "worker_features")


def named_table(features: FeaturesLike, names: Array, role: str, what: str) -> Tensor:
    """Return a row of numbers for each name; a frame is matched by its index."""
    order = order_by_name(features, names, role, what, needed=True)
    rows = features.detach() if isinstance(features, Tensor) else features
    if order is not None and isinstance(features, pd.DataFrame | pd.Series):
        rows = features.iloc[order]
    table = np.asarray(rows)
    try:
        if table.dtype.kind == "c":
            table = table.astype(np.float32, casting="same_kind")  # refuses to drop a part
        table = table.astype(np.float32)
        shaped = table.ndim == 2 and len(table) == len(names)
        bad = ~np.isfinite(table)
        first, wrong = f"shape {table.shape}", not shaped or bool(bad.any())
        if shaped and wrong:
            first = f"row {int(bad.any(axis=1).argmax())} holds {table[bad][0]}"
    except (TypeError, ValueError) as error:
        wrong, first = True, str(error)
    if wrong:
        raise AnnotationError(
            explain(
                f"{what} are not a table of {len(names):,} rows of numbers.",
                first=first,
                expected=f"one row of finite numbers per {role}, or a frame indexed by {role}",
                fix="encode text as numbers, and fill in what is missing",
            )
        )
    return torch.as_tensor(table)
