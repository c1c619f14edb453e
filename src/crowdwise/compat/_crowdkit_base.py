"""Shared parts of crowd-kit's aggregators: tables, votes by skill, results as attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Self, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.base.aggregator import Aggregator
from crowdwise.errors import AnnotationError, ParameterError, explain, listing
from crowdwise.inference import MemoryEngine
from crowdwise.typing import Array, Floats, GoldLike

Table: TypeAlias = pd.DataFrame | Annotations  # columns task, worker and label

ON_MISSING_SKILL = ("error", "ignore", "value")
EPSILON = 1e-10  # smallest count in a confusion matrix


class CrowdKitAggregator(BaseEstimator):
    """The methods that all of them have."""

    fit: Callable[..., Self]
    labels_: pd.Series
    probas_: pd.DataFrame

    def fit_predict(self, data: Table, *more: object, **named: object) -> pd.Series:
        """Same as ``fit(…).labels_``: a series ``agg_label`` by task."""
        return self.fit(data, *more, **named).labels_

    def fit_predict_proba(self, data: Table, *more: object, **named: object) -> pd.DataFrame:
        """Same as ``fit(…).probas_``: a frame task x label."""
        return self.fit(data, *more, **named).probas_


class Fitted(CrowdKitAggregator):
    """One of our aggregators with crowd-kit's attributes."""

    def _fit(
        self,
        model: Aggregator,
        votes: Annotations,
        data: pd.DataFrame | None = None,
        gold: GoldLike = None,
    ) -> None:
        """Fit ours; with ``data``, tasks come in the order of their first row."""
        if not votes.n_annotations:
            self.labels_, self.probas_ = pd.Series(dtype=object), pd.DataFrame()
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # crowd-kit gives none either
            model.fit(votes, gold)
        seen = slice(None) if data is None else pd.unique(data["task"])
        self.labels_, self.probas_ = model.labels_.loc[seen], model.probas_.loc[seen]
        if hasattr(model, "objective_"):
            self.loss_history_ = [value / votes.n_annotations for value in model.objective_]


class Voting(CrowdKitAggregator):
    """A weighted vote."""

    default_skill: float | None = None
    on_missing_skill: str = "error"

    def _vote(self, data: Table, skills: pd.Series | None = None) -> Annotations:
        """Set ``probas_`` and ``labels_``; returns the annotations that were counted."""
        votes = annotations_of(data)
        weights = None
        if skills is not None:
            votes, weights = self._with_skill(votes, pd.Series(skills))
        shares = self._shares(votes, weights)
        tasks, labels = pd.Index(votes.tasks, name="task"), pd.Index(votes.classes, name="label")
        self.probas_ = pd.DataFrame(shares, index=tasks, columns=labels)
        best = votes.classes[shares.argmax(axis=1)] if len(shares) else votes.classes[:0]
        self.labels_ = pd.Series(best, index=tasks, name="agg_label")
        return votes

    def _shares(self, votes: Annotations, weights: Floats | None) -> Floats:
        return MemoryEngine(votes).shares(weights)

    def _with_skill(self, votes: Annotations, skills: pd.Series) -> tuple[Annotations, Floats]:
        """Return the annotations that count, and the weight of every worker."""
        if self.on_missing_skill not in ON_MISSING_SKILL:
            raise ParameterError(
                f"on_missing_skill={self.on_missing_skill!r} is unknown.\n"
                f"  expected: {', '.join(ON_MISSING_SKILL)}"
                "\n  fix:      choose one of these"
            )
        weights = skills.reindex(votes.workers).to_numpy(dtype=np.float64, copy=True)
        missing = np.isnan(weights)
        if not missing.any():
            return votes, weights
        if self.on_missing_skill == "value" and self.default_skill is not None:
            weights[missing] = self.default_skill
            return votes, weights
        kept = votes.filter(~missing[votes.worker])
        bare = np.flatnonzero(kept.redundancy == 0)
        if self.on_missing_skill != "ignore" or len(bare):
            raise AnnotationError(
                explain(
                    f"{int(missing.sum()):,} of {len(missing):,} workers have no skill.",
                    first=listing(votes.workers[missing], 3),
                    fix="fit on their labels too, or on_missing_skill='ignore' or 'value'",
                )
            )
        return kept, np.nan_to_num(weights)


