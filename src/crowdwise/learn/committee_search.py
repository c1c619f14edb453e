"""Search for a committee of regressions: its members, and their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from crowdwise.learn.isolated_folds import Folds
from crowdwise.learn.label_stacking import Stack, log_evidence
from crowdwise.learn.penalty_path import Problem, fit_path, predict_path
from crowdwise.typing import Array, Floats, Ints

PENALTIES = 10.0 ** np.arange(-5.0, -0.9, 0.5)
FIRST_STEPS, NEW_STEPS, MORE_STEPS = 40, 15, 10  # from zero, from a neighbor, from a round before
FEWEST, MOST = 0.02, 6  # minimum weight of a member, and maximum number in the second round
FLAT = PENALTIES[-1]  # penalty of a member that knows little more than class frequencies
FLAT_PRIOR = 4.0  # tasks that count for it in advance, since few labels prove little

Designs = Mapping[str, Floats]  # coordinates of each view, with a column of ones


@dataclass(frozen=True)
class Regressions:
    """Softmax regressions on one view, for groups of rows and penalties."""

    penalties: Floats
    weights: Floats  # (column, group, penalty, class)

    @classmethod
    def start(cls, penalties: Floats, design: Floats, n_groups: int, n_classes: int) -> Self:
        """Start with all weights at zero."""
        shape = (design.shape[1], n_groups, len(penalties), n_classes)
        return cls(penalties, np.zeros(shape, dtype=np.float32))

    def fit(self, design: Floats, problem: Problem, n_steps: int) -> Self:
        found = fit_path(design, problem, self.penalties, self.weights, n_steps)
        return replace(self, weights=found)

    def keep(self, penalties: Ints | slice, groups: Ints | list[int]) -> Self:
        """Keep only some of them; groups may be repeated."""
        return replace(
            self,
            penalties=self.penalties[penalties],
            weights=np.ascontiguousarray(self.weights[:, groups][:, :, penalties]),
        )

    def predict(self, design: Floats) -> Floats:
        """Return P(class) of every row by every regression, (row, group, penalty, class)."""
        return predict_path(design, self.weights)


@dataclass(frozen=True)
class Found:
    """A committee, and its predictions for tasks whose labels it has not seen."""

    views: Mapping[str, Regressions]
    stack: Stack
    proba: Floats  # (task, class)
    likelihood: Floats  # P(labels | truth) of each task up to a factor, (task, truth)
    evidence: float  # mean log P(labels of a task), up to a constant, against class frequencies

    @property
    def members(self) -> list[tuple[str, float]]:
        """View and penalty of each member."""
        return [
            (view, float(penalty)) for view, own in self.views.items() for penalty in own.penalties
        ]


def first_round(designs: Designs, folds: Folds) -> Found:
    """Fit all candidates to truths from labels alone; each fold is predicted by the others."""
    posterior = folds.infer(None)
    problem = folds.one_world(posterior)
    views = {
        view: Regressions.start(PENALTIES, design, folds.n_folds, posterior.shape[1]).fit(
            design, problem, FIRST_STEPS
        )
        for view, design in designs.items()
    }
    members = _left_out(designs, views, folds, np.arange(folds.n_folds)[:, None])[0]
    return choose(views, members, folds.likelihood(posterior), folds.labeled)


def last_round(designs: Designs, folds: Folds, found: Found) -> tuple[Found, Floats]:
    """Fit the same members to all tasks; also return P(truth) from features and labels."""
    posterior = folds.infer(found.proba)
    problem = folds.one_world(posterior, left_out=False)
    views = {
        view: own.keep(slice(None), [0]).fit(designs[view], problem, NEW_STEPS)
        for view, own in found.views.items()
    }
    return replace(found, views=views), posterior


def next_rounds(designs: Designs, folds: Folds, found: Found, n_rounds: int) -> Found:
    """Alternate between fitting the best candidates and inferring truths from both sources."""
    n_folds, labeled = folds.n_folds, folds.labeled
    world = np.array([f for f, _ in folds.pairs])
    views, prior = _best(found, world), None
    groups = np.arange(n_folds)[:, None] + n_folds * np.arange(n_folds)  # (fold, world)
    own = folds.fold, np.arange(len(folds.fold))  # the world that has not seen a task's labels
    for _ in range(n_rounds):
        posterior = np.stack([
            folds.infer(None if prior is None else prior[hidden], hidden)
            for hidden in range(n_folds)
        ])  # fmt: skip
        problem, n_steps = folds.all_worlds(posterior), NEW_STEPS if prior is None else MORE_STEPS
        views = {view: one.fit(designs[view], problem, n_steps) for view, one in views.items()}
        members = _left_out(designs, views, folds, groups)  # (world, task, member, class)
        likely = np.stack([folds.likelihood(posterior[f], f) for f in range(n_folds)])
        prior = np.empty_like(posterior)
        for hidden in range(n_folds):
            seen = labeled & (folds.fold != hidden)
            stack = Stack.choose(members[hidden][seen], likely[hidden][seen], flat_prior(views))
            prior[hidden] = stack.mix(members[hidden])
        found = choose(views, members[own], likely[own], labeled)
        found = judge(found, prior[own], labeled)  # members weighed without a task's labels, too
    return found


def _best(found: Found, groups: Ints) -> dict[str, Regressions]:
    """Return the members with the largest weights."""
    weight = found.stack.weight
    least = max(FEWEST, np.sort(weight)[-MOST:][0])
    kept: dict[str, Regressions] = {}
    start = 0
    for view, own in found.views.items():
        stop = start + len(own.penalties)
        flat = (own.penalties == FLAT) & (not kept)
        chosen = np.flatnonzero((weight[start:stop] >= least) & (own.penalties != FLAT) | flat)
        if len(chosen):
            kept[view] = own.keep(chosen, groups)
        start = stop
    return kept


def flat_prior(views: Mapping[str, Regressions]) -> Floats:
    """Return how many tasks count for each member in advance, shared by the flat ones."""
    flat = np.concatenate([own.penalties == FLAT for own in views.values()])
    return FLAT_PRIOR * flat / max(flat.sum(), 1)


def _left_out(
    designs: Designs, views: Mapping[str, Regressions], folds: Folds, groups: Ints
) -> Floats:
    """Return regressions' predictions for the fold they leave out, (world, task, member, class).

    ``groups[fold]`` are those that leave the fold out, one for each world.
    """
    parts = []
    for view, own in views.items():
        design = designs[view]
        part = np.empty((groups.shape[1], len(design), len(own.penalties), folds.votes.n_classes))
        for fold, chosen in enumerate(groups):
            rows = folds.fold == fold
            part[:, rows] = own.keep(slice(None), chosen).predict(design[rows]).swapaxes(0, 1)
        parts.append(part)
    return np.concatenate(parts, axis=2)


def choose(
    views: Mapping[str, Regressions], members: Floats, likelihood: Floats, labeled: Array
) -> Found:
    """Weight the members by the labels of tasks that they never saw."""
    stack = Stack.choose(members[labeled], likelihood[labeled], flat_prior(views))
    proba = stack.mix(members)
    return judge(Found(views, stack, proba, likelihood, 0.0), proba, labeled)


def judge(found: Found, proba: Floats, labeled: Array) -> Found:
    """Return the committee with its predictions, and how likely they make the tasks' labels."""
    usual = np.broadcast_to(proba[labeled].mean(axis=0), proba.shape)
    by = log_evidence(np.stack([proba, usual], axis=1)[labeled], found.likelihood[labeled])
    return replace(found, proba=proba, evidence=float((by[:, 0] - by[:, 1]).mean()))
