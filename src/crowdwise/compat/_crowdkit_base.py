"""What crowd-kit's aggregators have in common: votes by skill, and results as attributes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.compat._crowdkit_tables import annotations_of
from crowdwise.errors import AnnotationError, ParameterError, explain, listing
from crowdwise.inference import MemoryEngine
from crowdwise.typing import Floats

ON_MISSING_SKILL = ("error", "ignore", "value")


class Aggregator(BaseEstimator):
    """The verbs that all of them have."""

    labels_: pd.Series
    probas_: pd.DataFrame

    def fit_predict(self, data: Any, *more: Any, **named: Any) -> pd.Series:
        """Same as ``fit(…).labels_``: a series ``agg_label`` by task."""
        return _fitted(self, data, *more, **named).labels_

    def fit_predict_proba(self, data: Any, *more: Any, **named: Any) -> pd.DataFrame:
        """Same as ``fit(…).probas_``: a frame task x label."""
        return _fitted(self, data, *more, **named).probas_


class Fitted(Aggregator):
    """An aggregator of ours behind crowd-kit's attributes."""

    def _fit(self, model: Any, votes: Annotations, data: Any = None, gold: Any = None) -> None:
        """Fit ours; with ``data`` tasks come in the order in which it names them."""
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


class Voting(Aggregator):
    """A weighted vote."""

    default_skill: float | None = None
    on_missing_skill: str = "error"

    def _vote(self, data: Any, skills: Any = None) -> Annotations:
        """Set ``probas_`` and ``labels_``; returns the annotations that were counted."""
        votes = annotations_of(data)
        weights = None
        if skills is not None:
            votes, weights = self._known(votes, pd.Series(skills))
        shares = self._shares(votes, weights)
        tasks, labels = pd.Index(votes.tasks, name="task"), pd.Index(votes.classes, name="label")
        self.probas_ = pd.DataFrame(shares, index=tasks, columns=labels)
        best = votes.classes[shares.argmax(axis=1)] if len(shares) else votes.classes[:0]
        self.labels_ = pd.Series(best, index=tasks, name="agg_label")
        return votes

    def _shares(self, votes: Annotations, weights: Floats | None) -> Floats:
        return MemoryEngine(votes).shares(weights)

    def _known(self, votes: Annotations, skills: pd.Series) -> tuple[Annotations, Floats]:
        """The annotations that count, and the weight of every worker."""
        if self.on_missing_skill not in ON_MISSING_SKILL:
            raise ParameterError(
                f"on_missing_skill={self.on_missing_skill!r} is unknown.\n"
                f"  expected: {', '.join(ON_MISSING_SKILL)}"
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
    """A vote by ``skills_`` that ``fit`` has found, of any annotations."""

    skills_: pd.Series

    def predict(self, data: Any) -> pd.Series:
        """Most probable label of every task."""
        check_is_fitted(self, "skills_")
        self._vote(data, self.skills_)
        return self.labels_

    def predict_proba(self, data: Any) -> pd.DataFrame:
        """Share of the skills behind each label."""
        self.predict(data)
        return self.probas_

    def fit_predict(self, data: Any, *more: Any, **named: Any) -> pd.Series:
        """Same as ``fit(…).predict(data)``."""
        return _fitted(self, data, *more, **named).predict(data)

    def fit_predict_proba(self, data: Any, *more: Any, **named: Any) -> pd.DataFrame:
        """Same as ``fit(…).predict_proba(data)``."""
        return _fitted(self, data, *more, **named).predict_proba(data)


def _fitted(model: Any, *data: Any, **named: Any) -> Any:
    return model.fit(*data, **named)
