"""Crowds with known truth, drawn from workers with known behavior."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError, explain
from crowdwise.simulate.behavior import Behavior, check_abstention
from crowdwise.simulate.labeling import draw_power_law, label_tasks
from crowdwise.simulate.workers import Worker, is_distribution
from crowdwise.typing import Array, Floats, Ints, RandomState


@dataclass(frozen=True, repr=False)
class SimulatedCrowd:
    """Annotations with everything they were drawn from."""

    annotations: Annotations
    truth: Ints  # (task,): class number
    confusion: Floats  # (worker, truth, label), at difficulty one
    kinds: Array | None = None  # (worker,): their kinds
    difficulty: Floats | None = None  # (task,): 1 is ordinary, more is harder
    behavior: Behavior | None = None  # the workers' behavior in full

    def __repr__(self) -> str:
        return str(self.annotations).replace("<Annotations:", "<SimulatedCrowd:")


class LabelOptions(TypedDict, total=False):
    """How tasks are assigned to workers; see :func:`simulate_crowd`."""

    per_task: ArrayLike
    activity: ArrayLike | None
    abstention: ArrayLike | None
    soft_confidence: float | None


class CrowdOptions(LabelOptions, total=False):
    """Which workers there are, too; see :func:`simulate_crowd`."""

    n_workers: int
    n_classes: int
    workers: Sequence[Worker] | None
    accuracy: tuple[float, float]
    spammers: float
    prior: ArrayLike | None


def simulate_crowd(
    n_tasks: int = 1000,
    n_workers: int = 50,
    n_classes: int = 4,
    per_task: ArrayLike = 5,
    *,
    workers: Sequence[Worker] | None = None,
    accuracy: tuple[float, float] = (0.45, 0.95),
    spammers: float = 0.1,
    prior: ArrayLike | None = None,
    truth: ArrayLike | None = None,
    activity: ArrayLike | None = None,
    difficulty: ArrayLike | None = None,
    abstention: ArrayLike | None = None,
    soft_confidence: float | None = None,
    random_state: RandomState = None,
) -> SimulatedCrowd:
    """Draw a crowd: a realistic one, or one of given workers.

    By default a few workers do most of the work (a power law), their accuracy is uniform
    between the bounds, their errors lean toward one other class, and some label at random.
    Every annotation has a ``time``: its position in the order in which all were given.

    Parameters
    ----------
    n_tasks, n_classes : int
        Numbers of tasks and classes.
    n_workers, accuracy, spammers
        For the default crowd: number of workers, bounds of their accuracy, share of spammers.
    per_task : int or array of shape (n_tasks,)
        How many workers label a task; at most all of them.
    workers : list of Worker, optional
        The workers who label, instead of the default crowd: :class:`OneCoinWorker`,
        :class:`DirichletWorker`, :class:`Spammer` and others, in any mix.
    prior : array of shape (n_classes,), optional
        P(truth), uniform by default.
    truth : array of shape (n_tasks,), optional
        Class numbers of the tasks; drawn by default.
    activity : float or array of shape (n_workers,), optional
        How often each worker is drawn; a number is the exponent of a power law. Default:
        0.8 for the default crowd, else each worker's own.
    difficulty : float or array of shape (n_tasks,), optional
        How hard each task is: log-odds of labels are divided by it, so 1 is ordinary and a
        large value makes everybody guess. A number is the spread of its logarithm.
    abstention : float or array of shape (n_classes,), optional
        Probability that any worker skips a task, or one for each true class: labels are then
        missing because of what they would have been. It is higher on hard tasks. Default: each
        worker's own.
    soft_confidence : float, optional
        From 0.5 to 1: adds soft labels, with this much on the label that was given and the rest
        on what the worker might have answered.
    random_state : int or RandomState, optional
        Random seed.

    Examples
    --------
    >>> from crowdwise.simulate import OneCoinWorker, Spammer
    >>> workers = 5 * [OneCoinWorker((0.8, 0.9))] + 2 * [Spammer()]
    >>> crowd = simulate_crowd(300, n_classes=3, per_task=4, workers=workers, random_state=0)
    >>> crowd.annotations
    <Annotations: 1,200 annotations of 300 tasks by 7 workers, 3 classes>
    >>> crowd.kinds[4:].tolist()
    ['one-coin', 'spammer', 'spammer']
    """
    rng = check_random_state(random_state)
    shares = check_prior(prior, n_classes)
    if workers is None:
        behavior = draw_realistic(n_workers, n_classes, accuracy, spammers, rng)
        activity = 0.8 if activity is None else activity
    else:
        behavior = Behavior.of_workers(workers, shares, rng)
    behavior = override(behavior, activity, abstention, rng)
    if truth is None:
        truth = rng.choice(n_classes, size=n_tasks, p=None if prior is None else shares)
    truth = check_truth(truth, n_classes)
    hard = draw_difficulty(difficulty, len(truth), rng)
    annotations = label_tasks(truth, behavior, per_task, hard, rng, soft_confidence)
    return SimulatedCrowd(annotations, truth, behavior.confusion, behavior.kinds, hard, behavior)


def confused_crowd(
    confusion: ArrayLike,
    n_tasks: int,
    per_task: int,
    *,
    prior: ArrayLike | None = None,
    activity: ArrayLike | None = None,
    random_state: RandomState = None,
) -> SimulatedCrowd:
    """Draw a crowd whose workers have known confusion matrices.

    Parameters
    ----------
    confusion : array of shape (n_workers, n_classes, n_classes)
        P(label | truth); the axes are worker, truth, label.
    n_tasks, per_task : int
        How many tasks, and how many different workers label each.
    prior : array of shape (n_classes,), optional
        P(truth), uniform by default.
    activity : array of shape (n_workers,), optional
        How often each worker is drawn, equally by default.
    random_state : int or RandomState, optional
        Random seed.

    Examples
    --------
    >>> from crowdwise.simulate import one_coin_confusion
    >>> confusion = one_coin_confusion([0.9, 0.8, 0.7], n_classes=2)
    >>> crowd = confused_crowd(confusion, n_tasks=50, per_task=3, random_state=0)
    >>> crowd.annotations.classes.tolist()
    [0, 1]
    """
    rng = check_random_state(random_state)
    behavior = Behavior.of_confusion(confusion)
    truth = rng.choice(behavior.first.shape[1], size=n_tasks, p=prior)
    annotations = label_by_crowd(truth, confusion, per_task, activity=activity, random_state=rng)
    plain = np.ones(n_tasks)
    return SimulatedCrowd(annotations, truth, behavior.first, behavior.kinds, plain, behavior)


def label_by_crowd(
    truth: ArrayLike,
    confusion: ArrayLike,
    per_task: ArrayLike,
    *,
    activity: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Annotations:
    """Draw labels of tasks with known truth, by workers with known confusion matrices.

    The parameters are those of :func:`confused_crowd`; ``truth`` has class numbers.
    """
    rng = check_random_state(random_state)
    behavior = override(Behavior.of_confusion(confusion), activity, None, rng)
    truth = check_truth(truth, behavior.first.shape[1])
    labeled = label_tasks(truth, behavior, per_task, np.ones(len(truth)), rng)
    return replace(labeled, time=None)


def draw_realistic(
    n_workers: int,
    n_classes: int,
    accuracy: tuple[float, float],
    spammers: float,
    rng: np.random.RandomState,
) -> Behavior:
    """Draw workers of varying skill whose errors lean to one class, some of them spammers."""
    skill = rng.uniform(*accuracy, size=n_workers)
    lean = rng.dirichlet(np.full(n_classes, 0.5), size=(n_workers, n_classes))
    lean[:, np.arange(n_classes), np.arange(n_classes)] = 0.0
    lean /= np.maximum(lean.sum(axis=2, keepdims=True), 1e-12)
    confusion = (1.0 - skill)[:, None, None] * lean
    confusion[:, np.arange(n_classes), np.arange(n_classes)] += skill[:, None]
    n_spammers = round(spammers * n_workers)
    confusion[:n_spammers] = 1.0 / n_classes
    confusion /= confusion.sum(axis=2, keepdims=True)
    kinds = np.where(np.arange(n_workers) < n_spammers, "spammer", "confused")
    return Behavior.of_confusion(confusion, kinds)


def override(
    behavior: Behavior,
    activity: ArrayLike | None,
    abstention: ArrayLike | None,
    rng: np.random.RandomState,
) -> Behavior:
    """Replace the activity and abstention of all workers, if given."""
    n_workers, n_classes = behavior.abstention.shape
    if activity is not None:
        given = np.asarray(activity, dtype=np.float64)
        drawn = draw_power_law(n_workers, float(given), rng) if given.ndim == 0 else given
        behavior = replace(behavior, activity=drawn)
    if abstention is not None:
        share = check_abstention(abstention, n_classes)
        behavior = replace(behavior, abstention=np.broadcast_to(share, (n_workers, n_classes)))
    return behavior


def draw_difficulty(
    difficulty: ArrayLike | None, n_tasks: int, rng: np.random.RandomState
) -> Floats:
    """Return difficulty by task: 1 by default, as given, or log-normal with this spread."""
    if difficulty is None:
        return np.ones(n_tasks)
    given = np.asarray(difficulty, dtype=np.float64)
    hard = np.exp(given * rng.standard_normal(n_tasks)) if given.ndim == 0 else given
    if hard.shape != (n_tasks,) or not ((hard > 0) & np.isfinite(hard)).all() or (given < 0).any():
        raise ParameterError(
            explain(
                f"The difficulty, of shape {given.shape}, does not match {n_tasks:,} tasks.",
                expected="a spread of 0 or more, or one finite number above 0 for each task",
                fix="give one number for all tasks",
            )
        )
    return hard


def check_prior(prior: ArrayLike | None, n_classes: int) -> Floats:
    """Check P(truth), uniform by default."""
    if n_classes < 2:
        raise ParameterError(
            f"n_classes={n_classes}.\n  expected: 2 or more\n  fix:      give n_classes=2"
        )
    shares = np.full(n_classes, 1 / n_classes) if prior is None else np.asarray(prior, float)
    if shares.shape != (n_classes,) or not is_distribution(shares):
        raise ParameterError(
            explain(
                f"prior={prior!r} is not a distribution over the classes.",
                expected=f"{n_classes} numbers of 0 or more that sum to 1",
                fix="give one number per class, or leave prior out",
            )
        )
    return shares


def check_truth(truth: ArrayLike, n_classes: int) -> Ints:
    """Check class numbers of at least one task."""
    codes = np.asarray(truth)
    whole = codes.ndim == 1 and codes.dtype.kind in "iu" and codes.size > 0
    if not whole or codes.min() < 0 or codes.max() >= n_classes:
        raise ParameterError(
            explain(
                f"The truth has shape {codes.shape} and type {codes.dtype}.",
                expected=f"at least one task, and class numbers from 0 to {n_classes - 1}",
                fix="number the classes from 0",
            )
        )
    return codes
