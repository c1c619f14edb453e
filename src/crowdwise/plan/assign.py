"""Assignment of workers to tasks, by what a label would bring for its price."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from crowdwise.annotations.names import locate
from crowdwise.errors import ParameterError
from crowdwise.inference.growing_arrays import number_repeats
from crowdwise.memory import LARGE, refuse_too_large
from crowdwise.plan.outlook import Outlook
from crowdwise.plan.policies import Policy
from crowdwise.plan.prices import FREE, as_paid
from crowdwise.plan.skills import PairSkills, Skills
from crowdwise.typing import Array, Floats, Ints

CANDIDATES = 4  # tasks to choose from, per label that can be paid for
MOST_PAIRS = 400_000  # compared; above it, each task chooses from some of the workers
LEAST_WORKERS = 8  # that a task can always choose from
ROW = 64  # bytes of a plan per label
AT_ONCE = 1 << 18  # cells of confusion matrices processed together


@dataclass(frozen=True, eq=False)
class Pairings:
    """Tasks and workers that may be combined, by numbers of tasks and rows of workers."""

    task: Ints
    row: Ints

    def __getitem__(self, chosen: Array) -> Pairings:
        return Pairings(self.task[chosen], self.row[chosen])

    def __len__(self) -> int:
        return len(self.task)


def pair_up(outlook: Outlook, best: Ints, workers: Ints) -> Pairings:
    """Pair some tasks with every worker who has not labeled them."""
    each = min(len(workers), max(MOST_PAIRS // max(len(best), 1), LEAST_WORKERS))
    row = np.tile(np.arange(each), len(best))
    if each < len(workers):  # a different part of the workers for each task
        row = (row + np.repeat(each * np.arange(len(best)), each)) % len(workers)
    return unlabeled(outlook, Pairings(np.repeat(best, each), row), workers)


def unlabeled(outlook: Outlook, pairs: Pairings, workers: Ints) -> Pairings:
    """Leave out the pairs whose worker has labeled the task."""
    votes, among = outlook.votes, np.zeros(outlook.votes.n_tasks, dtype=bool)
    among[pairs.task] = True
    mine = among[votes.task]
    taken = votes.task[mine].astype(np.int64) * votes.n_workers + votes.worker[mine]
    asked = pairs.task * votes.n_workers + workers[pairs.row]
    return pairs[(workers[pairs.row] < 0) | ~np.isin(asked, taken)]


def value_pairs(
    outlook: Outlook, policy: Policy, skills: Skills, pairs: Pairings, workers: Ints
) -> Floats:
    """Return what a label by each pair would bring."""
    known, anyone = skills.of(outlook, workers), policy.gain(outlook)
    rows = max(AT_ONCE // max(outlook.posterior.shape[1] ** 2, 1), 1)
    parts = [pairs[np.arange(i, min(i + rows, len(pairs)))] for i in range(0, len(pairs), rows)]
    values = [_value(outlook, policy, known, part, anyone) for part in parts]
    return np.concatenate(values) if values else np.zeros(0)


def _value(
    outlook: Outlook, policy: Policy, skills: PairSkills, pairs: Pairings, anyone: Floats
) -> Floats:
    posterior, (confusion, answers) = outlook.posterior[pairs.task], skills(pairs.task, pairs.row)
    gain = policy.gain_by(posterior, confusion)
    if gain is None:  # the policy ignores workers: the most accurate come first
        gain = anyone[pairs.task] * np.einsum("nkk,nk->n", confusion, posterior)
    else:
        gain = gain * outlook.news[pairs.task]
    return gain * answers


def choose(
    pairs: Pairings,
    stages: list[tuple[Ints, float]],
    price: Floats,
    limit: int | None = None,
) -> Ints:
    """Choose pairs to ask for: each task gets one label, a worker at most ``limit``.

    Each stage is an order of pairs, best first, with the total cost allowed up to that
    stage. ``price`` is that of each row.
    """
    left = np.full(len(price), len(pairs) if limit is None else limit)
    taken = np.zeros(int(pairs.task.max(initial=-1)) + 1, dtype=bool)
    chosen, spent = [np.zeros(0, dtype=np.int64)], 0.0
    for stage, budget in stages:
        order = stage
        while True:
            free = ~taken[pairs.task[order]] & (left[pairs.row[order]] > 0)
            order = order[free & (spent + price[pairs.row[order]] <= budget + FREE)]
            _, first = np.unique(pairs.task[order], return_index=True)
            best = order[np.sort(first)]
            _, nth = number_repeats(pairs.row[best])
            best = best[nth < left[pairs.row[best]]]
            best = best[spent + np.cumsum(price[pairs.row[best]]) <= budget + FREE]
            if not len(best):
                break
            chosen.append(best)
            taken[pairs.task[best]] = True
            spent += price[pairs.row[best]].sum()
            left -= np.bincount(pairs.row[best], minlength=len(left))
    return np.concatenate(chosen)


def hedge(order: Ints, n_first: int, n_labels: Ints) -> Ints:
    """Keep the first of an order, and sort the others by their number of labels."""
    rest = order[n_first:]
    return np.concatenate([order[:n_first], rest[np.argsort(n_labels[rest], kind="stable")]])


@dataclass(frozen=True, eq=False)
class Desk:
    """Distributes labels: most by a policy, and a part evenly over the tasks."""

    outlook: Outlook
    policy: Policy
    may: Array  # (task,): whether it may be labeled
    min_labels: int
    evenly: float  # share for the tasks with the fewest labels

    def by_anyone(self, budget: float, price: float) -> pd.DataFrame:
        """Choose the tasks to label, without naming workers."""
        order, gain = self._order()
        needed = ROW * budget / price if price > FREE else 0.0
        if needed > LARGE:
            what = f"{budget / price:,.0f} labels to ask for"
            fix = "give a smaller budget, or check the cost of a label"
            refuse_too_large("The plan", needed, what, fix, ParameterError)
        n = int(budget / price + FREE) if price > FREE else len(order)  # free: one for each
        order = hedge(order, n - round(self.evenly * n), self.outlook.n_labels)
        rows = np.resize(order, n) if len(order) else order  # once more if money is left
        names = self.outlook.votes.tasks[rows]
        return pd.DataFrame(
            {"task": names, "worker": None, "gain": gain[rows], "cost": as_paid(price)}
        )

    def by_workers(self, budget: float, price: pd.Series, skills: Skills) -> pd.DataFrame:
        """Choose tasks and workers, each of whom gets at most twice an even share."""
        order, _ = self._order()
        n_labels = int(budget / price.min() + FREE) if len(price) else 0
        n_labels = min(n_labels, len(order))  # each task gets one
        most = max(min(CANDIDATES * n_labels, MOST_PAIRS // LEAST_WORKERS), n_labels)
        best = hedge(order, most - round(self.evenly * most), self.outlook.n_labels)[:most]
        pairs = pair_up(self.outlook, best, locate(self.outlook.votes.workers, price.index))
        limit = -(-2 * n_labels // max(len(price), 1))
        return self._choose(pairs, budget, price, skills, limit)

    def by_offers(
        self, budget: float, price: pd.Series, skills: Skills, offered: pd.DataFrame
    ) -> pd.DataFrame:
        """Choose the best of these pairs of task and worker."""
        task = locate(self.outlook.votes.tasks, offered["task"].to_numpy())
        pairs = Pairings(task, locate(price.index.to_numpy(), offered["worker"].to_numpy()))
        pairs = pairs[(task >= 0) & self.may[task]]
        pairs = unlabeled(self.outlook, pairs, locate(self.outlook.votes.workers, price.index))
        return self._choose(pairs, budget, price, skills)

    def _order(self) -> tuple[Ints, Floats]:
        """Return the tasks that may be labeled, best first, and the gain of each task."""
        gain, few = self.policy.gain(self.outlook), self.outlook.n_labels < self.min_labels
        order = np.lexsort((-gain, ~few))
        return order[self.may[order]], gain

    def _choose(
        self,
        pairs: Pairings,
        budget: float,
        prices: pd.Series,
        skills: Skills,
        limit: int | None = None,
    ) -> pd.DataFrame:
        votes, n_labels = self.outlook.votes, self.outlook.n_labels[pairs.task]
        price, workers = prices.to_numpy(), locate(votes.workers, prices.index)
        gain = value_pairs(self.outlook, self.policy, skills, pairs, workers)
        order = np.lexsort((-gain / price[pairs.row], n_labels >= self.min_labels))
        mean = price.mean() if len(price) else 1.0
        rest = min(round(self.evenly * budget / mean) * mean, budget)
        fewest = order[np.argsort(n_labels[order], kind="stable")]
        chosen = choose(pairs, [(order, budget - rest), (fewest, budget)], price, limit)
        row = pairs.row[chosen]
        return pd.DataFrame(
            {
                "task": votes.tasks[pairs.task[chosen]],
                "worker": prices.index.to_numpy()[row],
                "gain": gain[chosen],
                "cost": as_paid(price[row]),
            }
        )
