"""Which tasks are done: labels of which a promised share is right."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import betaincinv, log_softmax, softmax

from crowdwise.annotations import TIE
from crowdwise.inference import pooled_confusion
from crowdwise.plan.outlook import Outlook
from crowdwise.typing import Array, Floats, Ints

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
    checked : bool
        Whether known truths back the promise: then it is kept in 95% of cases, if they were
        drawn at random. If not, it is what the labels alone lead to expect, and is too high
        where workers err together.
    """

    tasks: pd.Series
    accuracy: float
    low: float
    high: float
    target: float
    n_gold: int = 0
    checked: bool = False


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
    outlook: Outlook,
    posterior: Floats,
    target: float,
    min_labels: int,
    right: Array | None,
    alike: bool = True,
) -> Promise:
    """The most tasks of which the promise can be made, the surest first.

    ``posterior`` is that of the labels alone, and ``right`` says whether its best class is the
    truth, NaN where that is not known. Tasks whose truth is known are done in any case. From
    59 known truths on for a target of .95 (29 for .9, 299 for .99) they alone decide, if tasks
    with known truths were labeled ``alike``.
    """
    sure = posterior.max(axis=1)
    order = np.flatnonzero(outlook.n_labels >= min_labels)
    order = order[np.argsort(-sure[order], kind="stable")]
    n = np.arange(1, len(order) + 1)
    mean = np.cumsum(sure[order]) / n
    spread = np.sqrt(np.cumsum(sure[order] * (1.0 - sure[order]))) / n
    ends = [mean - 1.645 * spread, np.minimum(mean + 1.96 * spread, 1.0)]
    n_gold, hits = np.zeros(len(order), dtype=np.int64), np.zeros(len(order))
    if right is not None:
        n_gold = np.cumsum(~np.isnan(right[order]))
        hits = np.cumsum(np.nan_to_num(right[order]))
        counts = WORD * mean + hits, WORD * (1.0 - mean) + n_gold - hits + TINY
        judged = [betaincinv(*counts, level) for level in (ONE_SIDED, 1.0 - ONE_SIDED / 2)]
        ends = [np.where(n_gold > 0, *pair) for pair in zip(judged, ends, strict=True)]
        mean = np.where(n_gold > 0, counts[0] / (counts[0] + counts[1]), mean)
    whole = np.append(np.diff(sure[order]) < -TIE, True)[: len(order)]  # ties stay together
    n_known = int(outlook.known.sum()) if alike else 0
    checked = n_known >= truths_needed(target)
    if checked:
        low = lower_end(hits, n_gold)
        ends[0] = np.where(is_shown(low, n_gold, target), low, 0.0)
    met = np.flatnonzero((ends[0] >= target) & whole)
    last = int(met[-1]) + 1 if len(met) else 0
    chosen = np.union1d(order[:last], np.flatnonzero(outlook.known))
    sure = np.where(outlook.known, 1.0, sure)
    names = pd.Index(outlook.votes.tasks[chosen], name="task", tupleize_cols=False)
    tasks = pd.Series(sure[chosen], index=names, name="confidence")
    if not last:
        return Promise(tasks, np.nan, np.nan, np.nan, target, checked=checked)
    low_end, high_end = (float(end[last - 1]) for end in ends)
    expected = float(mean[last - 1])
    return Promise(tasks, expected, low_end, high_end, target, int(n_gold[last - 1]), checked)


def truths_needed(target: float) -> int:
    """Known truths, all of them met, from which on a promise of this share can be checked."""
    return math.ceil(math.log(ONE_SIDED) / math.log(target)) if 0 < target < 1 else 1 << 62


def lower_end(hits: Floats, n_gold: Ints) -> Floats:
    """The share that is right is below it in 5% of cases, by so many right ones of so many."""
    low = betaincinv(np.maximum(hits, TINY), n_gold - hits + 1.0, ONE_SIDED)
    return np.where(hits > 0, low, 0.0)


def is_shown(low: Floats, n_gold: Ints, target: float) -> Array:
    """For which of the surest tasks, from first to last, known truths show the target.

    From where enough truths are known, up to the first failure: tried in an order that does not
    depend on what is right, all of them hold together in 95% of cases.
    """
    tried = n_gold >= truths_needed(target)
    failed = np.logical_or.accumulate(tried & (low < target))
    return tried & ~failed
