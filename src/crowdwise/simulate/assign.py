"""Who labels which task, and in which order."""

from typing import Any

import numpy as np
from numpy.random import RandomState

from crowdwise.errors import ParameterError, explain
from crowdwise.typing import Array, Floats, Ints

MOST_CELLS = 2_000_000  # of a table tasks x workers
MOST_ROUNDS = 1000


def assign(
    n_tasks: int, n_workers: int, per_task: Any, activity: Any, rng: RandomState
) -> tuple[Ints, Ints]:
    """Draw ``per_task`` different workers for every task: the columns task and worker.

    Workers are drawn one after the other, by their ``activity`` among those who are left.
    """
    size = sizes(per_task, n_tasks, n_workers)
    most = int(size.max())
    weight = weights(activity, n_workers, most)
    if n_tasks * n_workers <= MOST_CELLS or n_workers < 4 * most:
        worker = _soonest(weight, (n_tasks, most), rng)
    else:
        worker = _redrawn(weight, (n_tasks, most), rng)
    taken = np.arange(most) < size[:, None]
    return np.repeat(np.arange(n_tasks), size), worker[taken]


def sizes(per_task: Any, n_tasks: int, n_workers: int) -> Ints:
    """How many labels each task gets: no more than there are workers."""
    size = np.asarray(per_task)
    if size.dtype.kind not in "iu" or size.shape not in {(), (n_tasks,)} or (size < 1).any():
        raise ParameterError(
            explain(
                f"per_task={per_task!r} does not say how many labels tasks get.",
                expected=f"a whole number of 1 or more, or {n_tasks:,} of them, one for each task",
            )
        )
    return np.broadcast_to(np.minimum(size, n_workers), n_tasks)


def weights(activity: Any, n_workers: int, most: int) -> Floats:
    """How often each worker is drawn, evenly by default."""
    weight = np.ones(n_workers) if activity is None else np.asarray(activity, dtype=np.float64)
    if weight.shape != (n_workers,) or not ((weight >= 0) & np.isfinite(weight)).all():
        raise ParameterError(
            explain(
                f"The activity has shape {weight.shape}.",
                expected=f"{n_workers:,} finite numbers of 0 or more, one for each worker",
            )
        )
    if (weight > 0).sum() < most:
        raise ParameterError(
            explain(
                f"{int((weight > 0).sum()):,} workers are active, and a task needs {most:,}.",
                fix="give more workers an activity above 0, or lower per_task",
            )
        )
    return weight


def power_law(n_workers: int, exponent: float, rng: RandomState) -> Floats:
    """Activities of which a few are large: rank to the power of ``-exponent``, shuffled."""
    return rng.permutation((1.0 + np.arange(n_workers)) ** -exponent)


def progress_of(worker: Ints, time: Ints) -> Floats:
    """How far each worker is, from 0 on the first annotation in time to 1 on the last."""
    order = np.lexsort((time, worker))
    count = np.bincount(worker)
    rank = np.empty(len(worker))
    rank[order] = np.arange(len(worker)) - np.repeat(np.cumsum(count) - count, count)
    done: Floats = rank / np.maximum(count[worker] - 1, 1)
    return done


def _soonest(weight: Floats, shape: tuple[int, int], rng: RandomState) -> Ints:
    """The first to come when arrivals are exponential, at a rate of ``weight``."""
    waiting = -np.log1p(-rng.random_sample((shape[0], len(weight))))
    arrival = np.full_like(waiting, np.inf)
    np.divide(waiting, weight, out=arrival, where=weight > 0)
    return np.argsort(arrival, axis=1)[:, : shape[1]]


def _redrawn(weight: Floats, shape: tuple[int, int], rng: RandomState) -> Ints:
    """Draws with replacement in which every repeat is drawn again; needs little memory."""
    edges = np.cumsum(weight) / weight.sum()

    def draw(n: int) -> Ints:
        return np.minimum(np.searchsorted(edges, rng.random_sample(n), "right"), len(weight) - 1)

    worker = draw(shape[0] * shape[1]).reshape(shape)
    rows: Array = np.arange(shape[0])
    for _ in range(MOST_ROUNDS):
        order = np.argsort(worker[rows], axis=1, kind="stable")
        ordered = np.take_along_axis(worker[rows], order, axis=1)
        again = np.zeros(ordered.shape, dtype=bool)
        # A stable sort puts the later draw second: the first of a worker's draws stays.
        np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
        at, place = np.nonzero(again)
        if not len(at):
            return worker
        worker[rows[at], place] = draw(len(at))
        rows = rows[np.unique(at)]
    raise ParameterError(
        explain(
            "The activities are too uneven to find different workers for every task.",
            expected="several workers with some share of all activity",
            fix="lower per_task, or raise the smallest activities",
        )
    )
