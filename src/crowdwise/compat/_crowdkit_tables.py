"""Tables as crowd-kit has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.typing import Array, Floats

EPSILON = 1e-10  # least count in a confusion matrix


def annotations_of(data: Any) -> Annotations:
    """A frame with the columns task, worker and label as annotations."""
    if isinstance(data, Annotations):
        return data
    absent = [name for name in ("task", "worker", "label") if name not in data]
    if absent:
        raise AnnotationError.missing_column(
            absent[0],
            where="The data",
            found=list(data),
            fix="rename the columns to task, worker and label",
        )
    return Annotations.from_frame(data)


def accuracy_of(votes: Annotations, truth: pd.Series) -> pd.Series:
    """How often each worker gives the truth, what is repeated counted once; by worker."""
    rows = np.unique(np.column_stack([votes.task, votes.worker, votes.label]), axis=0)
    place = locate(np.asarray(truth.index), votes.tasks)[rows[:, 0]]
    rows, place = rows[place >= 0], place[place >= 0]
    code = locate(votes.classes, truth.to_numpy())[place]
    right = np.bincount(rows[:, 1], rows[:, 2] == code, votes.n_workers)
    asked = np.bincount(rows[:, 1], minlength=votes.n_workers)
    index = pd.Index(votes.workers, name="worker")
    share = np.divide(right, asked, out=np.full(len(asked), np.nan), where=asked > 0)
    return pd.Series(share, index=index, name="skill").dropna()


def errors_of(
    votes: Annotations, counts: Floats, data: Any, *, normalized: bool = False
) -> pd.DataFrame:
    """P(label | truth) as crowd-kit has it: a row for each worker and label that occur.

    ``counts[worker, truth, label]`` are brought to sum to one over the worker's labels, unless
    they are ``normalized`` over all classes.
    """
    seen = pd.MultiIndex.from_frame(data[["worker", "label"]].drop_duplicates())
    names = pd.MultiIndex.from_product([votes.workers, votes.classes], names=["worker", "label"])
    wide = counts.swapaxes(1, 2).reshape(-1, votes.n_classes)  # (worker and label, truth)
    table = pd.DataFrame(wide, index=names, columns=votes.classes).loc[seen]
    if normalized:
        return table
    table = table.clip(lower=EPSILON)
    return table / table.groupby("worker").transform("sum")


def expected_accuracy(votes: Annotations, posterior: Floats) -> pd.Series:
    """How often each worker is right, by a posterior."""
    right = posterior[votes.task, votes.label]
    n_workers, size = votes.n_workers, np.bincount(votes.worker, minlength=votes.n_workers)
    index = pd.Index(votes.workers, name="worker")
    share = np.bincount(votes.worker, right, n_workers) / np.maximum(size, 1)
    return pd.Series(share, index=index, name="skill")


def priors_of(posterior: Floats, votes: Annotations) -> pd.Series:
    """The mean posterior of each class."""
    index = pd.Index(votes.classes, name="label")
    return pd.Series(posterior.mean(axis=0), index=index, name="prior")


def one_mean(means: Any, name: str) -> float:
    """The mean that all have; 1 by default."""
    values: Array = np.unique(1.0 if means is None else np.asarray(means, dtype=np.float64))
    if len(values) != 1:
        raise ParameterError(
            explain(f"{name} has {len(values)} values.", expected="the same mean for all")
        )
    return float(values[0])
