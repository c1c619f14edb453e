"""From behavior to labels: who labels what, in which order, and how."""

import numpy as np
from numpy.typing import ArrayLike

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError, explain
from crowdwise.simulate.behavior import Behavior
from crowdwise.typing import Array, Floats, Ints

MOST_CELLS = 2_000_000  # in a table tasks x workers
MOST_ROUNDS = 1000


def label_tasks(
    truth: Ints,
    behavior: Behavior,
    per_task: ArrayLike,
    difficulty: Floats,
    rng: np.random.RandomState,
    soft_confidence: float | None = None,
) -> Annotations:
    """Draw who labels what, in which order, and how."""
    n_tasks, (n_workers, n_classes, _) = len(truth), behavior.first.shape
    for model, rows in behavior.on_tasks.items():
        if len(rows) != n_tasks:
            raise ParameterError(
                f"Worker {model}, a model, knows {len(rows):,} tasks.\n  expected: {n_tasks:,}"
                "\n  fix:      give the model a row for each task"
            )
    task, worker = assign(n_tasks, n_workers, per_task, behavior.activity, rng)
    if behavior.abstention.any():
        stay = behavior.stays(worker, truth[task], difficulty[task])
        given = rng.random_sample(len(task)) < stay
        task, worker = task[given], worker[given]
    draw, time = rng.random_sample(len(task)), rng.permutation(len(task))
    progress = measure_progress(worker, time)
    chances = behavior.chances(worker, task, truth, progress, difficulty)
    label = pick_labels(chances, draw)
    if (behavior.leader >= 0).any():
        label = copy_leaders(label, task, worker, truth, behavior, difficulty, rng)
    return Annotations.from_codes(
        task,
        worker,
        label,
        tasks=np.arange(n_tasks),
        workers=np.arange(n_workers),
        classes=np.arange(n_classes),
        time=time,
        soft=None if soft_confidence is None else soften(label, chances, soft_confidence),
    )


def copy_leaders(
    label: Ints,
    task: Ints,
    worker: Ints,
    truth: Ints,
    behavior: Behavior,
    difficulty: Floats,
    rng: np.random.RandomState,
) -> Ints:
    """Copy some labels from a leader, whether or not the leader labeled the task."""
    n_tasks = len(truth)
    copied = np.flatnonzero(rng.random_sample(len(task)) < behavior.copying[worker])
    pair = behavior.leader[worker[copied]] * n_tasks + task[copied]
    wanted, place = np.unique(pair, return_inverse=True)
    leader, asked = np.divmod(wanted, n_tasks)
    chances = behavior.chances(leader, asked, truth, 0.5, difficulty)
    copied_label = pick_labels(chances, rng.random_sample(len(wanted)))
    _, known, found = np.intersect1d(
        worker * n_tasks + task, wanted, assume_unique=True, return_indices=True
    )
    copied_label[found] = label[known]
    label = label.copy()
    label[copied] = copied_label[place]
    return label


