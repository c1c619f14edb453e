"""What labels cannot rule out: that all workers are misled together on some of the tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.aggregate.shared_errors import measure_dependence
from crowdwise.annotations import Annotations
from crowdwise.inference import MemoryEngine, fingerprint, normalize
from crowdwise.typing import Floats, Ints

CROWDS = 0.2  # prior probability that a crowd is misled at all
TASKS = 0.2  # maximum share of tasks that it is misled on
DEPENDENT = 0.25  # added to it if workers demonstrably err together
LEVELS = 50  # grid of shares between 0 and the maximum
ROUNDS = 30  # EM steps to find the class shares behind the crowd's answers
TINY = 1e-12


@dataclass(frozen=True)
class Misled:
    """A crowd that, on a share of the tasks, agrees on a class that is not the true one.

    The crowd's answer, which is what independent workers would mean by their labels, is then not
    the truth, and labels do not show it. By prior belief, one crowd in five is misled, on a share
    of the tasks between 0 and a fifth, or up to 45 % if workers demonstrably err together. Known
    truths update this belief.
    """

    votes: Floats  # (task, class)
    rates: Floats  # shares of tasks, starting with 0
    log_prior: Floats  # of each rate
    known: MemoryEngine | None  # tasks with a known truth, treated as unknown
    truth: Ints  # of those tasks

    @classmethod
    def of(cls, data: Annotations, gold: Ints | None) -> Misled:
        engine = MemoryEngine(data, gold)
        shown = measure_dependence(engine, fingerprint(engine)).shown
        most = TASKS + DEPENDENT * shown
        rates = np.append(0.0, most * (np.arange(LEVELS) + 0.5) / LEVELS)
        prior = np.append(1.0 - CROWDS, np.full(LEVELS, CROWDS / LEVELS))
        rows = np.zeros(0, dtype=np.intp)
        if gold is not None:
            rows = np.flatnonzero((gold >= 0) & (data.redundancy > 0))
        known = MemoryEngine(data[rows], None) if len(rows) else None
        truth = rows if gold is None else gold[rows]
        return cls(data.votes(), rates, np.log(prior), known, truth)

    def rate(self, level: float, log_shares: Floats, table: Floats) -> float:
        """Return the share of misled tasks, given what these workers would say of known truths.

        It is the quantile at this level, from 0 to 1.
        """
        chance = self.log_prior
        if self.known is not None and self.votes.shape[1] > 1:
            answers = self.known.posterior(log_shares, table)
            right = answers[np.arange(len(self.truth)), self.truth]
            wrong = (1.0 - right) / (self.votes.shape[1] - 1)
            seen = right + self.rates[:, None] * (wrong - right)  # (rate, known truth)
            chance = chance + np.log(np.maximum(seen, TINY)).sum(axis=1)
        below = np.exp(chance - chance.max()).cumsum()
        return float(self.rates[np.searchsorted(below, level * below[-1])])

    def draw_truths(
        self, answers: Ints, rate: float, gold: Ints | None, rng: np.random.Generator
    ) -> Ints:
        """Draw truths behind the crowd's answers, if it is misled on this share of the tasks.

        Its wrong answers lie somewhere between a uniform choice of class and the classes that the
        crowd names most. True classes mislead it alike, as far as its answers allow: if it says a
        class on fewer tasks than this would, the rest of its wrong answers are of any class.
        """
        n_classes = self.votes.shape[1]
        if not rate or n_classes < 2:
            return answers
        even = rng.random()
        said = normalize(np.bincount(answers, minlength=n_classes).astype(np.float64))
        to = np.minimum(even / n_classes + (1.0 - even) * said, 0.95)
        leaves = rate / (1.0 - to)  # P(says c | truth k) = leaves[k] to[c], for another class
        shares = find_shares(said, rate, to, leaves)
        chance = 1.0 - (1.0 - rate) * shares / say(shares, rate, to, leaves)
        rest = max(rate - float(said @ chance), 0.0)
        chance += (1.0 - chance) * rest / max(rest + 1.0 - rate, TINY)
        free = np.full(len(answers), True) if gold is None else gold < 0
        wrong = np.flatnonzero(free & (rng.random(len(answers)) < chance[answers]))
        weight = (self.votes[wrong] + 0.5) * (shares * leaves) + TINY
        weight[np.arange(len(wrong)), answers[wrong]] = 0.0
        level = np.cumsum(normalize(weight)[:, :-1], axis=1)
        truths = answers.copy()
        truths[wrong] = (rng.random(len(wrong))[:, None] > level).sum(axis=1)
        return truths


def say(shares: Floats, rate: float, to: Floats, leaves: Floats) -> Floats:
    """Return how often the crowd says each class, given how often each is true."""
    misled = shares * leaves
    return np.maximum((1.0 - rate) * shares + to * (misled.sum() - misled), TINY)


def find_shares(said: Floats, rate: float, to: Floats, leaves: Floats) -> Floats:
    """Find by EM the class shares that make the crowd's answers most probable."""
    shares = said
    for _ in range(ROUNDS):
        ratio = said / say(shares, rate, to, leaves)
        back = (ratio * to).sum() - ratio * to
        shares = normalize(shares * ((1.0 - rate) * ratio + leaves * back))
    return shares
