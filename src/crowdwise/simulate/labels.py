"""From behaviour to labels: who labels what, in which order, and how."""

from typing import Any

import numpy as np
from numpy.random import RandomState

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError
from crowdwise.simulate.assign import assign, progress_of
from crowdwise.simulate.behaviour import Behaviour
from crowdwise.typing import Floats, Ints


def label_tasks(
    truth: Ints,
    behaviour: Behaviour,
    per_task: Any,
    difficulty: Floats,
    rng: RandomState,
    sureness: float | None = None,
) -> Annotations:
    """Draw who labels what, in which order, and how."""
    n_tasks, (n_workers, n_classes, _) = len(truth), behaviour.first.shape
    for model, rows in behaviour.on_tasks.items():
        if len(rows) != n_tasks:
            raise ParameterError(
                f"Worker {model}, a model, knows {len(rows):,} tasks.\n  expected: {n_tasks:,}"
            )
    task, worker = assign(n_tasks, n_workers, per_task, behaviour.activity, rng)
    if behaviour.abstention.any():
        stay = behaviour.stays(worker, truth[task], difficulty[task])
        given = rng.random_sample(len(task)) < stay
        task, worker = task[given], worker[given]
    luck, time = rng.random_sample(len(task)), rng.permutation(len(task))
    progress = progress_of(worker, time)
    chances = behaviour.chances(worker, task, truth, progress, difficulty)
    label = picked(chances, luck)
    if (behaviour.leader >= 0).any():
        label = with_copies(label, task, worker, truth, behaviour, difficulty, rng)
    return Annotations.from_codes(
        task,
        worker,
        label,
        tasks=np.arange(n_tasks),
        workers=np.arange(n_workers),
        classes=np.arange(n_classes),
        time=time,
        soft=None if sureness is None else beliefs(label, chances, sureness),
    )


def with_copies(
    label: Ints,
    task: Ints,
    worker: Ints,
    truth: Ints,
    behaviour: Behaviour,
    difficulty: Floats,
    rng: RandomState,
) -> Ints:
    """The labels after some were copied from a leader, who may not have labelled the task."""
    n_tasks = len(truth)
    copied = np.flatnonzero(rng.random_sample(len(task)) < behaviour.copying[worker])
    pair = behaviour.leader[worker[copied]] * n_tasks + task[copied]
    wanted, place = np.unique(pair, return_inverse=True)
    leader, asked = np.divmod(wanted, n_tasks)
    chances = behaviour.chances(leader, asked, truth, 0.5, difficulty)
    said = picked(chances, rng.random_sample(len(wanted)))
    _, known, found = np.intersect1d(
        worker * n_tasks + task, wanted, assume_unique=True, return_indices=True
    )
    said[found] = label[known]
    label = label.copy()
    label[copied] = said[place]
    return label


def picked(chances: Floats, luck: Floats) -> Ints:
    """The label that each draw from 0 to 1 falls on."""
    picks: Ints = (luck[:, None] >= chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return picks


def beliefs(label: Ints, chances: Floats, sureness: float) -> Floats:
    """Soft labels: mostly what was said, the rest what might have been."""
    if not 0.5 <= sureness <= 1:
        raise ParameterError(f"sureness={sureness}.\n  expected: a number from 0.5 to 1")
    soft: Floats = sureness * np.eye(chances.shape[1])[label] + (1 - sureness) * chances
    return soft
