"""Choosing the strength of a penalty by how well held-out annotations are predicted."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.inference.conditional_entropy import Solution, lay_out
from crowdwise.typing import Ints

STRENGTHS = tuple(4.0**power for power in range(1, -6, -1))  # to choose from, strongest first
N_FOLDS = 5
CLEARLY_WORSE = 1.01  # a held-out loss this many times the best one ends the search


def choose_strength(
    fit: Callable[[Annotations, float], Solution], annotations: Annotations, random_state: Any
) -> float:
    """The strength whose fits predict held-out annotations best, the stronger of equals."""
    fold = deal(annotations, random_state)
    parts = [(annotations.filter(fold != i), annotations.filter(fold == i)) for i in range(N_FOLDS)]
    losses: dict[float, float] = {}
    with warnings.catch_warnings():  # a fold need not run to the end
        warnings.simplefilter("ignore", ConvergenceWarning)
        for strength in STRENGTHS:
            fits = ((fit(kept, strength), held_out) for kept, held_out in parts)
            losses[strength] = sum(held_out_loss(*each) for each in fits)
            if losses[strength] > CLEARLY_WORSE * min(losses.values()):
                break
    return min(losses, key=lambda strength: losses[strength])


def deal(annotations: Annotations, random_state: Any) -> Ints:
    """Fold of each annotation: each worker's tasks, dealt out evenly to the folds at random."""
    rng = check_random_state(random_state)
    pair = annotations.worker.astype(np.int64) * annotations.n_tasks + annotations.task
    pairs, place = np.unique(pair, return_inverse=True)
    worker = pairs // max(annotations.n_tasks, 1)
    shuffled = np.lexsort((rng.random_sample(len(pairs)), worker))
    turn = np.arange(len(pairs)) + rng.randint(N_FOLDS, size=annotations.n_workers)[worker]
    fold = np.empty(len(pairs), dtype=np.int64)
    fold[shuffled] = turn % N_FOLDS
    return fold[place]


def held_out_loss(solution: Solution, annotations: Annotations) -> float:
    """Negative log-likelihood of annotations that were not fitted."""
    sheet = lay_out(annotations)
    worker, task = sheet.units
    chance = softmax(solution.worker_effect[worker] + solution.task_effect[task], axis=2)
    mixed = np.einsum("ak,akl->al", solution.posterior[task], chance)
    return -float((sheet.label * np.log(mixed)).sum())
