"""What methods with a confusion matrix per worker share."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import Aggregator, by_worker
from crowdwise.errors import AnnotationError
from crowdwise.inference.engines.engine import CELL, Engine, Posterior
from crowdwise.inference.simplex import log_of
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

    def _memory(self, data: Annotations) -> int:
        return super()._memory(data) + CELL * data.n_workers * data.n_classes**2


def refuse_matrices(n_workers: int, n_classes: int, fix: str) -> None:
    """Refuse to make a matrix for every worker where they would not fit into memory."""
    if (needed := 8 * n_workers * n_classes**2) > LARGE:
        size = f"{n_workers:,} matrices of {n_classes:,} x {n_classes:,}"
        refuse_too_large("confusion_", needed, size, fix, AnnotationError)
