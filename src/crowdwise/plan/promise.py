"""Which tasks are done: labels of which a promised share is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import betaincinv, log_softmax, softmax

from crowdwise.annotations import TIE
from crowdwise.inference import pooled_confusion
from crowdwise.plan.outlook import Outlook
from crowdwise.typing import Array, Floats

ONE_SIDED = 0.05  # how often the lower end may be too high
WORD = 100.0  # known truths that the model's own word is worth
TINY = 1e-9  # so that no count is 0
MOST_LABELS = 100_000  # that are predicted
COOLEST, HOTTEST = 1.0, 8.0  # posteriors are only ever softened


@dataclass(frozen=True)
class Promise:
    """The tasks that need no more labels, and how many of their labels are right.

    Attributes
    ----------
    tasks : Series
        Probability that each done task's label is right, by task.
    accuracy, low, high : float
        Expected share of right labels among them, and an interval: the share is below ``low``
        in 5% of cases, and above ``high`` in 2.5%. NaN where nothing can be promised.
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
    several = several[:: len(several) // MOST_LABELS + 1]  # one number needs no more
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

    ``posterior`` is that of the labels alone, and ``right`` says whether its best class is the
    truth, NaN where that is not known. Tasks whose truth is known are done in any case.
    """
    sure = posterior.max(axis=1)
    order = np.flatnonzero(outlook.n_labels >= min_labels)
    order = order[np.argsort(-sure[order], kind="stable")]
    n = np.arange(1, len(order) + 1)
    mean = np.cumsum(sure[order]) / n
    spread = np.sqrt(np.cumsum(sure[order] * (1.0 - sure[order]))) / n
    ends = [mean - 1.645 * spread, np.minimum(mean + 1.96 * spread, 1.0)]
    n_gold = np.zeros(len(order), dtype=np.int64)
    if right is not None:
        n_gold = np.cumsum(~np.isnan(right[order]))
        hits = np.cumsum(np.nan_to_num(right[order]))
        counts = WORD * mean + hits, WORD * (1.0 - mean) + n_gold - hits + TINY
        judged = [betaincinv(*counts, level) for level in (ONE_SIDED, 1.0 - ONE_SIDED / 2)]
        ends = [np.where(n_gold > 0, *pair) for pair in zip(judged, ends, strict=True)]
        mean = np.where(n_gold > 0, counts[0] / (counts[0] + counts[1]), mean)
    whole = np.append(np.diff(sure[order]) < -TIE, True)[: len(order)]  # ties stay together
    met = np.flatnonzero((ends[0] >= target) & whole)
    last = int(met[-1]) + 1 if len(met) else 0
    chosen = np.union1d(order[:last], np.flatnonzero(outlook.known))
    sure = np.where(outlook.known, 1.0, sure)
    names = pd.Index(outlook.votes.tasks[chosen], name="task", tupleize_cols=False)
    tasks = pd.Series(sure[chosen], index=names, name="confidence")
    if not last:
        return Promise(tasks, np.nan, np.nan, np.nan, target)
    low, high = (float(end[last - 1]) for end in ends)
    return Promise(tasks, float(mean[last - 1]), low, high, target, int(n_gold[last - 1]))
