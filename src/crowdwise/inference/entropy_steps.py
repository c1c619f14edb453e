"""The sweeps of minimax conditional entropy over blocks of tasks, compiled or in plain numpy.

Workers' tables and sums have labels before truths here, (worker, label, truth).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Self, TypeVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from crowdwise import compiled
from crowdwise.inference.engines.engine import Engine
from crowdwise.inference.engines.kernels import Block
from crowdwise.inference.entropy_basis import Basis
from crowdwise.inference.rows import as_columns
from crowdwise.inference.simplex import gold_mask
from crowdwise.typing import Array, Floats, Ints

MOST_STEPS = 10  # Newton steps on one side before the other side's turn
MOST_HALVINGS = 20
ROUNDING = 1e-12  # losses below this share of the value are ignored
NO_GAIN = 1e-10  # likewise for gains, which are left to the next round
LOOK_ONLY = -1  # instead of a number of Newton steps: leave tasks and truths unchanged

Point = TypeVar("Point")


@dataclass(frozen=True)
class Tables:
    """The workers' effects, as seen by a sweep."""

    odds: Floats  # (worker, label, truth): effects on the log odds, the largest of a truth 0
    chance: Floats  # the same: their exponentials

    @classmethod
    def of(cls, effect: Floats) -> Self:
        """Make from effects, (worker, truth, label)."""
        odds = effect - effect.max(axis=2, keepdims=True)
        odds = np.ascontiguousarray(odds.swapaxes(1, 2))
        return cls(odds, np.exp(odds))


@dataclass(frozen=True)
class Found:
    """The sums of a sweep; undefined for workers whose sums were not requested."""

    objective: float  # the tasks' part
    given: Floats  # (worker, truth, label): labels, distributed over the truths
    expected: Floats  # (worker, truth, label): the same as predicted by the effects
    spent: Floats  # (worker,): log of the normalizing constants


@dataclass(frozen=True, eq=False)
class EntropySteps:
    """The steps on tasks, each of which has its own parameters and posterior."""

    engine: Engine
    basis: Basis
    penalty: float  # on a task's parameters
    tol: float
    parameters: Floats  # (task, parameter): of the engine's own tasks, replaced by sweeps
    posterior: Floats  # (task, truth): likewise

    @classmethod
    def begin(cls, engine: Engine, basis: Basis, penalty: float, tol: float) -> Self:
        """Start with tasks without effects, and truths according to the votes."""
        first, stop = engine.own_tasks
        rows = np.zeros((stop - first, basis.n_parameters))
        steps = cls(engine, basis, penalty, tol, rows, np.empty((stop - first, engine.n_classes)))

        def work(block: Block, *_: Floats) -> None:
            steps.posterior[steps._own(block)] = block.shares()

        engine.sum_blocks(work, [(1,)])
        return steps

    def sweep(
        self, effect: Floats, live: Array, n_steps: int = LOOK_ONLY, *, count: bool = False
    ) -> Found:
        """Move the tasks and infer their truths, if requested; and sum what workers need.

        Labels are counted if truths may have changed.
        """
        tables, shape = Tables.of(effect), (len(effect), *effect.shape[:0:-1])
        shapes = [shape, (len(effect),), *([shape] if count else [])]

        def work(block: Block, expected: Floats, spent: Floats, *given: Floats) -> float:
            some = self._own(block)
            state = self.parameters[some], self.posterior[some]
            sums = given[0] if given else expected[:0], expected, spent
            return self.run_block(block, tables, live, state, sums, n_steps)

        objective, (expected, spent, *given) = self.engine.sum_blocks(work, shapes)
        labels = (given[0] if given else expected).swapaxes(1, 2)
        return Found(objective, labels, (expected * tables.chance).swapaxes(1, 2), spent)

    def run_block(
        self,
        block: Block,
        tables: Tables,
        live: Array,
        state: tuple[Floats, Floats],
        sums: tuple[Floats, Floats, Floats],
        n_steps: int,
    ) -> float:
        """Replace the state of a block's tasks, update the sums, and return their objective."""
        pairs, cells = self.engine.pairs, block.cells
        if (loop := compiled.find("entropy_pass")) is not None:
            columns = cells.indptr, cells.code, cells.value, pairs.worker, pairs.label, block.gold
            known = tables.odds, tables.chance, live.astype(np.uint8)
            how = self.penalty, self.tol, block.n_classes, n_steps, self.basis.ordinal
            return float(loop(*columns, *known, *state, *sums, *how))
        plain = PlainBlock.of(block, pairs.worker, tables)
        objective = 0.0
        if n_steps >= 0:
            objective = plain.settle(self, *state, gold_mask(block.gold, block.n_classes), n_steps)
        if len(sums[1]):
            plain.add_up(self.basis, *state, live, *sums)
        return objective

    def _own(self, block: Block) -> slice:
        first = block.first - self.engine.own_tasks[0]
        return slice(first, first + block.n_tasks)


@dataclass(frozen=True)
class Seen:
    """The results at some parameters of the tasks of a block."""

    parameters: Floats
    value: Floats  # (task,)
    expected: Floats  # (task, truth, label)
    odds: Floats  # (task, label, truth)
    logs: Floats  # (task, truth): log of the normalizing constants


