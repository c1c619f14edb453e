"""Forecast of accuracy with fewer or more labels per task."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import check_random_state

from crowdwise import progress
from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.base.aggregator import Aggregator
from crowdwise.evaluate import accuracy
from crowdwise.evaluate.learning_curve import (
    LABELS_PER_TASK,
    fit_and_time,
    fit_with_fewer_labels,
)
from crowdwise.inference import MemoryEngine, log_of, pooled_confusion
from crowdwise.inference.simplex import normalize
from crowdwise.report.facts.limits import sample_tasks
from crowdwise.simulate import label_by_crowd
from crowdwise.typing import Floats, RandomState

N_CROWDS, N_TASKS, N_DRAWS = 12, 500, 3
BAGS = 20  # for methods that use bagging
MOST_ANNOTATIONS = 60_000  # larger data are sampled, by whole tasks
LARGE = 200_000  # cells of confusion matrices above which one draw is enough
PANEL = 100  # minimum number of workers to draw labels from
SPREAD = (0.05, 0.95)


@dataclass(frozen=True)
class CurvePoint:
    """The expected result of a number of labels per task."""

    n_labels: int
    forecast: float  # accuracy, simulated from the fitted workers
    low: float  # for other crowds of such workers
    high: float
    kept: float  # share of tasks whose label is that of all annotations; NaN beyond the data
    measured: float  # accuracy on known truths; NaN if there are none


@dataclass(frozen=True)
class CurveFacts:
    """Accuracy by labels per task."""

    now: float  # mean labels per task
    points: tuple[CurvePoint, ...]
    note: str


def curve_facts(
    data: Annotations, model: Aggregator, truth: pd.Series | None, random_state: RandomState
) -> CurveFacts | None:
    """Forecast accuracy by simulation, and measure it on random subsets of the labels."""
    if data.n_classes < 2 or data.n_workers < 2:
        return None
    sample, note = sample_tasks(data, MOST_ANNOTATIONS, random_state)
    if truth is not None:
        truth = truth[locate(sample.tasks, truth.index.to_numpy()) >= 0]
    now = float(sample.redundancy.mean())
    most = max(min(2 * now, 50), now + 2, 3)
    steps = [n for n in LABELS_PER_TASK if n <= most]
    forecasts = forecast(data, model.posterior_, steps, random_state)
    model = with_fewer_bags(model)
    whole = fit_and_time(model, sample).posterior
    points = []
    counted = progress.track(steps, "fewer labels")
    for n_labels, accuracies in zip(counted, forecasts, strict=True):
        kept, measured = float("nan"), float("nan")
        if n_labels < sample.redundancy.max():
            kept, measured = try_fewer_labels(sample, model, whole, n_labels, truth, random_state)
        low, high = np.quantile(accuracies, SPREAD)
        points.append(
            CurvePoint(n_labels, float(accuracies.mean()), float(low), float(high), kept, measured)
        )
    return CurveFacts(now, tuple(points), note)


def with_fewer_bags(model: Aggregator) -> Aggregator:
    """Return a copy for repeated fitting: beyond 20 bags, labels hardly change."""
    bags = {"n_bags": BAGS} if "n_bags" in model.get_params(deep=False) else {}
    return clone(model).set_params(**bags)


def forecast(
    data: Annotations, posterior: Floats, steps: list[int], random_state: RandomState
) -> Floats:
    """Simulate crowds like this one; returns accuracy by number of labels, (step, crowd).

    Workers are resampled from those of the data, weighted by how much they label, with the
    confusion matrices that the posterior implies; truths are drawn from its class shares.
    """
    rng = check_random_state(random_state)
    n_classes = data.n_classes
    confusion = pooled_confusion(data, posterior)
    prior = normalize(posterior[data.redundancy > 0].sum(axis=0))
    labels = np.bincount(data.worker, minlength=data.n_workers).astype(np.float64)
    found = np.zeros((len(steps), N_CROWDS))
    for crowd in progress.track(range(N_CROWDS), "forecasting", unit="crowd"):
        drawn = rng.choice(data.n_workers, data.n_workers)
        if not labels[drawn].any():
            drawn = np.arange(data.n_workers)
        odds = labels[drawn] / labels[drawn].sum()
        panel = confusion[rng.choice(drawn, max(PANEL, *steps), p=odds)]
        truth = rng.choice(n_classes, N_TASKS, p=prior)
        for row, n_labels in enumerate(steps):
            votes = label_by_crowd(truth, panel, n_labels, random_state=rng)
            inferred = MemoryEngine(votes).posterior(log_of(prior), log_of(panel))
            found[row, crowd] = accuracy(inferred, truth)
    return found


def try_fewer_labels(
    data: Annotations,
    model: Aggregator,
    whole: Floats,
    n_labels: int,
    truth: pd.Series | None,
    random_state: RandomState,
) -> tuple[float, float]:
    """Measure how many labels stay the same, and are right, with at most this many per task."""
    large = data.n_workers * data.n_classes**2 > LARGE
    n_draws = 1 if large else N_DRAWS
    kept, right = fit_with_fewer_labels(data, model, whole, n_labels, truth, n_draws, random_state)
    return float(kept.mean()), float(right.mean())
