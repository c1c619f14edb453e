"""Who labels what: pairs of task and worker, by what a label would bring for its price."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.inference.growing import number_repeats
from crowdwise.plan.outlook import Outlook
from crowdwise.plan.policies import Policy
from crowdwise.plan.skills import PairSkills, Skills
from crowdwise.typing import Array, Floats, Ints

CANDIDATES = 4  # tasks to choose from, for each label that can be paid
MOST_PAIRS = 400_000  # that are compared; beyond it each task has some of the workers to choose
LEAST_WORKERS = 8  # whom a task can choose from in any case
AT_ONCE = 1 << 18  # cells of confusion matrices that are looked at together


@dataclass(frozen=True, eq=False)
class Pairs:
    """Tasks and workers that may come together: by numbers of tasks and rows of workers."""

    task: Ints
    row: Ints

    def __getitem__(self, chosen: Array) -> Pairs:
        return Pairs(self.task[chosen], self.row[chosen])

    def __len__(self) -> int:
        return len(self.task)


def pair_up(outlook: Outlook, order: Ints, workers: Ints, n_labels: int) -> Pairs:
    """The tasks that need a label most with every worker who has not labeled them."""
    most = max(min(CANDIDATES * n_labels, MOST_PAIRS // LEAST_WORKERS), n_labels)
    best = order[:most]
    each = min(len(workers), max(MOST_PAIRS // max(len(best), 1), LEAST_WORKERS))
    row = np.tile(np.arange(each), len(best))
    if each < len(workers):  # another part of the workers for each task
        row = (row + np.repeat(each * np.arange(len(best)), each)) % len(workers)
    pairs = Pairs(np.repeat(best, each), row)
    votes, among = outlook.votes, np.zeros(outlook.votes.n_tasks, dtype=bool)
    among[best] = True
    mine = among[votes.task]
    taken = votes.task[mine].astype(np.int64) * votes.n_workers + votes.worker[mine]
    asked = pairs.task * votes.n_workers + workers[pairs.row]
    return pairs[(workers[pairs.row] < 0) | ~np.isin(asked, taken)]


def value_pairs(
    outlook: Outlook, policy: Policy, skills: Skills, pairs: Pairs, workers: Ints
) -> Floats:
    """What a label of each pair would bring."""
    known, anyone = skills.of(outlook, workers), policy.gain(outlook)
    rows = max(AT_ONCE // max(outlook.posterior.shape[1] ** 2, 1), 1)
    parts = [pairs[np.arange(i, min(i + rows, len(pairs)))] for i in range(0, len(pairs), rows)]
    values = [_value(outlook, policy, known, part, anyone) for part in parts]
    return np.concatenate(values) if values else np.zeros(0)


def _value(
    outlook: Outlook, policy: Policy, skills: PairSkills, pairs: Pairs, anyone: Floats
) -> Floats:
    posterior, (confusion, answers) = outlook.posterior[pairs.task], skills(pairs.task, pairs.row)
    gain = policy.gain_by(posterior, confusion)
    if gain is None:  # the policy is blind to workers: the most accurate come first
        gain = anyone[pairs.task] * np.einsum("nkk,nk->n", confusion, posterior)
    return gain * answers


def choose(
    pairs: Pairs, order: Ints, price: Floats, budget: float, limit: int | None = None
) -> Ints:
    """Numbers of the pairs to ask for, in their order, within the budget.

    A task gets one label, a worker at most ``limit``. ``price`` is that of each row.
    """
    left = np.full(len(price), len(pairs) if limit is None else limit)
    chosen, spent = [order[:0]], 0.0
    while len(order):
        _, first = np.unique(pairs.task[order], return_index=True)
        best = order[np.sort(first)]
        _, nth = number_repeats(pairs.row[best])
        best = best[nth < left[pairs.row[best]]]
        best = best[spent + np.cumsum(price[pairs.row[best]]) <= budget + 1e-9]
        if not len(best):
            break
        chosen.append(best)
        spent += price[pairs.row[best]].sum()
        left -= np.bincount(pairs.row[best], minlength=len(left))
        free = ~np.isin(pairs.task[order], pairs.task[best]) & (left[pairs.row[order]] > 0)
        order = order[free & (spent + price[pairs.row[order]] <= budget + 1e-9)]
    return np.concatenate(chosen)
