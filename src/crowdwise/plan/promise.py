"""Which tasks are done: labels of which a promised share is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import betaincinv, log_softmax, softmax

from crowdwise.inference import pooled_confusion
from crowdwise.plan.outlook import Outlook
from crowdwise.typing import Array, Floats

ONE_SIDED = 0.05  # how often the lower end may be too high
COOLEST, HOTTEST = 1.0, 8.0  # posteriors are only ever softened


@dataclass(frozen=True)
class Promise:
    """The tasks that need no more labels, and how many of their labels are right.

    Attributes
    ----------
    tasks : Series
        Probability that each done task's label is right, by task.
    accuracy, low, high : float
        Expected share of right labels among them, and a 95% interval.
    target : float
        The share that was asked for: ``low`` is at least this.
    n_gold : int
        Done tasks with known truths that the interval rests on.
    """

    tasks: pd.Series
    accuracy: float
    low: float
    high: float
    target: float
    n_gold: int = 0


def soften(outlook: Outlook) -> Floats:
    """The posterior, softened until it predicts held-out labels best.

    Each label in turn is predicted from what the other labels of its task say. Where workers
    err together this is less than a model of independent workers takes it for, and a
    temperature above 1 predicts better.
    """
    votes, posterior = outlook.votes, outlook.posterior
    several = np.flatnonzero(votes.redundancy[votes.task] > 1)
    if not len(several):
        return posterior
    confusion = pooled_confusion(votes, posterior)
    own = np.log(confusion[votes.worker[several], :, votes.label[several]])  # (label, truth)
    log_posterior = np.log(np.maximum(posterior, 1e-12))
    others = log_softmax(log_posterior[votes.task[several]] - own, axis=1)

    def loss(heat: float) -> float:
        return -float(np.log(np.exp(log_softmax(others / heat, axis=1) + own).sum(axis=1)).mean())

    found = minimize_scalar(loss, bounds=(COOLEST, HOTTEST), method="bounded")
    return np.asarray(softmax(log_posterior / found.x, axis=1))


def find_done(
    outlook: Outlook, posterior: Floats, target: float, min_labels: int, right: Array | None
) -> Promise:
    """The most tasks of which the promise can be made, the surest first.

    ``right`` says whether each task's label is right, NaN where the truth is not known.
    """
    sure = np.where(outlook.known, 1.0, posterior.max(axis=1))
    labeled = (outlook.n_labels >= min_labels) | outlook.known
    order = np.flatnonzero(labeled)[np.argsort(-sure[labeled], kind="stable")]
    n = np.arange(1, len(order) + 1)
    mean = np.cumsum(sure[order]) / n
    spread = np.cumsum(sure[order] * (1.0 - sure[order])) / n
    low = mean - 1.645 * np.sqrt(spread / n)
    n_gold = np.zeros(len(order), dtype=np.int64)
    if right is not None:
        judged = ~np.isnan(right[order])
        n_gold = np.cumsum(judged)
        hits = np.cumsum(np.where(judged, right[order], 0.0))
        worst = betaincinv(hits + 0.5, n_gold - hits + 0.5, ONE_SIDED)
        low = np.where(n_gold > 0, np.minimum(low, worst), low)
    met = np.flatnonzero(low >= target)
    last = int(met[-1]) + 1 if len(met) else 0
    chosen = order[:last]
    tasks = pd.Series(sure[chosen], index=pd.Index(outlook.votes.tasks[chosen], name="task"))
    if not last:
        return Promise(tasks.rename("confidence"), np.nan, np.nan, np.nan, target)
    width = 1.96 * np.sqrt(spread[last - 1] / last)
    ends = float(low[last - 1]), float(min(mean[last - 1] + width, 1.0))
    return Promise(
        tasks.rename("confidence"), float(mean[last - 1]), *ends, target, int(n_gold[last - 1])
    )
