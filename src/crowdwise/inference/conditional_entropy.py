"""The solver behind both minimax conditional entropy methods.

Effects on a label's log-odds add up: ``P(label | truth) = softmax(worker + task)``. Given the
truths, workers are independent of one another, and so are tasks. So each round takes Newton steps
on all workers, with a sweep over the engine's blocks for each; and one more sweep moves every
task by its own steps, infers its truth, and computes what the workers' next steps need. The
strength of the penalty may be chosen by how well held-out annotations are predicted.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.inference.engines.engine import Engine, Posterior
from crowdwise.inference.engines.kernels import Block
from crowdwise.inference.entropy_basis import Basis, EveryCell
from crowdwise.inference.entropy_steps import (
    MOST_STEPS,
    EntropySteps,
    Found,
    Tables,
    gains,
    search,
)
from crowdwise.inference.stopping import until_converged
from crowdwise.typing import Floats, Ints, RandomState

MIRRORED = 1e-6  # a smaller gain in agreement per task is rounding error
STRENGTHS = tuple(4.0**power for power in range(1, -6, -1))  # to choose from, strongest first
N_FOLDS = 5
CLEARLY_WORSE = 1.01  # a held-out loss this many times the best one ends the search
AT_ONCE = 1 << 20  # cells of annotations x classes x classes processed together


@dataclass(frozen=True)
class Solution:
    """Effects on the log-odds, (unit, truth, label), the truths, and the objective."""

    worker_effect: Floats
    task_effect: Floats  # of the engine's own tasks
    posterior: Floats  # likewise
    objective: list[float]
    best: float  # mean probability of a task's best truth
    most_common: float  # mean share of a task's most common label


def solve(
    engine: Engine, basis: Basis, penalties: tuple[float, float], max_iter: int, tol: float
) -> Solution:
    """Maximize the penalized likelihood of the labels, summed over truths, by coordinates."""
    steps = EntropySteps.begin(engine, basis, penalties[1], tol)
    workers = np.zeros((engine.n_workers, basis.n_parameters))
    everyone = np.ones(engine.n_workers, dtype=bool)
    found = steps.sweep(basis.effect(workers), everyone, count=True)
    for em in until_converged(max_iter, tol):
        workers = move_workers(steps, workers, found, penalties[0])
        found = steps.sweep(basis.effect(workers), everyone, MOST_STEPS, count=True)
        em.record(found.objective - penalties[0] / 2.0 * (workers**2).sum())
    return put_in_order(steps, basis.effect(workers), em.objective)


def move_workers(steps: EntropySteps, workers: Floats, found: Found, penalty: float) -> Floats:
    """Take Newton steps on all workers until they gain little."""
    basis, given = steps.basis, found.given
    labels = given.swapaxes(1, 2)

    def value(at: tuple[Floats, Found]) -> Floats:  # each worker's part of the objective
        parameters, seen = at
        odds = Tables.of(basis.effect(parameters)).odds
        own = np.einsum("wlk,wlk->w", labels, odds) - seen.spent
        return own - penalty / 2.0 * np.einsum("wp,wp->w", parameters, parameters)

    live, before = np.ones(len(workers), dtype=bool), value((workers, found))
    for _ in range(MOST_STEPS):
        step = basis.step(given[live], found.expected[live], workers[live], penalty)

        def reach(
            pace: Floats, step: Floats = step, workers: Floats = workers
        ) -> tuple[Floats, Found]:
            moved = workers.copy()
            moved[live] += pace[:, None] * step
            return moved, steps.sweep(basis.effect(moved), live)

        (workers, found), after = search(reach, lambda at: value(at)[live], before[live])
        risen, before[live] = gains(before[live], after, steps.tol), after
        live[live] = risen
        if not live.any():
            break
    return workers


def put_in_order(steps: EntropySteps, worker_effect: Floats, objective: list[float]) -> Solution:
    """Return the solution, with truths ordered for the best agreement with the votes."""
    engine, n_classes = steps.engine, steps.basis.n_classes
    first = engine.own_tasks[0]

    def work(block: Block, agreement: Floats, tops: Floats) -> float:
        shares, start = block.shares(), block.first - first
        posterior = steps.posterior[start : start + block.n_tasks]
        agreement += posterior.T @ shares
        tops += posterior.max(axis=1).sum(), shares.max(axis=1).sum()
        return float(block.gold is not None and (block.gold >= 0).any())

    taught, (agreement, tops) = engine.sum_blocks(work, [(n_classes, n_classes), (2,)])
    effects, posterior = (worker_effect, steps.basis.effect(steps.parameters)), steps.posterior
    if not taught:
        order = order_truths(steps.basis, agreement, engine.n_tasks)
        if (order != np.arange(n_classes)).any():
            effects = worker_effect[:, order], effects[1][:, order]
            posterior = posterior[:, order]
    best, most_common = tops / max(engine.n_tasks, 1)
    return Solution(*effects, posterior, objective, float(best), float(most_common))


def order_truths(basis: Basis, agreement: Floats, n_tasks: int) -> Ints:
    """Return the order of the truths that agrees most with the labels.

    Labels alone do not name the truths, and with few labels the rounds can end in a mirror
    image of the starting point. ``agreement[truth, label]`` is a sum over tasks.
    """
    same = np.arange(len(agreement))
    best = max(basis.orders(agreement), key=lambda order: agreement[order, same].sum())
    gain = agreement[best, same].sum() - np.trace(agreement)
    return best if gain > MIRRORED * n_tasks else same


def infer(engine: Engine, worker_effect: Floats, task_effect: Floats) -> Posterior:
    """Return P(truth | labels) of each task under these effects, (unit, truth, label)."""
    basis, first = EveryCell(engine.n_classes), engine.own_tasks[0]
    tables, nobody = Tables.of(worker_effect), np.zeros(engine.n_workers, dtype=bool)
    rows = task_effect.reshape(-1, basis.n_parameters)
    steps = EntropySteps(engine, basis, 0.0, 0.0, rows, rows[:, : basis.n_classes])

    def work(block: Block, out: Floats) -> None:
        start = block.first - first
        own = rows[start : start + block.n_tasks].copy()
        out[:] = 1.0 / basis.n_classes
        nothing = (np.zeros((0, 0, 0)),) * 2
        steps.run_block(block, tables, nobody, (own, out), (*nothing, np.zeros(0)), 0)

    return engine.fill_blocks(work)


def choose_strength(
    fit: Callable[[Annotations, float], Solution],
    annotations: Annotations,
    random_state: RandomState,
) -> float:
    """Return the strength that best predicts held-out annotations, the stronger of equals."""
    fold = deal_folds(annotations, random_state)
    parts = [(annotations.filter(fold != i), annotations.filter(fold == i)) for i in range(N_FOLDS)]
    losses: dict[float, float] = {}
    with warnings.catch_warnings():  # folds need not converge
        warnings.simplefilter("ignore", ConvergenceWarning)
        for strength in STRENGTHS:
            fits = ((fit(kept, strength), held_out) for kept, held_out in parts)
            losses[strength] = sum(held_out_loss(*each) for each in fits)
            if losses[strength] > CLEARLY_WORSE * min(losses.values()):
                break
    return min(losses, key=lambda strength: losses[strength])


def deal_folds(annotations: Annotations, random_state: RandomState) -> Ints:
    """Distribute each worker's annotations evenly over the folds, at random."""
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
    """Return the negative log-likelihood of annotations that were not fitted."""
    n_classes, total = annotations.n_classes, 0.0
    for start in range(0, annotations.n_annotations, step := max(AT_ONCE // n_classes**2, 1)):
        some = slice(start, start + step)
        worker, task = annotations.worker[some], annotations.task[some]
        chance = softmax(solution.worker_effect[worker] + solution.task_effect[task], axis=2)
        mixed = np.log(np.einsum("ak,akl->al", solution.posterior[task], chance))
        if annotations.soft is None:
            loss = mixed[np.arange(len(task)), annotations.label[some]]
        else:
            loss = (annotations.soft[some] * mixed).sum(axis=1)
        weight = 1.0 if annotations.weight is None else annotations.weight[some]
        total -= float((weight * loss).sum())
    return total
