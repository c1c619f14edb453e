"""Who labels what: the best worker for each of the tasks that need a label most."""

from __future__ import annotations

import numpy as np
import pandas as pd

from crowdwise.annotations.names import locate
from crowdwise.plan.outlook import Outlook
from crowdwise.plan.policies import Policy
from crowdwise.typing import Array, Floats, Ints

CANDIDATES = 4  # tasks to choose from, for each label that can be paid


def assign(
    outlook: Outlook,
    policy: Policy,
    order: Ints,
    gain: Floats,
    costs: pd.Series,
    budget: float,
) -> pd.DataFrame:
    """Pairs of task (by number) and worker, by gain per cost, within the budget.

    ``order`` has the tasks that come into question, those that need a label most first. No
    worker labels a task twice, or gets more than twice an even share.
    """
    workers = locate(outlook.votes.workers, costs.index)
    price = np.maximum(costs.to_numpy(dtype=np.float64), 1e-12)
    n_labels = max(int(budget / price.min()), 0)
    best = order[: CANDIDATES * n_labels]
    value = policy.gain_by(outlook.posterior[best], outlook.confusion(workers))
    if value is None:  # the policy is blind to workers: the most accurate come first
        right = np.einsum("wkk,tk->tw", outlook.confusion(workers), outlook.posterior[best])
        value = gain[best][:, None] * right
    value = np.where(has_labeled(outlook, best, workers), -np.inf, value)
    return _take(best, value, price, costs.index.to_numpy(), budget)


def has_labeled(outlook: Outlook, tasks: Ints, workers: Ints) -> Array:
    """Whether each worker has labeled each of these tasks already, (task, worker)."""
    place = np.full(outlook.votes.n_tasks, -1, dtype=np.int64)
    place[tasks] = np.arange(len(tasks))
    who = np.full(outlook.votes.n_workers, -1, dtype=np.int64)
    who[workers[workers >= 0]] = np.flatnonzero(workers >= 0)
    row, column = place[outlook.votes.task], who[outlook.votes.worker]
    found = np.zeros((len(tasks), len(workers)), dtype=bool)
    both = (row >= 0) & (column >= 0)
    found[row[both], column[both]] = True
    return found


def _take(tasks: Ints, value: Floats, price: Floats, names: Array, budget: float) -> pd.DataFrame:
    """The best pairs one after another: each task once, each worker up to a limit."""
    limit = int(np.ceil(2 * budget / price.min() / max(len(price), 1)))
    left, spent, used = np.full(len(price), limit), 0.0, np.zeros(len(tasks), dtype=bool)
    rows = []
    for cell in np.argsort(-(value / price), axis=None, kind="stable"):
        task, worker = divmod(int(cell), len(price))
        if not np.isfinite(value[task, worker]) or spent + price.min() > budget + 1e-9:
            break
        if used[task] or not left[worker] or spent + price[worker] > budget + 1e-9:
            continue
        used[task], left[worker], spent = True, left[worker] - 1, spent + price[worker]
        rows.append((tasks[task], names[worker], value[task, worker], price[worker]))
    frame = pd.DataFrame(rows, columns=["task", "worker", "gain", "cost"])
    return frame.astype({"task": np.int64, "gain": float, "cost": float})
