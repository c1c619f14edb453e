"""Ordinary regressions beside a committee, and the weight of each of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from crowdwise.aggregate import IBCC
from crowdwise.annotations import Annotations
from crowdwise.inference import clamp, share_best
from crowdwise.learn.committee_search import FIRST_STEPS, PENALTIES, Found, Regressions, judge
from crowdwise.learn.isolated_folds import Folds
from crowdwise.learn.label_stacking import choose_best
from crowdwise.learn.penalty_path import Problem
from crowdwise.typing import Floats


def infer_by_ibcc(votes: Annotations) -> Floats:
    """Return P(truth | labels) of each task."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near the optimum is enough
        return IBCC().fit(votes).posterior_


TARGETS: Mapping[str, Callable[[Annotations], Floats]] = {
    "majority labels": lambda votes: share_best(votes.shares()),
    "shares of labels": Annotations.shares,
    "IBCC's truths": infer_by_ibcc,
}


@dataclass(frozen=True)
class PlainRegressions:
    """A softmax regression for each kind of target, with a cross-validated penalty."""

    weights: Floats  # (column, target, class)
    proba: Floats  # (task, target, class), by regressions that have not seen the task

    @classmethod
    def fit(cls, design: Floats, folds: Folds) -> Self:
        """Fit to all tasks; the regressions for evaluation leave a fold's labels out.

        All tasks decide which of five penalties is best.
        """
        found = [_fit(design, folds, make) for make in TARGETS.values()]
        weights, proba = zip(*found, strict=True)
        return cls(np.stack(weights, axis=1), np.stack(proba, axis=1))


def _fit(
    design: Floats, folds: Folds, make: Callable[[Annotations], Floats]
) -> tuple[Floats, Floats]:
    """Return weights on all tasks, and P(class) of each task by regressions without its fold."""
    worlds = [folds.without(fold) for fold in [*range(folds.n_folds), None]]
    targets = np.stack([clamp(make(votes), gold) for votes, gold in worlds])
    groups = [*({fold} for fold in range(folds.n_folds)), set[int]()]
    problem = Problem(targets.astype(np.float32), np.arange(len(groups)), folds.weigh(groups))
    start = Regressions.start(PENALTIES[::2], design, len(groups), targets.shape[2])
    fitted = start.fit(design, problem, FIRST_STEPS)
    own = fitted.predict(design)[np.arange(len(design)), folds.fold]  # (task, penalty, class)
    score = (targets[-1][:, None] * np.log(np.maximum(own, 1e-12))).sum(axis=2)
    best = find_strongest(score[folds.labeled])
    return fitted.weights[:, -1, best], own[:, best].astype(np.float64)


def find_strongest(score: Floats) -> int:
    """Find the strongest penalty that is as good as the best; (task, penalty), weak to strong.

    Starting with the strongest, penalties are reduced while the mean score rises: on very few
    tasks, the weakest may look good by chance. Then one standard error is conceded.
    """
    mean = score.mean(axis=0)
    best = len(mean) - 1
    while best and mean[best - 1] > mean[best]:
        best -= 1
    behind = score[:, [best]] - score
    error = behind.std(axis=0) / np.sqrt(max(len(score), 1))
    return int(np.flatnonzero(behind.mean(axis=0) <= error)[-1])


@dataclass(frozen=True)
class Blend:
    """A committee and plain regressions, weighted by labels that none of them has seen."""

    plain: PlainRegressions
    weight: Floats  # (1 + target,): the committee first

    @classmethod
    def choose(
        cls, plain: PlainRegressions, found: Found, folds: Folds, rng: np.random.RandomState
    ) -> tuple[Self, Found]:
        """Choose the weights; also return the combined predictions for the tasks."""
        members = np.concatenate([found.proba[:, None], plain.proba], axis=1)
        some = folds.labeled
        weight = choose_best(members[some], found.likelihood[some], rng)
        proba = np.einsum("imk,m->ik", members, weight)
        return cls(plain, weight), judge(found, proba, some)
