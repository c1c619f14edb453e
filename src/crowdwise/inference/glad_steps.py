"""The steps of GLAD: skills and eases by Newton's method, truths by Bayes' rule.

A label of worker ``w`` on task ``t`` is right with probability ``sigmoid(skill[w] * ease[t])``. A
step is one sweep over the blocks of an engine. It evaluates new skills under the previous
posterior, which follows from the old ones; moves the ease of each task; infers its truth; and
computes the objective as a function of the skills there, from which the next ones follow.
Only the ease of tasks is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from crowdwise import compiled
from crowdwise.inference.engines.engine import Engine, Posterior
from crowdwise.inference.engines.kernels import Block
from crowdwise.inference.logistic import (
    LONGEST,
    MOST_HALVINGS,
    LabelResponses,
    Normal,
    Shape,
    ascend,
    at_scale,
    falls,
    responses_of,
    softplus,
)
from crowdwise.inference.simplex import gold_mask, log_of
from crowdwise.typing import Floats

COLUMNS = 4  # sums by worker: value, slope and curvature; value of the trial
NOTHING = np.zeros(0)


@dataclass(frozen=True)
class Abilities:
    """Skill of each worker and log ease of each task, with P(truth) of each class."""

    prior: Floats
    skill: Floats
    log_ease: Floats  # of the engine's own tasks


@dataclass(frozen=True)
class Found:
    """The results of a sweep at some abilities."""

    at: Abilities
    evidence: float
    pull: float  # log-prior of ease over all tasks
    truths: Floats  # (class,): expected number of tasks
    by_skill: Shape  # the expected log-posterior as a function of each worker's skill
    trial: Floats  # (worker,): its value at these skills with the previous eases


@dataclass(frozen=True, eq=False)
class GladSteps:
    """GLAD's steps on the annotations; gold classes hold throughout."""

    engine: Engine
    of_skill: Normal
    of_ease: Normal

    def begin(self, prior: Floats) -> Found:
        """Run the first E-step, where all workers and all tasks are equal."""
        first, stop = self.engine.own_tasks
        skill = np.full(self.engine.n_workers, self.of_skill.mean)
        now = Abilities(prior, skill, np.full(stop - first, self.of_ease.mean))
        return self._sweep(now, now, move=False)

    def improve(self, last: Found, prior: Floats) -> Found:
        """Move the skills, then the eases, then infer the truths under a class prior."""
        here, skill = last.by_skill, last.at.skill
        step = np.clip(here.slope / here.curvature, -LONGEST, LONGEST)
        for _ in range(MOST_HALVINGS):
            there = replace(last.at, prior=prior, skill=skill + step)
            found = self._sweep(last.at, there, move=True)
            fallen = falls(here.value, found.trial)
            if not fallen.any():
                return found
            step = np.where(fallen, step / 2.0, step)
        step = np.where(fallen, 0.0, step)
        return self._sweep(last.at, replace(there, skill=skill + step), move=True)

    def posterior(self, at: Abilities) -> Posterior:
        """Return P(truth | labels) of each task."""
        first = self.engine.own_tasks[0]

        def work(block: Block, out: Floats) -> None:
            some = slice(block.first - first, block.first - first + block.n_tasks)
            own = replace(at, log_ease=at.log_ease[some])
            self._block(block, own, own, NOTHING, out, np.zeros_like(at.prior), NOTHING, move=False)

        return self.engine.fill_blocks(work)

    def _sweep(self, old: Abilities, now: Abilities, *, move: bool) -> Found:
        first, moved = self.engine.own_tasks[0], now.log_ease.copy()

        def work(block: Block, truths: Floats, sums: Floats, pull: Floats) -> float:
            some = slice(block.first - first, block.first - first + block.n_tasks)
            before, after = (replace(one, log_ease=one.log_ease[some]) for one in (old, now))
            args = before, after, moved[some], NOTHING, truths, sums
            evidence = self._block(block, *args, move=move)
            pull += self.of_ease.penalty(moved[some]).sum()
            return evidence

        shapes = [now.prior.shape, (len(now.skill), COLUMNS), (1,)]
        evidence, (truths, sums, pull) = self.engine.sum_blocks(work, shapes)
        shape = self.of_skill.added_to(Shape(sums[:, 0], sums[:, 1], sums[:, 2]), now.skill)
        trial = sums[:, 3] - self.of_skill.penalty(now.skill)
        there = replace(now, log_ease=moved)
        return Found(there, evidence, float(pull[0]), truths, shape, trial)

    def _block(
        self,
        block: Block,
        old: Abilities,
        now: Abilities,
        moved: Floats,
        posterior: Floats,
        truths: Floats,
        sums: Floats,
        *,
        move: bool,
    ) -> float:
        """Fill ``moved`` and ``posterior``, update the sums, and return the evidence."""
        pairs, cells = self.engine.pairs, block.cells
        if (loop := compiled.find("glad_sweep")) is not None:
            columns = cells.indptr, cells.code, cells.value, pairs.worker, pairs.label, block.gold
            tables = log_of(old.prior), old.skill, log_of(now.prior), now.skill, now.log_ease
            normal = self.of_ease.mean, self.of_ease.variance
            return float(loop(*columns, *tables, moved, posterior, truths, sums, *normal, move))
        rows = responses_of(block, pairs.worker)
        mask = gold_mask(block.gold, block.n_classes)
        if move:
            right = expect(rows, old, mask)[0].ravel()[rows.cell]
            ease = np.exp(now.log_ease)[rows.task]
            sums[:, 3] += at_scale(now.skill, ease, rows.worker, rows, right).value
            by_ease = partial(at_ease, rows=rows, right=right, skill=now.skill, prior=self.of_ease)
            moved[:] = ascend(now.log_ease, by_ease)
            now = replace(now, log_ease=moved)
        share, evidence = expect(rows, now, mask)
        truths += share.sum(axis=0)
        if len(posterior):
            posterior[:] = share
        if len(sums):
            right, ease = share.ravel()[rows.cell], np.exp(now.log_ease)[rows.task]
            shape = at_scale(now.skill, ease, rows.worker, rows, right)
            sums[:, :3] += np.stack([shape.value, shape.slope, shape.curvature], axis=1)
        return evidence


