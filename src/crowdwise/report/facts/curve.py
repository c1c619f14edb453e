"""How accuracy would change with fewer or more labels per task."""

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
BAGS = 20  # of a method that bags
MOST_ANNOTATIONS = 60_000  # more than these are sampled, whole tasks at a time
LARGE = 200_000  # cells of confusion matrices above which one draw is enough
PANEL = 100  # workers to draw labels from, at least
SPREAD = (0.05, 0.95)


@dataclass(frozen=True)
class CurvePoint:
    """What to expect from a number of labels per task."""

    n_labels: int
    forecast: float  # accuracy, by simulation from the fitted workers
    low: float  # for other crowds of workers like these
    high: float
    kept: float  # share of tasks that keep the label from all annotations; NaN beyond the data
    measured: float  # accuracy on known truths; NaN without


@dataclass(frozen=True)
class CurveFacts:
    """Accuracy by labels per task."""

    now: float  # mean labels per task
    points: tuple[CurvePoint, ...]
    note: str


def curve_facts(
    data: Annotations, model: Aggregator, truth: pd.Series | None, random_state: RandomState
) -> CurveFacts | None:
    """Forecast by simulation, and measure what random subsets of the labels give."""
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
    """A copy to be fitted many times: labels hardly change from 20 bags on."""
    bags = {"n_bags": BAGS} if "n_bags" in model.get_params(deep=False) else {}
    return clone(model).set_params(**bags)


def forecast(
    data: Annotations, posterior: Floats, steps: list[int], random_state: RandomState
) -> Floats:
    """Accuracy with each number of labels, (step, crowd), in simulated crowds like this one.

    Workers are drawn again from those of the data, by how much they label, with the
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
    """With at most this many labels per task: the shares that keep their label, and are right."""
    large = data.n_workers * data.n_classes**2 > LARGE
    n_draws = 1 if large else N_DRAWS
    kept, right = fit_with_fewer_labels(data, model, whole, n_labels, truth, n_draws, random_state)
    return float(kept.mean()), float(right.mean())
