"""The solver behind both minimax conditional entropy methods.

Effects on a label's log odds add up: ``P(label | truth) = softmax(worker + task)``. Given the
truths, workers do not depend on each other, nor do tasks. So each round takes Newton steps on
all workers at once, then on all tasks at once, and then infers the truths again. The
strength of the penalty may be chosen by how well held-out annotations are predicted.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.inference.stopping import until_converged
from crowdwise.typing import Floats, Ints, RandomState

Pair = tuple[Floats, Floats]  # one of the workers, one of the tasks

TINY = np.finfo(np.float64).tiny
MOST_STEPS = 10  # Newton steps on one side before it is the other's turn
MOST_HALVINGS = 20
ROUNDING = 1e-12  # a loss smaller than this share of the value is none
MIRRORED = 1e-6  # less of a gain in agreement per task is rounding
STRENGTHS = tuple(4.0**power for power in range(1, -6, -1))  # to choose from, strongest first
N_FOLDS = 5
CLEARLY_WORSE = 1.01  # a held-out loss this many times the best one ends the search


class Basis(Protocol):
    """How the free parameters of a worker or task make up its effect on the log odds."""

    @property
    def n_parameters(self) -> int:
        """How many of them a worker or task has."""

    @property
    def fair_penalty(self) -> float:
        """A penalty that weighs as much against the labels as one does with two classes.

        Twice the number of parameters that add up in a cell, times the share of the truths
        that one of them is about.
        """

    def effect(self, parameters: Floats) -> Floats:
        """Effect on the log odds, (unit, truth, label), of parameters (unit, parameter)."""

    def step(self, given: Floats, expected: Floats, parameters: Floats, penalty: float) -> Floats:
        """Newton step, from given and expected label counts of shape (unit, truth, label)."""

    def orders(self, agreement: Floats) -> list[Ints]:
        """Orders of the truths that make no difference to the penalized likelihood.

        Only those that may raise the diagonal sum of ``agreement[truth, label]`` matter.
        """


@dataclass(frozen=True)
class EveryCell:
    """A basis with one parameter for each truth and label."""

    n_classes: int

    @property
    def n_parameters(self) -> int:
        return self.n_classes**2

    @property
    def fair_penalty(self) -> float:
        return 2.0 / self.n_classes

    def effect(self, parameters: Floats) -> Floats:
        return parameters.reshape(-1, self.n_classes, self.n_classes)

    def step(self, given: Floats, expected: Floats, parameters: Floats, penalty: float) -> Floats:
        """Solve ``(diag(c) - c c' / sum(c) + penalty) step = gradient`` for each truth's row.

        With ``c`` the expected counts, the bracket is no less than the curvature, and its
        inverse has a closed form: it is diagonal but for a matrix of rank one.
        """
        gradient = given - expected - penalty * self.effect(parameters)
        scaled = gradient / (expected + penalty)
        share = expected / (expected + penalty)
        slack = np.maximum((penalty * share).sum(axis=2, keepdims=True), TINY)
        step = scaled + share * (expected * scaled).sum(axis=2, keepdims=True) / slack
        return step.reshape(parameters.shape)

    def orders(self, agreement: Floats) -> list[Ints]:
        return [linear_sum_assignment(agreement.T, maximize=True)[1]]


@dataclass(frozen=True)
class Sheet:
    """The annotations in the layout of the equations."""

    units: tuple[Ints, Ints]  # (annotation,): its worker, and its task
    label: Floats  # (annotation, label): the label's weight, spread over classes if soft
    weight: Floats  # (annotation, 1)
    sums: tuple[csr_array, csr_array]  # (unit, annotation): add up over workers, over tasks


@dataclass(frozen=True)
class Point:
    """Parameters of all workers and all tasks, and what they say of each annotation."""

    parameters: Pair
    chance: Floats  # (annotation, truth, label): P(label | truth)
    score: Floats  # (annotation, truth): weight times log P(the given label | truth)


@dataclass(frozen=True)
class Solution:
    """Effects on the log odds, (unit, truth, label), the truths, and how they were found."""

    worker_effect: Floats
    task_effect: Floats
    posterior: Floats
    objective: list[float]


def solve(
    annotations: Annotations,
    basis: Basis,
    penalties: tuple[float, float],
    start: Floats,
    offset: Floats | None,
    max_iter: int,
    tol: float,
) -> Solution:
    """Raise the penalized likelihood of the labels, truths summed out, by coordinates."""
    sheet = lay_out(annotations)
    n_tasks, n_workers = annotations.shape
    nothing = (np.zeros((n_units, basis.n_parameters)) for n_units in (n_workers, n_tasks))
    point, posterior = look(sheet, basis, (next(nothing), next(nothing))), start
    for em in until_converged(max_iter, tol):
        for side in (0, 1):
            point = take_newton_steps(sheet, basis, point, posterior, side, penalties[side], tol)
        joint = sheet.sums[1] @ point.score
        if offset is not None:
            joint += offset
        posterior = softmax(joint, axis=1)
        size = [(parameters**2).sum() for parameters in point.parameters]
        em.record(logsumexp(joint, axis=1).sum() - np.dot(penalties, size) / 2)
    effects = [basis.effect(parameters) for parameters in point.parameters]
    order = order_truths(basis, posterior, start) if offset is None else np.arange(start.shape[1])
    worker_effect, task_effect = (effect[:, order] for effect in effects)
    return Solution(worker_effect, task_effect, posterior[:, order], em.objective)


def lay_out(annotations: Annotations) -> Sheet:
    """Put annotations into the layout of the equations."""
    units, n_rows = (annotations.worker, annotations.task), annotations.n_annotations
    weight = np.ones(n_rows) if annotations.weight is None else annotations.weight
    weight = weight.astype(np.float64)[:, None]
    soft = annotations.soft
    label = np.eye(annotations.n_classes)[annotations.label] if soft is None else soft
    ones, rows = np.ones(n_rows), np.arange(n_rows)
    by_task, by_worker = (
        csr_array((ones, (unit, rows)), shape=(size, n_rows))
        for unit, size in zip(reversed(units), annotations.shape, strict=True)
    )
    return Sheet(units, label * weight, weight, (by_worker, by_task))


def look(sheet: Sheet, basis: Basis, parameters: Pair) -> Point:
    """P(label | truth) of each annotation: softmax of its worker's and its task's effect."""
    effects = [basis.effect(each) for each in parameters]
    # Taking off each unit's own maximum keeps exp in range, and costs less than per annotation.
    worker, task = (effect - effect.max(axis=2, keepdims=True) for effect in effects)
    logit = worker[sheet.units[0]] + task[sheet.units[1]]
    chance = np.exp(logit)
    total = np.einsum("akl->ak", chance)
    chance /= total[:, :, None]
    score = np.einsum("akl,al->ak", logit, sheet.label) - sheet.weight * np.log(total)
    return Point(parameters, chance, score)


def take_newton_steps(
    sheet: Sheet,
    basis: Basis,
    point: Point,
    posterior: Floats,
    side: int,
    penalty: float,
    tol: float,
) -> Point:
    """Newton steps on all workers (side 0) or all tasks (side 1), until they gain little."""
    sums, truth = sheet.sums[side], posterior[sheet.units[1]]  # (annotation, truth)
    given = _counts(sums, truth[:, :, None] * sheet.label[:, None, :])
    share = (truth * sheet.weight)[:, :, None]

    def value(at: Point) -> Floats:  # each unit's part of the penalized log-likelihood
        size = np.einsum("up,up->u", at.parameters[side], at.parameters[side])
        return sums @ np.einsum("ak,ak->a", truth, at.score) - penalty / 2 * size

    before = value(point)
    for _ in range(MOST_STEPS):
        expected = _counts(sums, share * point.chance)
        step = basis.step(given, expected, point.parameters[side], penalty)
        reach = partial(_reach, sheet, basis, point, side, step)
        point, after = search(reach, value, before)
        gain, before = (after - before).sum(), after
        if gain <= tol * abs(before.sum()):
            break
    return point


def search(
    reach: Callable[[Floats], Point], value: Callable[[Point], Floats], before: Floats
) -> tuple[Point, Floats]:
    """Halve the steps of the units that would fall: a Newton step may overshoot."""
    pace = np.ones(len(before))
    for _ in range(MOST_HALVINGS):
        trial = reach(pace)
        after = value(trial)
        fallen = after < before - ROUNDING * np.abs(before)
        if not fallen.any():
            return trial, after
        pace[fallen] /= 2
    pace[fallen] = 0.0
    trial = reach(pace)
    return trial, value(trial)


def order_truths(basis: Basis, posterior: Floats, shares: Floats) -> Ints:
    """The order of the truths in which they agree most with the labels.

    From labels alone truths have no names, and with few of them rounds can end in a mirror
    image of where they began.
    """
    agreement = posterior.T @ shares  # (truth, label)
    same = np.arange(len(agreement))
    best = max(basis.orders(agreement), key=lambda order: agreement[order, same].sum())
    gain = agreement[best, same].sum() - np.trace(agreement)
    return best if gain > MIRRORED * len(posterior) else same


def _counts(sums: csr_array, cells: Floats) -> Floats:
    """Sum of (annotation, truth, label) over each unit's annotations."""
    flat = sums @ cells.reshape(len(cells), -1)
    return flat.reshape(-1, *cells.shape[1:])


def _reach(
    sheet: Sheet, basis: Basis, point: Point, side: int, step: Floats, pace: Floats
) -> Point:
    """The point some way along the step, which may differ from unit to unit."""
    moved = list(point.parameters)
    moved[side] = moved[side] + pace[:, None] * step
    return look(sheet, basis, (moved[0], moved[1]))


def choose_strength(
    fit: Callable[[Annotations, float], Solution],
    annotations: Annotations,
    random_state: RandomState,
) -> float:
    """The strength whose fits predict held-out annotations best, the stronger of equals."""
    fold = deal_folds(annotations, random_state)
    parts = [(annotations.filter(fold != i), annotations.filter(fold == i)) for i in range(N_FOLDS)]
    losses: dict[float, float] = {}
    with warnings.catch_warnings():  # a fold need not run to the end
        warnings.simplefilter("ignore", ConvergenceWarning)
        for strength in STRENGTHS:
            fits = ((fit(kept, strength), held_out) for kept, held_out in parts)
            losses[strength] = sum(held_out_loss(*each) for each in fits)
            if losses[strength] > CLEARLY_WORSE * min(losses.values()):
                break
    return min(losses, key=lambda strength: losses[strength])


def deal_folds(annotations: Annotations, random_state: RandomState) -> Ints:
    """Fold of each annotation: each worker's tasks, dealt out evenly to the folds at random."""
    rng = check_random_state(random_state)
    pair = annotations.worker.astype(np.int64) * annotations.n_tasks + annotations.task
    pairs, place = np.unique(pair, return_inverse=True)
    worker = pairs // max(annotations.n_tasks, 1)
    shuffled = np.lexsort((rng.random_sample(len(pairs)), worker))
    turn = np.arange(len(pairs)) + rng.randint(N_FOLDS, size=annotations.n_workers)[worker]
    fold = np.empty(len(pairs), dtype=np.int64)
    fold[shuffled] = turn % N_FOLDS
    return fold[place]


def held_out_loss(solution: Solution, annotations: Annotations) -> float:
    """Negative log-likelihood of annotations that were not fitted."""
    sheet = lay_out(annotations)
    worker, task = sheet.units
    chance = softmax(solution.worker_effect[worker] + solution.task_effect[task], axis=2)
    mixed = np.einsum("ak,akl->al", solution.posterior[task], chance)
    return -float((sheet.label * np.log(mixed)).sum())