def expect(
    rows: LabelResponses, now: Abilities, mask: Floats | None = None
) -> tuple[Floats, float]:
    """Return P(truth | labels) of each task, and the log-evidence of all.

    A label raises its class over the others by ``log(sigmoid(x) / (sigmoid(-x) / (K - 1)))``,
    which is ``x + log(K - 1)`` with ``x = skill * ease``.
    """
    shape = len(now.log_ease), len(now.prior)
    others = np.log(max(shape[1] - 1, 1))
    x = now.skill[rows.worker] * np.exp(now.log_ease)[rows.task]
    lift = rows.total(rows.cell, shape[0] * shape[1], x + others).reshape(shape)
    joint = log_of(now.prior) + lift + (0.0 if mask is None else mask)
    top = joint.max(axis=1, keepdims=True)
    share = np.exp(joint - top)
    total = share.sum(axis=1, keepdims=True)
    all_wrong = (softplus(x) + others) * (1.0 if rows.weight is None else rows.weight)
    return share / total, float((top + np.log(total)).sum() - all_wrong.sum())


def at_ease(
    log_ease: Floats, *, rows: LabelResponses, right: Floats, skill: Floats, prior: Normal
) -> Shape:
    """Return the expected log-posterior as a function of each task's log ease (M-step)."""
    ease = np.exp(log_ease)
    shape = at_scale(ease, skill[rows.worker], rows.task, rows, right)
    # Not concave in the logarithm: where it is convex, leave the curvature to the prior.
    bend = np.maximum(ease**2 * shape.curvature - ease * shape.slope, 0.0)
    return prior.added_to(Shape(shape.value, ease * shape.slope, bend), log_ease)
