"""Learning curves: results with fewer labels per task, measured by leaving labels out."""

import logging
import time
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations, tied
from crowdwise.base.aggregator import Aggregator
from crowdwise.base.params import InvalidParameterError
from crowdwise.errors import ParameterError, explain
from crowdwise.evaluate.truth_alignment import align_predictions, correct_shares
from crowdwise.typing import Floats, RandomState

LABELS_PER_TASK = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50)  # points of the curve

log = logging.getLogger("crowdwise.evaluate")


@dataclass(frozen=True)
class Fit:
    """A fitted method, and how the fit went."""

    name: str
    model: Aggregator
    seconds: float
    converged: bool

    @property
    def posterior(self) -> Floats:
        return self.model.posterior_


def fit_and_time(model: Aggregator, data: Annotations) -> Fit:
    """Fit a model, and record its running time and whether it converged."""
    name = type(model).__name__
    log.info("fitting %s", name)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(data)
        except InvalidParameterError as error:
            raise ParameterError(explain(str(error), fix=f"see {name}'s documentation")) from None
    unfinished = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return Fit(name, model, time.perf_counter() - start, not unfinished)


def same_labels(posterior: Floats, other: Floats) -> float:
    """Return the share of tasks with the same label under both; ties count in part."""
    one, two = tied(posterior), tied(other)
    both = (one & two).sum(axis=1) / (one.sum(axis=1) * two.sum(axis=1))
    return float(both.mean()) if len(both) else float("nan")


def fit_with_fewer_labels(
    data: Annotations,
    model: Aggregator,
    whole: Floats,
    n_labels: int,
    truth: pd.Series | None,
    n_draws: int,
    random_state: RandomState,
) -> tuple[Floats, Floats]:
    """Fit to random subsets with at most this many labels per task.

    Returns, for each draw, the share of tasks that keep their label under ``whole``, and the
    share whose label is right; the latter is NaN if no truth is known.
    """
    rng = check_random_state(random_state)
    kept, right = np.empty(n_draws), np.full(n_draws, np.nan)
    for draw in range(n_draws):
        fit = fit_and_time(clone(model), data.subsample(n_labels, rng))
        kept[draw] = same_labels(fit.posterior, whole)
        if truth is not None and len(truth):
            known = align_predictions(fit.model, truth)
            right[draw] = correct_shares(known.posterior, known.truth).mean()
    return kept, right
