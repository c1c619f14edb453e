"""The steps of GLAD: skills and eases by Newton's method, truths by Bayes' rule.

A label of worker ``w`` on task ``t`` is right with probability ``sigmoid(skill[w] * ease[t])``.
In compiled code a step is three passes over the annotations, each in threads: the objective as a
function of the skills, the same at the skills it leads to, and for each task a step of its ease
and its truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from crowdwise import compiled
from crowdwise.annotations import Annotations
from crowdwise.inference.engines.blocks import Parts, add_up, in_order
from crowdwise.inference.engines.memory import cut_cells
from crowdwise.inference.logistic import (
    LabelResponses,
    Normal,
    Shape,
    ascend,
    at_scale,
    responses_of,
    softplus,
)
from crowdwise.inference.simplex import gold_mask, log_of
from crowdwise.typing import Floats, Ints


@dataclass(frozen=True)
class Abilities:
    """Skill of each worker and log ease of each task, with P(truth) of each class."""

    prior: Floats
    skill: Floats
    log_ease: Floats


@dataclass(frozen=True, eq=False)
class GladSteps:
    """What GLAD does to the annotations; gold classes hold throughout."""

    annotations: Annotations
    gold: Ints | None
    of_skill: Normal
    of_ease: Normal
    n_threads: int | None = None

    def expect(self, now: Abilities) -> tuple[Floats, float]:
        """E-step: P(truth | labels) of each task, and the log-evidence of all."""
        if compiled.find("ease_pass") is None:
            mask = gold_mask(self.gold, self.annotations.n_classes)
            return expect(self._rows, now, mask)
        posterior = np.zeros((len(now.log_ease), len(now.prior)))
        return posterior, self._ease_pass(now, now.log_ease.copy(), posterior, move=False)

    def improve(self, now: Abilities, posterior: Floats) -> tuple[Abilities, Floats, float]:
        """Move the skills, then the eases, then infer the truths; ``posterior`` is used up."""
        if compiled.find("ease_pass") is None:
            return self._improve_plainly(now, posterior)
        skill = ascend(now.skill, partial(self._at_skill, posterior=posterior, now=now))
        log_ease, moved = now.log_ease.copy(), Abilities(now.prior, skill, now.log_ease)
        evidence = self._ease_pass(moved, log_ease, posterior, move=True)
        return Abilities(now.prior, skill, log_ease), posterior, evidence

    def _improve_plainly(
        self, now: Abilities, posterior: Floats
    ) -> tuple[Abilities, Floats, float]:
        rows, right = self._rows, posterior.ravel()[self._rows.cell]
        by_skill = partial(at_skill, rows=rows, right=right, prior=self.of_skill)
        skill = ascend(now.skill, partial(by_skill, log_ease=now.log_ease))
        by_ease = partial(at_ease, rows=rows, right=right, prior=self.of_ease)
        then = Abilities(now.prior, skill, ascend(now.log_ease, partial(by_ease, skill=skill)))
        return then, *self.expect(then)

    @cached_property
    def _rows(self) -> LabelResponses:
        return responses_of(self.annotations)

    @cached_property
    def _columns(self) -> tuple[object, ...]:
        """The cells as the compiled loops take them, and whose they are."""
        cells, pairs = self.annotations.pair_cells, self.annotations.pairs
        return cells.indptr, cells.code, cells.value, pairs.worker, pairs.label

    @cached_property
    def _codes(self) -> Ints | None:
        return None if self.gold is None else np.ascontiguousarray(self.gold, dtype=np.int32)

    def _sum(self, work: Callable[[tuple[int, int]], Parts], size: int) -> Parts:
        blocks = cut_cells(self.annotations.pair_cells, size)
        return add_up(in_order(work, blocks, self.n_threads))

    def _at_skill(self, skill: Floats, *, posterior: Floats, now: Abilities) -> Shape:
        """M-step: the expected log-posterior as a function of each worker's skill."""
        ease, n_classes = np.exp(now.log_ease), self.annotations.n_classes
        loop = compiled.find("skill_pass")
        assert loop is not None

        def work(edges: tuple[int, int]) -> Parts:
            sums = np.zeros((len(skill), 4))
            sums[:, 3] = 1.0
            loop(*self._columns, skill, posterior, ease, sums, *edges, n_classes)
            sums[:, 0] -= np.log(sums[:, 3])
            return (sums,)

        (sums,) = self._sum(work, 4 * len(skill))
        return self.of_skill.added_to(Shape(sums[:, 0], sums[:, 1], sums[:, 2]), skill)

    def _ease_pass(
        self, now: Abilities, log_ease: Floats, posterior: Floats, *, move: bool
    ) -> float:
        """Moves the eases if asked to, replaces the posterior, and returns the evidence."""
        columns = *self._columns, now.skill, log_of(now.prior), self._codes, log_ease, posterior
        normal, loop = (self.of_ease.mean, self.of_ease.variance), compiled.find("ease_pass")
        assert loop is not None

        def work(edges: tuple[int, int]) -> Parts:
            truths = np.zeros(len(now.prior))
            return np.array([loop(*columns, truths, *normal, *edges, move)]), truths

        return float(self._sum(work, 0)[0][0])


def expect(
    rows: LabelResponses, now: Abilities, mask: Floats | None = None
) -> tuple[Floats, float]:
    """P(truth | labels) of each task, and the log-evidence of all.

    A label lifts its class over the others by ``log(sigmoid(x) / (sigmoid(-x) / (K - 1)))``,
    which is ``x + log(K - 1)`` where ``x = skill * ease``.
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


def at_skill(
    skill: Floats, *, rows: LabelResponses, right: Floats, log_ease: Floats, prior: Normal
) -> Shape:
    """M-step: the expected log-posterior as a function of each worker's skill."""
    shape = at_scale(skill, np.exp(log_ease)[rows.task], rows.worker, rows, right)
    return prior.added_to(shape, skill)


def at_ease(
    log_ease: Floats, *, rows: LabelResponses, right: Floats, skill: Floats, prior: Normal
) -> Shape:
    """M-step: the expected log-posterior as a function of each task's log ease."""
    ease = np.exp(log_ease)
    shape = at_scale(ease, skill[rows.worker], rows.task, rows, right)
    # Not concave in the logarithm: where it bends upwards, leave the curvature to the prior.
    bend = np.maximum(ease**2 * shape.curvature - ease * shape.slope, 0.0)
    return prior.added_to(Shape(shape.value, ease * shape.slope, bend), log_ease)
