"""The shared part of methods with a confusion matrix per worker."""

from collections.abc import Mapping
from typing import Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import Aggregator, by_worker
from crowdwise.errors import AnnotationError
from crowdwise.inference.engines.engine import CELL, Engine, Posterior
from crowdwise.inference.engines.pair_belief import PairBelief
from crowdwise.inference.simplex import log_of, normalize
from crowdwise.memory import LARGE, refuse_too_large
from crowdwise.typing import Floats


class ConfusionModel(Aggregator):
    """A method whose workers have ``confusion_[worker, truth, label]`` and truths ``prior_``."""

    prior_: Floats
    confusion_: Floats

    @property
    def skills_(self) -> pd.Series:
        """Probability that each worker is right on a task drawn from ``prior_``."""
        check_is_fitted(self)
        right = np.einsum("wkk,k->w", self.confusion_, self.prior_)
        return by_worker(right, self.workers_)

    def _posterior(self, engine: Engine) -> Posterior:
        return engine.posterior(log_of(self.prior_), log_of(self.confusion_))

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"confusion_": self.confusion_}

    def _memory(self, engine: Engine) -> int:
        return super()._memory(engine) + CELL * engine.n_workers * engine.n_classes**2


class PairModel(Aggregator):
    """A method whose ``belief_`` is stored only for the (worker, label) pairs that occur.

    ``confusion_`` and ``counts_``, matrices of all pairs, are made on request.
    """

    prior_: Floats
    belief_: PairBelief

    @property
    def confusion_(self) -> Floats:
        return normalize(self.counts_)

    @property
    def counts_(self) -> Floats:
        check_is_fitted(self)
        return make_whole(self.belief_)

    @property
    def skills_(self) -> pd.Series:
        check_is_fitted(self)
        return by_worker(self.belief_.diagonal() @ self.prior_, self.workers_)

    @property
    def _averages(self) -> bool:
        """Whether matrices are unknowns to average over, so that E[log confusion] counts."""
        return True

    @property
    def _log_prior(self) -> Floats:
        return np.asarray(np.log(self.prior_))

    def _tables(self, engine: Engine) -> tuple[Floats, float]:
        """Return the workers' tables, and their prior's contribution to the objective."""
        if not self._averages:
            return self.belief_.log_mean(engine.n_threads)
        table, distance = self.belief_.expected_log(engine.n_threads)
        return table, -distance

    def _posterior(self, engine: Engine) -> Posterior:
        table = self.belief_.of(engine.pairs, expected=self._averages)
        return engine.pair_posterior(self._log_prior, table)

    def _adapt(self, data: Annotations, *, unknown_workers: bool) -> Self:
        model, known = super()._adapt(data, unknown_workers=unknown_workers), self.belief_
        if unknown_workers:
            average = known.mean_counts() if self._averages else known.mean_shares()
            model.belief_ = known.with_unknown(average)
        return model

    def _memory(self, engine: Engine) -> int:
        return super()._memory(engine) + CELL * len(engine.pairs) * engine.n_classes


def make_whole(belief: PairBelief) -> Floats:
    """Return counts of all pairs, (worker, truth, label), if they fit into memory."""
    refuse_matrices(belief.pairs.n_workers, belief.pairs.n_classes, "use skills_ and predict")
    return belief.all_counts()


def refuse_matrices(n_workers: int, n_classes: int, fix: str) -> None:
    """Refuse to make a matrix for every worker if they would not fit into memory."""
    if (needed := 8 * n_workers * n_classes**2) > LARGE:
        size = f"{n_workers:,} matrices of {n_classes:,} x {n_classes:,}"
        refuse_too_large("confusion_", needed, size, fix, AnnotationError)
