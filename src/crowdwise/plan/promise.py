"""Which tasks are done: those whose labels are right to a promised share."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import betaincinv, softmax
from scipy.stats import hypergeom

from crowdwise.annotations import TIE
from crowdwise.plan.other_labels import MOST_LABELS, TINY, find_heat, sample, without_own
from crowdwise.plan.outlook import Outlook
from crowdwise.typing import Array, Floats, Ints

ENOUGH = 5  # times as many truths as of very many tasks are always enough
MOST_TRUTHS = 0.9  # share of the tasks above which a promise would be about hardly any others
MISSED = 0.01  # chance that one look promises too much: over many looks, below 5%


@dataclass(frozen=True)
class Promise:
    """The tasks that need no more labels, and how many of their labels are right.

    Attributes
    ----------
    tasks : Series
        Probability that each done task's label is right, by task.
    accuracy : float
        Expected share of right labels among them: by known truths if these can check it, else
        by the labels alone, which is too high if workers err together.
    low, high : float
        At least ``low`` of the labels whose truth is unknown are right: a single look is wrong
        in 1% of cases, and all looks at a crowd together in less than 5%. The share exceeds
        ``high`` in 2.5%. NaN if nothing can be promised: labels alone never can.
    target : float
        The share that was asked for; ``low`` is at least this.
    n_gold : int
        Number of done tasks with known truths behind the promise.
    checked : bool
        Whether there are enough known truths to check the target, of tasks drawn at
        random. If so, tasks are done only if a promise can be made about them.
    """

    tasks: pd.Series
    accuracy: float
    low: float
    high: float
    target: float
    n_gold: int = 0
    checked: bool = False


def soften(outlook: Outlook) -> Floats:
    """Soften the posterior until it predicts held-out labels best.

    Each label in turn is predicted from the other labels of its task. If workers err
    together, these tell less than a model of independent workers assumes, and a
    temperature above 1 predicts better.
    """
    votes, posterior = outlook.votes, outlook.posterior
    several = np.flatnonzero(votes.redundancy[votes.task] > 1)
    if not len(several):
        return posterior
    several = sample(votes, several, MOST_LABELS)  # enough for a single number
    parts = list(without_own(votes, posterior, several))
    others, own = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    heat = find_heat(others, own)
    return np.asarray(softmax(np.log(np.maximum(posterior, TINY)) / heat, axis=1))


def find_done(
    outlook: Outlook, posterior: Floats, target: float, min_labels: int, right: Array | None
) -> Promise:
    """Find as many tasks as possible for which the target can be promised, surest first.

    ``posterior`` is that of the labels alone, and ``right`` says whether its best class is the
    truth, NaN if unknown. Tasks with a known truth are always done. With too few of them, or
    none, tasks are done for which the labels lead to expect the target.
    """
    sure = posterior.max(axis=1)
    order = np.flatnonzero(outlook.n_labels >= min_labels)
    order = order[np.argsort(-sure[order], kind="stable")]
    whole = np.append(np.diff(sure[order]) < -TIE, True)[: len(order)]  # ties stay together
    right = np.full(len(sure), np.nan) if right is None else right
    checked = int((~np.isnan(right)).sum()) >= truths_needed(target, len(sure))
    accuracy = low = high = math.nan
    n_gold = 0
    if checked:
        last, tally = find_shown(right[order], whole, target)
        if last:
            n_gold = tally.n_gold
            low, high = tally.low(), tally.high()
            accuracy = max(1.0 - (tally.wrong + 0.5) / (n_gold + 1.0), low)
    else:
        mean = np.cumsum(sure[order]) / np.arange(1, len(order) + 1)
        met = np.flatnonzero((mean >= target) & whole)
        last = int(met[-1]) + 1 if len(met) else 0
        accuracy = float(mean[last - 1]) if last else math.nan
    chosen = np.union1d(order[:last], np.flatnonzero(outlook.known))
    names = pd.Index(outlook.votes.tasks[chosen], name="task", tupleize_cols=False)
    sure = np.where(outlook.known, 1.0, sure)
    tasks = pd.Series(sure[chosen], index=names, name="confidence")
    return Promise(tasks, accuracy, low, high, target, n_gold, checked)


def truths_needed(target: float, n_tasks: int | None = None) -> float:
    """Return how many known truths, all of their labels right, are needed to promise this share.

    Of ``n_tasks`` tasks more are needed than of very many: what is promised is about the others,
    and these are few. Infinite if not even all truths but one suffice.
    """
    if target >= 1:
        return math.inf
    least = math.ceil(math.log(MISSED) / math.log(target)) if target > 0 else 1
    if n_tasks is None:
        return least
    tried = np.arange(least, min(n_tasks, ENOUGH * least))
    allowed = np.floor((1.0 - target) * (n_tasks - tried) + TINY).astype(np.int64)
    shown = rules_out(n_tasks, tried, 0, allowed)
    return int(tried[shown.argmax()]) if shown.any() else math.inf


@dataclass(frozen=True)
class Tally:
    """Known truths among some tasks."""

    n_tasks: int
    n_gold: int
    wrong: int

    def low(self) -> float:
        """Lower limit of the share of the other tasks that is right."""
        others = self.n_tasks - self.n_gold
        counts = self.n_tasks, self.n_gold, self.wrong
        fewest = bisect_left(range(others), 1, key=lambda n: int(rules_out(*counts, n)))
        return 1.0 - fewest / max(others, 1)

    def high(self) -> float:
        """Limit that the share of right labels exceeds in 2.5% of cases."""
        if not self.wrong:
            return 1.0
        return float(betaincinv(self.n_gold - self.wrong + 1.0, self.wrong, 0.975))


def find_shown(right: Floats, whole: Array, target: float) -> tuple[int, Tally]:
    """Return the number of tasks, surest first, for which known truths show the target.

    Numbers of truths are tried in ascending order, from the smallest sufficient one to the first
    failure: in an order that does not depend on what is right, all tests hold together.
    """
    known = ~np.isnan(right)
    n_gold, wrong = np.cumsum(known), np.cumsum(known & (right == 0))
    ends = np.flatnonzero(whole)
    ends = ends[np.append(np.diff(n_gold[ends]) > 0, True)[: len(ends)]]
    n_tasks, n_gold, wrong = ends + 1, n_gold[ends], wrong[ends]
    allowed = np.floor((1.0 - target) * (n_tasks - n_gold) + TINY).astype(np.int64)
    tried = rules_out(n_tasks, n_gold, 0 * wrong, allowed)
    failed = np.logical_or.accumulate(tried & ~rules_out(n_tasks, n_gold, wrong, allowed))
    met = np.flatnonzero(tried & ~failed)
    if not len(met):
        return 0, Tally(0, 0, 0)
    best = met[-1]
    return int(n_tasks[best]), Tally(int(n_tasks[best]), int(n_gold[best]), int(wrong[best]))


def rules_out(
    n_tasks: Ints | int, n_gold: Ints | int, wrong: Ints | int, allowed: Ints | int
) -> Array:
    """Return whether truths of tasks drawn at random rule out more errors among the others.

    If more than ``allowed`` were wrong, so few errors among the truths would be rare.
    """
    too_many = np.minimum(np.add(wrong, allowed) + 1, n_tasks)
    rare = hypergeom.cdf(wrong, n_tasks, too_many, n_gold) <= MISSED
    return np.asarray(rare | (np.asarray(allowed) >= np.subtract(n_tasks, n_gold)))
