"""Draws of crowds in which families of workers err together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crowdwise.aggregate.families import Families, adder
from crowdwise.annotations import Annotations
from crowdwise.evaluate.worker_draws import Draw, draw_codes, draw_tables
from crowdwise.inference import normalize, one_hot
from crowdwise.typing import Array, Floats, Ints

STARTS = 6  # chains, the first from the families found, the others from random ones
MOST, FEWEST, WORK = 120, 20, 300_000  # steps of each before it counts, times annotations
FAR = 10.0  # in log likelihood, below that of the best chain
ANSWERS = 2.0  # pseudo-counts of a family's answers, per class
LEAST, LARGEST = 0.02, 0.95  # bounds of probabilities that are drawn
TINY = 1e-12


def draw_family_chain(
    data: Annotations,
    gold: Ints | None,
    posterior: Floats,
    right: float,
    families: Families,
    n_draws: int,
    rng: np.random.Generator,
) -> Iterator[Draw]:
    """Draw truths, workers and class shares if there are as many families, as a Gibbs sampler.

    On each task a family has an answer. Its members give it with a probability, the same for
    all of them, and otherwise labels of their own::

        P(label | truth, answer) = strength * [label is answer] + (1 - strength) * confusion
        strength ~ Beta(2, 2), P(a worker is in none or one of them) ~ Dirichlet(1)

    Who belongs to them is drawn as well, since labels seldom settle it. There are several chains,
    since members hold one another in place; those that make the labels much less probable than
    another are left out. The matrices include what members copy.
    """
    n_steps = int(np.clip(WORK // max(data.n_annotations, 1), FEWEST, MOST))
    states = []
    for start in range(STARTS):
        number = rng.integers(len(families), size=data.n_workers)
        number[rng.random(data.n_workers) < 0.5] = -1
        number = families.number if start == 0 else number
        states.append(_State(data, gold, posterior, right, number, len(families), rng))
        for _ in range(n_steps):
            states[start].step()
    clear = [np.mean(state.log_likelihoods[n_steps // 3 :]) for state in states]
    states = [state for state, one in zip(states, clear, strict=True) if one > max(clear) - FAR]
    apart = max(STARTS * n_steps // max(n_draws, 1), 1)
    for draw in range(n_draws):
        state = states[draw * len(states) // n_draws]
        for _ in range(apart - 1):
            state.step()
        yield state.step()


class _State:
    """The families, their strengths, and tables of workers and of the families' answers."""

    def __init__(
        self,
        data: Annotations,
        gold: Ints | None,
        posterior: Floats,
        right: float,
        number: Ints,
        n_families: int,
        rng: np.random.Generator,
    ) -> None:
        n_classes = data.n_classes
        self.data, self.right, self.number, self.rng = data, right, number, rng
        self.by_task = adder(data.task, data.n_tasks)
        self.by_pair = adder(data.worker * n_classes + data.label, data.n_workers * n_classes)
        self.by_label = adder(data.task * n_classes + data.label, data.n_tasks * n_classes)
        self.ruled_out = np.full((data.n_tasks, n_classes), False)
        if gold is not None:
            self.ruled_out = (gold[:, None] >= 0) & (gold[:, None] != np.arange(n_classes))
        self.parts = np.full(n_families + 1, 1.0 / (n_families + 1))  # the last is in none
        self.strength = np.append(np.full(n_families, 0.5), 0.0)
        self.log_likelihoods: list[float] = []
        truths = one_hot(draw_codes(posterior, rng), n_classes)
        self._draw_workers(truths, truths[data.task])
        self.answers = np.tile(normalize(self.matrices.mean(axis=0)), (n_families, 1, 1))

    def step(self) -> Draw:
        data, rng, n_families = self.data, self.rng, len(self.answers)
        given = self.matrices[data.worker, :, data.label]  # (annotation, truth)
        truth, answers = self._draw_truths(given)
        truths = one_hot(truth, data.n_classes)
        own = given[np.arange(len(given)), truth[data.task]]
        fits = np.array([data.label == answer[data.task] for answer in answers])
        self._draw_members(own, fits)
        family = self.number[data.worker]
        strength = self.strength[family]
        fit = np.append(fits, np.full((1, len(own)), False), axis=0)[family, np.arange(len(own))]
        copies = fit & (rng.random(len(own)) * (strength + (1.0 - strength) * own) < strength)
        prior = ANSWERS * normalize(self.matrices.mean(axis=0))
        for f, answer in enumerate(answers):
            n, copied = np.sum(family == f), np.sum(copies & (family == f))
            self.strength[f] = np.clip(rng.beta(2.0 + copied, 2.0 + n - copied), LEAST, LARGEST)
            counts = truths.T @ one_hot(answer, data.n_classes)
            drawn = normalize(rng.standard_gamma(counts + prior) + TINY)
            self.answers[f] = np.maximum(drawn, TINY)
        sizes = np.bincount(self.number % (n_families + 1), minlength=n_families + 1)
        self.parts = np.maximum(rng.dirichlet(1.0 + sizes), LEAST)
        self._draw_workers(truths, truths[data.task] * ~copies[:, None])
        copied = self.strength[self.number][:, None, None]
        matrices = copied * self.answers[self.number] + (1.0 - copied) * self.matrices
        return truths, matrices, self.shares

    def _draw_truths(self, given: Floats) -> tuple[Ints, list[Ints]]:
        """Draw the truth of each task, and the families' answers."""
        n_tasks, n_classes = self.ruled_out.shape
        copy = self.strength[self.number][self.data.worker][:, None]
        log = np.log(self.shares) + self.by_task @ np.log((1.0 - copy) * given)
        log[self.ruled_out] = -np.inf
        more, chances = np.log1p(copy / ((1.0 - copy) * given)), []
        for f, table in enumerate(self.answers):
            inside = (self.number == f)[self.data.worker][:, None]
            sums = (self.by_label @ (more * inside)).reshape(n_tasks, n_classes, n_classes)
            both = sums.swapaxes(1, 2) + np.log(table)  # (task, truth, answer)
            peak = both.max(axis=2, keepdims=True)
            chances.append(np.exp(both - peak))
            log += (np.log(chances[f].sum(axis=2, keepdims=True)) + peak)[:, :, 0]
        peak = log.max(axis=1, keepdims=True)
        posterior = np.exp(log - peak)
        likelihood = np.log(posterior.sum(axis=1, keepdims=True)) + peak
        self.log_likelihoods.append(float(likelihood.sum()))
        truth = draw_codes(normalize(posterior), self.rng)
        rows = np.arange(n_tasks)
        return truth, [draw_codes(normalize(one[rows, truth]), self.rng) for one in chances]

    def _draw_members(self, own: Floats, fits: Array) -> None:
        """Draw which family each worker is in, given truths and answers."""
        strength = self.strength[:-1, None]
        gain = np.log((1.0 - strength) + strength * fits / own)  # (family, annotation)
        n_workers = self.data.n_workers
        log = [np.bincount(self.data.worker, one, minlength=n_workers) for one in gain]
        odds = np.log(self.parts) + np.stack([*log, np.zeros(n_workers)], axis=1)
        chance = normalize(np.exp(odds - odds.max(axis=1, keepdims=True)))
        code = draw_codes(chance, self.rng)
        self.number = np.where(code < len(log), code, -1)

    def _draw_workers(self, truths: Floats, own: Floats) -> None:
        """Draw matrices from the labels that are not copied, and class shares."""
        data = self.data
        counts = (self.by_pair @ own).reshape(data.n_workers, data.n_classes, data.n_classes)
        self.matrices, self.shares = draw_tables(
            counts.swapaxes(1, 2), truths.sum(axis=0), self.right, self.rng
        )