@dataclass(frozen=True, eq=False)
class PlainBlock:
    """The twin of the compiled loop, for all tasks of a block at once."""

    tables: Tables
    task: Ints  # (cell,)
    worker: Ints
    label: Ints
    weight: Floats
    by_task: csr_array  # (task, cell): adds up over the cells of a task

    @classmethod
    def of(cls, block: Block, worker: Ints, tables: Tables) -> Self:
        """Arrange the cells of a block as columns."""
        task, code, weight = as_columns(block.cells)
        weight = np.ones(len(code)) if weight is None else weight
        indptr = block.cells.indptr - block.cells.indptr[0]
        by_task = csr_array(
            (np.ones(len(code)), np.arange(len(code)), indptr), shape=(block.n_tasks, len(code))
        )
        return cls(tables, task, worker[code], block.label[code], weight, by_task)

    def settle(
        self,
        steps: EntropySteps,
        parameters: Floats,
        posterior: Floats,
        mask: Floats | None,
        n_steps: int,
    ) -> float:
        """Take Newton steps on the tasks until they gain little, then infer their truths."""
        basis, penalty, shape = steps.basis, steps.penalty, posterior.shape
        place = self.task * shape[1] + self.label
        flat = np.bincount(place, self.weight, minlength=posterior.size)
        count = np.asarray(flat, dtype=np.float64).reshape(shape)
        own = self.weight[:, None] * self.tables.odds[self.worker, self.label]  # (cell, truth)
        by_workers = self.by_task @ own
        given = posterior[:, :, None] * count[:, None, :]
        look = self._looker(steps, posterior, count, (by_workers * posterior).sum(axis=1))
        seen, live = look(parameters), np.ones(shape[0], dtype=bool)
        for _ in range(n_steps):
            step = basis.step(given, seen.expected, seen.parameters, penalty)
            step[~live] = 0.0
            before = seen.value
            reach = partial(_look_along, look, seen.parameters, step)
            seen, after = search(reach, attrgetter("value"), before)
            live &= gains(before, after, steps.tol)
            if not live.any():
                break
        joint = by_workers + np.einsum("tl,tlk->tk", count, seen.odds) - seen.logs
        if mask is not None:
            joint += mask
        evidence = logsumexp(joint, axis=1)
        posterior[:] = np.exp(joint - evidence[:, None])
        parameters[:] = seen.parameters
        return float(evidence.sum() - penalty / 2.0 * (parameters**2).sum())

    def _looker(
        self, steps: EntropySteps, share: Floats, count: Floats, base: Floats
    ) -> Callable[[Floats], Seen]:
        def look(parameters: Floats) -> Seen:
            own = Tables.of(steps.basis.effect(parameters))
            cells, logs = self._normalized(own.chance, share)
            expected = self.by_task @ (cells * self.tables.chance[self.worker]).reshape(
                len(self.task), -1
            )
            expected = expected.reshape(own.chance.shape) * own.chance
            taken = self.by_task @ logs
            value = base + np.einsum("tl,tk,tlk->t", count, share, own.odds)
            value -= (share * taken).sum(axis=1)
            value -= steps.penalty / 2.0 * (parameters**2).sum(axis=1)
            return Seen(parameters, value, expected.swapaxes(1, 2), own.odds, taken)

        return look

    def _normalized(self, chance: Floats, share: Floats) -> tuple[Floats, Floats]:
        """Return each truth's share of the total of its probabilities, and the total's log."""
        total = np.einsum("alk,alk->ak", chance[self.task], self.tables.chance[self.worker])
        weight = self.weight[:, None]
        return (weight * share[self.task] / total)[:, None, :], weight * np.log(total)

    def add_up(
        self,
        basis: Basis,
        parameters: Floats,
        posterior: Floats,
        live: Array,
        given: Floats,
        expected: Floats,
        spent: Floats,
    ) -> None:
        """Add to the sums of the workers in use."""
        own = Tables.of(basis.effect(parameters))
        cells, logs = self._normalized(own.chance, posterior)
        share = posterior[self.task]
        taken = logs - self.weight[:, None] * own.odds[self.task, self.label]
        spent += live * np.bincount(self.worker, (share * taken).sum(axis=1), len(spent))
        rows = np.arange(len(self.worker))
        shape = (len(spent), len(rows))
        by_worker = csr_array((live[self.worker].astype(float), (self.worker, rows)), shape=shape)
        flat = (cells * own.chance[self.task]).reshape(len(rows), -1)
        expected += (by_worker @ flat).reshape(expected.shape)
        if len(given):
            np.add.at(given, (self.worker, self.label), self.weight[:, None] * share)


def _look_along(
    look: Callable[[Floats], Seen], parameters: Floats, step: Floats, pace: Floats
) -> Seen:
    """Evaluate some way along the step, which may differ between units."""
    return look(parameters + pace[:, None] * step)


def gains(before: Floats, after: Floats, tol: float) -> Array:
    """Return which values have risen by more than a fraction of themselves."""
    return after - before > max(tol, NO_GAIN) * np.abs(after)


def search(
    reach: Callable[[Floats], Point], value: Callable[[Point], Floats], before: Floats
) -> tuple[Point, Floats]:
    """Halve the steps of units that would fall, since a Newton step may overshoot."""
    pace = np.ones(len(before))
    for _ in range(MOST_HALVINGS):
        trial = reach(pace)
        after = value(trial)
        fallen = ~(after >= before - ROUNDING * np.abs(before))
        if not fallen.any():
            return trial, after
        pace[fallen] /= 2
    pace[fallen] = 0.0
    trial = reach(pace)
    return trial, value(trial)