class Weighted(Voting):
    """A vote by the ``skills_`` found in ``fit``, for any annotations."""

    skills_: pd.Series

    def predict(self, data: Table) -> pd.Series:
        """Return the most probable label of every task."""
        check_is_fitted(self, "skills_")
        self._vote(data, self.skills_)
        return self.labels_

    def predict_proba(self, data: Table) -> pd.DataFrame:
        """Return the share of the skills behind each label."""
        self.predict(data)
        return self.probas_

    def fit_predict(self, data: Table, *more: object, **named: object) -> pd.Series:
        """Same as ``fit(…).predict(data)``."""
        return self.fit(data, *more, **named).predict(data)

    def fit_predict_proba(self, data: Table, *more: object, **named: object) -> pd.DataFrame:
        """Same as ``fit(…).predict_proba(data)``."""
        return self.fit(data, *more, **named).predict_proba(data)


def annotations_of(data: Table) -> Annotations:
    """Convert a frame with the columns task, worker and label to annotations."""
    if isinstance(data, Annotations):
        return data
    absent = [name for name in ("task", "worker", "label") if name not in data]
    if absent:
        raise AnnotationError.missing_column(
            absent[0],
            where="The data",
            found=list(data),
            fix="name the columns task, worker and label",
        )
    return Annotations.from_frame(data)


def accuracy_by_worker(votes: Annotations, truth: pd.Series) -> pd.Series:
    """Return how often each worker gives the true label; repeated labels count once."""
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
    votes: Annotations, counts: Floats, data: pd.DataFrame, *, normalized: bool = False
) -> pd.DataFrame:
    """Return P(label | truth) in crowd-kit's form: a row for each worker and label that occur.

    ``counts[worker, truth, label]`` are scaled to sum to one over the worker's labels, unless
    they are already ``normalized`` over all classes.
    """
    seen = pd.MultiIndex.from_frame(data[["worker", "label"]].drop_duplicates())
    names = pd.MultiIndex.from_product([votes.workers, votes.classes], names=["worker", "label"])
    wide = counts.swapaxes(1, 2).reshape(-1, votes.n_classes)  # (worker and label, truth)
    table = pd.DataFrame(wide, index=names, columns=votes.classes).loc[seen]
    if normalized:
        return table
    table = table.clip(lower=EPSILON)
    return table / table.groupby("worker").transform("sum")


def mean_accuracy(votes: Annotations, posterior: Floats) -> pd.Series:
    """Return how often each worker is expected to be right under a posterior."""
    right = posterior[votes.task, votes.label]
    n_workers, size = votes.n_workers, np.bincount(votes.worker, minlength=votes.n_workers)
    index = pd.Index(votes.workers, name="worker")
    share = np.bincount(votes.worker, right, n_workers) / np.maximum(size, 1)
    return pd.Series(share, index=index, name="skill")


def priors_of(posterior: Floats, votes: Annotations) -> pd.Series:
    """Return the mean posterior of each class."""
    index = pd.Index(votes.classes, name="label")
    return pd.Series(posterior.mean(axis=0), index=index, name="prior")


def one_mean(means: ArrayLike | None, name: str) -> float:
    """Return the one mean that all share; 1 by default."""
    values: Array = np.unique(1.0 if means is None else np.asarray(means, dtype=np.float64))
    if len(values) != 1:
        raise ParameterError(
            explain(
                f"{name} has {len(values)} values.",
                expected="the same mean for all",
                fix="give one value for all",
            )
        )
    return float(values[0])
