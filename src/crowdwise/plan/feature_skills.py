"""Skills that depend on the features of tasks, learned from the labels so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, logit

from crowdwise.base.fitting import refuse_flat
from crowdwise.errors import AnnotationError, explain
from crowdwise.plan.other_labels import EDGE, with_accuracy, without_own
from crowdwise.plan.outlook import Outlook
from crowdwise.plan.skills import PairSkills, Skills, task_rows
from crowdwise.typing import FeaturesLike, Floats, Ints

DIRECTIONS = 10  # leading ones of the features, in which competence may differ
SPREADS = (0.0, 0.1, 0.2, 0.4, 0.8)  # of competence in one direction, in log-odds
FOLDS = 4
STEPS = 3  # of Newton's method
MOST_LABELS = 100_000  # that are learned from


@dataclass(frozen=True, eq=False)
class FeatureSkills(Skills):
    """A worker does better on some tasks than on others, as their features show.

    Each label is judged by the other labels of its task, as in :class:`PlainSkills`; a logistic
    regression for each worker says where the judgments are better than the worker's mean. How
    far it may go is chosen by tasks left out, so that it does next to nothing where features
    tell nothing of who is good at what.

    Parameters
    ----------
    X : array or frame
        Features of the planner's tasks: a row for each, in their order or indexed by their names.

    Notes
    -----
    The maths, with ``z`` the features' ten leading directions, standardized::

        log-odds of w being right on i = those of w on all tasks + z[i] @ (common + own[w])
        common ~ Normal(0, spread_1**2), own[w] ~ Normal(0, spread_2**2) in each direction
    """

    X: FeaturesLike

    @cached_property
    def directions(self) -> Floats:
        """The rows of X by leading directions of the features, standardized."""
        X = as_numbers(self.X)
        X = X - X.mean(axis=0)
        X = X / np.maximum(X.std(axis=0), 1e-9)
        left, _, _ = np.linalg.svd(X, full_matrices=False)
        return np.asarray(left[:, :DIRECTIONS] * np.sqrt(len(X)))

    def of(self, outlook: Outlook, workers: Ints) -> PairSkills:
        draw, z = outlook.drawing(), self.directions[task_rows(self.X, outlook)]
        slopes = np.vstack([find_slopes(outlook, z), np.zeros(z.shape[1])])
        slopes[-1] = slopes[:-1].mean(axis=0) if len(slopes) > 1 else 0.0  # of unknown workers

        def skills(task: Ints, row: Ints) -> tuple[Floats, Floats]:
            confusion = draw(workers[row])
            shift = (z[task] * slopes[workers[row]]).sum(axis=1)
            right = np.clip(np.einsum("nkk->nk", confusion), EDGE, 1.0 - EDGE)
            right = expit(logit(right) + shift[:, None])
            return with_accuracy(confusion, right), np.ones(len(row))

        return skills


def as_numbers(X: FeaturesLike) -> Floats:
    """Return features as a table of finite numbers; anything else is refused."""
    try:
        table = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        what, where = "X holds something that is not a number.", str(error)
    else:
        if table.ndim != 2 or not table.shape[1]:
            refuse_flat(table.shape)
        bad = np.argwhere(~np.isfinite(table))
        if not len(bad):
            return table
        what = f"X has {len(bad):,} values that are missing or infinite."
        where = "row {}, column {}".format(*bad[0])
    fix = "encode text and categories, and fill in what is missing"
    raise AnnotationError(explain(what, first=where, expected="finite numbers", fix=fix))


def find_slopes(outlook: Outlook, z: Floats) -> Floats:
    """Return how the log-odds of each worker being right follow the directions."""
    votes = outlook.votes
    rows = np.flatnonzero((votes.redundancy > 1)[votes.task] | outlook.known[votes.task])
    rows = rows[:: len(rows) // MOST_LABELS + 1]
    rows = rows[np.argsort(votes.worker[rows], kind="stable")]
    if not len(rows):
        return np.zeros((votes.n_workers, z.shape[1]))
    task, worker = votes.task[rows], votes.worker[rows]
    others = [part for _, part, _ in without_own(votes, outlook.independent, rows)]
    hit = np.exp(np.concatenate(others)[np.arange(len(rows)), votes.label[rows]])
    judged = Judgments(z[task], hit, task % FOLDS)
    odds = logit(np.clip(outlook.judged.skills, EDGE, 1.0 - EDGE))[worker]
    common = judged.slopes(odds, np.zeros_like(worker), 1)
    odds += (judged.z * common).sum(axis=1)
    return common + judged.slopes(odds, worker, votes.n_workers)


class Judgments:
    """How probably labels are right, as the others of their tasks say, and where they lie."""

    def __init__(self, z: Floats, hit: Floats, fold: Ints) -> None:
        self.z, self.hit, self.fold = z, hit, fold  # (label, direction), (label,), (label,)
        self.squares = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)

    def slopes(self, odds: Floats, group: Ints, n_groups: int) -> Floats:
        """Fit slopes of each group of labels besides their usual log-odds, (group, direction).

        Labels are sorted by group. The spread of slopes is the one by which labels of tasks left
        out are predicted best.
        """
        found = np.zeros((n_groups, self.z.shape[1]))
        there, start, number = np.unique(group, return_index=True, return_inverse=True)

        def solve(spread: float, weight: Floats) -> Floats:
            """Find the most probable slopes, by Newton's method."""
            slopes = np.zeros((len(there), self.z.shape[1]))
            narrow = np.eye(self.z.shape[1]) / spread**2
            for _ in range(STEPS):
                right = expit(odds + (self.z * slopes[number]).sum(axis=1))
                miss, bend = weight * (self.hit - right), weight * right * (1.0 - right)
                rise = np.add.reduceat(miss[:, None] * self.z, start) - slopes / spread**2
                bends = np.add.reduceat(bend[:, None] * self.squares, start)
                bends = bends.reshape(-1, *narrow.shape) + narrow
                slopes += np.linalg.solve(bends, rise[:, :, None])[:, :, 0]
            return slopes

        def loss(spread: float) -> float:
            after = odds.copy()
            for one in range(FOLDS if spread else 0):
                out = self.fold == one
                slopes = solve(spread, (~out).astype(np.float64))
                after[out] += (self.z[out] * slopes[number[out]]).sum(axis=1)
            return float((np.logaddexp(0.0, after) - self.hit * after).sum())

        best = min(SPREADS, key=loss)
        if best:
            found[there] = solve(best, np.ones(len(odds)))
        return found
