"""The search for a committee of regressions: who is in it, and how much each one counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from crowdwise.learn.isolated_folds import Folds
from crowdwise.learn.label_stacking import Stack, log_evidence, sharpen
from crowdwise.learn.penalty_path import Problem, fit_path, predict_path
from crowdwise.typing import Floats, Ints

PENALTIES = np.array([*10.0 ** np.arange(-5.0, -2.0, 0.5), 1.0])
FIRST_STEPS, NEW_STEPS, MORE_STEPS = 40, 15, 10  # from zero, from a neighbor, from a round before
FEWEST, MOST = 0.02, 6  # the least weight of a member, and how many go on to the second round
PRIOR_POWER = 0.8  # labels come back to their tasks by way of others: believe a little less

Designs = Mapping[str, Floats]  # coordinates of each view, with a column of ones


@dataclass(frozen=True)
class Regressions:
    """Softmax regressions on one view, for groups of rows and penalties."""

    penalties: Floats
    weights: Floats | None = None  # (column, group, penalty, class)

    def fit(self, design: Floats, problem: Problem, n_steps: int) -> Self:
        found = fit_path(design, problem, self.penalties, self.weights, n_steps)
        return replace(self, weights=found)

    def keep(self, penalties: Ints, groups: Ints | slice) -> Self:
        """Only some of them; groups may be repeated."""
        assert self.weights is not None
        return replace(
            self,
            penalties=self.penalties[penalties],
            weights=np.ascontiguousarray(self.weights[:, groups][:, :, penalties]),
        )

    def predict(self, design: Floats) -> Floats:
        """P(class) of every row by every regression, (row, group, penalty, class)."""
        assert self.weights is not None
        return predict_path(design, self.weights)


@dataclass(frozen=True)
class Found:
    """A committee, and what it says about tasks whose labels it has not seen."""

    views: Mapping[str, Regressions]  # of groups: a fold left out; or (world, fold left out)
    stack: Stack
    proba: Floats  # (task, class)
    evidence: float  # mean log P(labels of a task), up to a constant, against class frequencies

    @property
    def members(self) -> list[tuple[str, float]]:
        """View and penalty of each."""
        return [
            (view, float(penalty)) for view, own in self.views.items() for penalty in own.penalties
        ]


def first_round(designs: Designs, folds: Folds) -> Found:
    """All candidates, on truths from labels alone; each fold is predicted by the others."""
    posterior = folds.infer(None)
    problem = folds.one_world(posterior)
    views = {
        view: Regressions(PENALTIES).fit(design, problem, FIRST_STEPS)
        for view, design in designs.items()
    }
    members = _left_out(designs, views, folds, np.arange(folds.n_folds)[:, None])[0]
    return _choose(views, members, folds.likelihood(posterior), folds)


def next_rounds(designs: Designs, folds: Folds, found: Found, n_rounds: int) -> Found:
    """The best candidates, on truths that labels and features both speak for, by turns."""
    n_folds, labeled = folds.n_folds, folds.labeled
    world = np.array([f for f, _ in folds.pairs])
    views, prior = _best(found, world), None
    groups = np.arange(n_folds)[:, None] + n_folds * np.arange(n_folds)  # (fold, world)
    own = folds.fold, np.arange(len(folds.fold))  # the world that has not seen a task's labels
    for _ in range(n_rounds):
        posterior = np.stack([
            folds.infer(None if prior is None else sharpen(prior[hidden], PRIOR_POWER), hidden)
            for hidden in range(n_folds)
        ])  # fmt: skip
        problem, n_steps = folds.all_worlds(posterior), NEW_STEPS if prior is None else MORE_STEPS
        views = {view: one.fit(designs[view], problem, n_steps) for view, one in views.items()}
        members = _left_out(designs, views, folds, groups)  # (world, task, member, class)
        likely = np.stack([folds.likelihood(posterior[f], f) for f in range(n_folds)])
        prior = np.empty_like(posterior)
        for hidden in range(n_folds):
            seen = labeled & (folds.fold != hidden)
            stack = Stack.choose(members[hidden][seen], likely[hidden][seen])
            prior[hidden] = stack.mix(members[hidden])
        found = _choose(views, members[own], likely[own], folds)
    return found


def _best(found: Found, groups: Ints) -> dict[str, Regressions]:
    """The members that count most."""
    weight = found.stack.weight
    least = max(FEWEST, np.sort(weight)[-MOST:][0])
    kept, start = {}, 0
    for view, own in found.views.items():
        stop = start + len(own.penalties)
        chosen = np.flatnonzero(weight[start:stop] >= least)
        if len(chosen):
            kept[view] = own.keep(chosen, groups)
        start = stop
    return kept


def _left_out(
    designs: Designs, views: Mapping[str, Regressions], folds: Folds, groups: Ints
) -> Floats:
    """What regressions say about the fold that they leave out, (world, task, member, class).

    ``groups[fold]`` are those that leave the fold out, one for each world.
    """
    parts = []
    for view, own in views.items():
        design = designs[view]
        everyone = np.arange(len(own.penalties))
        part = np.empty((groups.shape[1], len(design), len(everyone), folds.votes.n_classes))
        for fold, chosen in enumerate(groups):
            rows = folds.fold == fold
            part[:, rows] = own.keep(everyone, chosen).predict(design[rows]).swapaxes(0, 1)
        parts.append(part)
    return np.concatenate(parts, axis=2)


def _choose(
    views: Mapping[str, Regressions], members: Floats, likelihood: Floats, folds: Folds
) -> Found:
    """Weigh the members by the labels of tasks that they never saw."""
    labeled = folds.labeled
    stack = Stack.choose(members[labeled], likelihood[labeled])
    proba = stack.mix(members)
    usual = np.broadcast_to(proba[labeled].mean(axis=0), proba.shape)
    by = log_evidence(np.stack([proba, usual], axis=1)[labeled], likelihood[labeled])
    return Found(views, stack, proba, float((by[:, 0] - by[:, 1]).mean()))