def pick_labels(chances: Floats, draw: Floats) -> Ints:
    """Turn draws from 0 to 1 into labels by their cumulative probabilities."""
    picks: Ints = (draw[:, None] >= chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return picks


def soften(label: Ints, chances: Floats, soft_confidence: float) -> Floats:
    """Make soft labels: mostly the given label, the rest spread over what might have been."""
    if not 0.5 <= soft_confidence <= 1:
        raise ParameterError(
            f"soft_confidence={soft_confidence}.\n  expected: a number from 0.5 to 1"
            "\n  fix:      give soft_confidence=0.8"
        )
    soft: Floats = (
        soft_confidence * np.eye(chances.shape[1])[label] + (1 - soft_confidence) * chances
    )
    return soft


def assign(
    n_tasks: int,
    n_workers: int,
    per_task: ArrayLike,
    activity: ArrayLike | None,
    rng: np.random.RandomState,
) -> tuple[Ints, Ints]:
    """Draw ``per_task`` different workers for every task: the columns task and worker.

    Workers are drawn one after another, by ``activity`` among those who are left.
    """
    size = check_sizes(per_task, n_tasks, n_workers)
    most = int(size.max())
    weight = check_activity(activity, n_workers, most)
    if n_tasks * n_workers <= MOST_CELLS or n_workers < 4 * most:
        worker = _draw_by_arrival(weight, (n_tasks, most), rng)
    else:
        worker = _draw_with_redraws(weight, (n_tasks, most), rng)
    taken = np.arange(most) < size[:, None]
    return np.repeat(np.arange(n_tasks), size), worker[taken]


def check_sizes(per_task: ArrayLike, n_tasks: int, n_workers: int) -> Ints:
    """Check the number of labels per task: no more than there are workers."""
    size = np.asarray(per_task)
    if size.dtype.kind not in "iu" or size.shape not in {(), (n_tasks,)} or (size < 1).any():
        raise ParameterError(
            explain(
                f"per_task={per_task!r} is not a number of labels per task.",
                expected=f"a whole number of 1 or more, or {n_tasks:,} of them, one for each task",
                fix="give per_task=3",
            )
        )
    return np.broadcast_to(np.minimum(size, n_workers), n_tasks)


def check_activity(activity: ArrayLike | None, n_workers: int, most: int) -> Floats:
    """Check how often each worker is drawn, equally by default."""
    weight = np.ones(n_workers) if activity is None else np.asarray(activity, dtype=np.float64)
    if weight.shape != (n_workers,) or not ((weight >= 0) & np.isfinite(weight)).all():
        raise ParameterError(
            explain(
                f"The activity has shape {weight.shape}.",
                expected=f"{n_workers:,} finite numbers of 0 or more, one for each worker",
                fix="leave it out for equally active workers",
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


def draw_power_law(n_workers: int, exponent: float, rng: np.random.RandomState) -> Floats:
    """Return uneven activities: rank to the power of ``-exponent``, shuffled."""
    return rng.permutation((1.0 + np.arange(n_workers)) ** -exponent)


def measure_progress(worker: Ints, time: Ints) -> Floats:
    """Return each worker's progress, from 0 at the first annotation to 1 at the last."""
    order = np.lexsort((time, worker))
    count = np.bincount(worker)
    rank = np.empty(len(worker))
    rank[order] = np.arange(len(worker)) - np.repeat(np.cumsum(count) - count, count)
    done: Floats = rank / np.maximum(count[worker] - 1, 1)
    return done


def _draw_by_arrival(weight: Floats, shape: tuple[int, int], rng: np.random.RandomState) -> Ints:
    """Draw the first to arrive, with exponential arrivals at rates ``weight``."""
    waiting = -np.log1p(-rng.random_sample((shape[0], len(weight))))
    arrival = np.full_like(waiting, np.inf)
    np.divide(waiting, weight, out=arrival, where=weight > 0)
    return np.argsort(arrival, axis=1)[:, : shape[1]]


def _draw_with_redraws(weight: Floats, shape: tuple[int, int], rng: np.random.RandomState) -> Ints:
    """Draw with replacement, and draw repeats again; this needs little memory."""
    edges = np.cumsum(weight) / weight.sum()

    def draw(n: int) -> Ints:
        return np.minimum(np.searchsorted(edges, rng.random_sample(n), "right"), len(weight) - 1)

    worker = draw(shape[0] * shape[1]).reshape(shape)
    rows: Array = np.arange(shape[0])
    for _ in range(MOST_ROUNDS):
        order = np.argsort(worker[rows], axis=1, kind="stable")
        ordered = np.take_along_axis(worker[rows], order, axis=1)
        again = np.zeros(ordered.shape, dtype=bool)
        # A stable sort puts the later draw second, so the first of a worker's draws stays.
        np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
        at, place = np.nonzero(again)
        if not len(at):
            return worker
        worker[rows[at], place] = draw(len(at))
        rows = rows[np.unique(at)]
    raise ParameterError(
        explain(
            "The activities are too uneven to draw different workers for every task.",
            expected="several workers with a good share of all activity",
            fix="lower per_task, or raise the smallest activities",
        )
    )
