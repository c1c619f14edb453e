"""Crowds drawn from confusion matrices."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from crowdwise.data import Annotations
from crowdwise.typing import Floats, Ints


@dataclass(frozen=True)
class Crowd:
    """Annotations and the truth they were drawn from."""

    annotations: Annotations
    truth: Ints  # (task,): class number
    confusion: Floats  # (worker, truth, label)


def one_coin_confusion(accuracy: Any, n_classes: int) -> Floats:
    """Confusion matrices of workers who err evenly, ``(worker, truth, label)``."""
    right = np.asarray(accuracy, dtype=np.float64)[:, None, None]
    wrong = (1.0 - right) / max(n_classes - 1, 1)
    return np.where(np.eye(n_classes, dtype=bool), right, wrong)


def confused_crowd(
    confusion: Any,
    n_tasks: int,
    per_task: int,
    *,
    prior: Any = None,
    activity: Any = None,
    random_state: Any = None,
) -> Crowd:
    """Draw a crowd whose workers have known confusion matrices.

    Parameters
    ----------
    confusion : array of shape (n_workers, n_classes, n_classes)
        P(label | truth); the axes are worker, truth, label.
    n_tasks, per_task : int
        How many tasks, and how many labels each gets. Workers of a task are drawn by
        ``activity``; a worker may be drawn again, and then only the first draw counts.
    prior : array of shape (n_classes,), optional
        P(truth), uniform by default.
    activity : array of shape (n_workers,), optional
        How often each worker is drawn, evenly by default.
    random_state : int or RandomState, optional
        The seed.

    Examples
    --------
    >>> confusion = one_coin_confusion([0.9, 0.8, 0.7], n_classes=2)
    >>> crowd = confused_crowd(confusion, n_tasks=50, per_task=3, random_state=0)
    >>> crowd.annotations.classes.tolist()
    [0, 1]
    """
    rng = check_random_state(random_state)
    confusion = np.asarray(confusion, dtype=np.float64)
    truth = rng.choice(confusion.shape[1], size=n_tasks, p=prior)
    options = {"activity": activity, "random_state": rng}
    return Crowd(label_by_crowd(truth, confusion, per_task, **options), truth, confusion)


def label_by_crowd(
    truth: Any, confusion: Any, per_task: int, *, activity: Any = None, random_state: Any = None
) -> Annotations:
    """Labels of tasks whose truth is known, by workers with known confusion matrices.

    The parameters are those of :func:`confused_crowd`; ``truth`` holds class numbers.
    """
    rng = check_random_state(random_state)
    truth, confusion = np.asarray(truth), np.asarray(confusion, dtype=np.float64)
    n_tasks, (n_workers, n_classes, _) = len(truth), confusion.shape
    if activity is None:
        chance = rng.random_sample((n_tasks, n_workers))
        worker = np.argsort(chance, axis=1)[:, :per_task]
    else:
        odds = np.asarray(activity, dtype=np.float64)
        worker = rng.choice(n_workers, size=(n_tasks, per_task), p=odds / odds.sum())
    task = np.repeat(np.arange(n_tasks), worker.shape[1])
    worker = worker.reshape(-1)
    edges = confusion.cumsum(axis=2)
    luck = rng.random_sample(len(task))
    label = (luck[:, None] >= edges[worker, truth[task], :-1]).sum(axis=1)
    annotations = Annotations.from_codes(
        task,
        worker,
        label,
        tasks=np.arange(n_tasks),
        workers=np.arange(n_workers),
        classes=np.arange(n_classes),
    )
    return annotations if activity is None else annotations.without_repeats("first")


def simulate_crowd(
    n_tasks: int = 1000,
    n_workers: int = 50,
    n_classes: int = 4,
    per_task: int = 5,
    *,
    accuracy: tuple[float, float] = (0.45, 0.95),
    spammers: float = 0.1,
    prior: Any = None,
    random_state: Any = None,
) -> Crowd:
    """Draw a crowd like a real one: a few workers do most, some answer at random.

    Workers' activity follows a power law; their accuracy is uniform between the bounds;
    their errors lean towards one other class; a share of ``spammers`` ignores the task.
    """
    rng = check_random_state(random_state)
    skill = rng.uniform(*accuracy, size=n_workers)
    lean = rng.dirichlet(np.full(n_classes, 0.5), size=(n_workers, n_classes))
    lean[:, np.arange(n_classes), np.arange(n_classes)] = 0.0
    lean /= np.maximum(lean.sum(axis=2, keepdims=True), 1e-12)
    confusion = (1.0 - skill)[:, None, None] * lean
    confusion[:, np.arange(n_classes), np.arange(n_classes)] += skill[:, None]
    confusion[: round(spammers * n_workers)] = 1.0 / n_classes
    confusion /= confusion.sum(axis=2, keepdims=True)
    activity = (1.0 + np.arange(n_workers)) ** -0.8
    return confused_crowd(
        confusion,
        n_tasks,
        per_task,
        prior=prior,
        activity=rng.permutation(activity),
        random_state=rng,
    )
