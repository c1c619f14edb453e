"""Crowd-aware SMOTE: new tasks of the rare classes, with labels like the crowd's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.annotations.grouping import freeze
from crowdwise.base.fitting import in_task_order
from crowdwise.base.params import (
    Constraints,
    Part,
    at_least,
    between,
    more_than,
    one_of,
)
from crowdwise.errors import ParameterError, explain, listing
from crowdwise.inference import measure_certainty
from crowdwise.io import as_annotations
from crowdwise.typing import AnnotationsLike, FeaturesLike, Floats, Ints, RandomState


@dataclass(frozen=True)
class NewTasks:
    """Synthetic tasks: the real ones they lie between, their features, and their labels."""

    truth: Ints  # (new,): the class it was generated for
    origin: Ints  # (new,): the task it starts from
    neighbor: Ints  # (new,): the task it moves toward
    delta: Floats  # (new,): how far it moves, from 0 to 1
    X: Floats  # (new, feature)
    annotations: Annotations  # by the same workers, of the same classes

    def between(self, start: Floats, end: Floats) -> Floats:
        """Return the same mixtures of other features of the origins and neighbors (eq. 2.3)."""
        return start + self.delta[:, None] * (end - start)


class CrowdSMOTE(Part):
    """Generates tasks of the rare classes between real ones, with labels like the crowd's there.

    Every class smaller than the largest is filled up. A new task lies on the line from a task to
    one of its nearest neighbors of the same class, closer to the one whose labels agree
    more. Each worker labels it like one of the nearest real tasks, of any class, that the
    worker labeled; a worker who labeled none of them gives no label.

    Parameters
    ----------
    balance : float, default=1
        Size that each class is filled up to, as a share of the largest one's.
    n_neighbors : int, default=5
        Number of nearest tasks of the same class to move toward, and of nearest tasks of any
        class whose labels are used.
    delta_rule : {"intent", "printed", "uniform"}, default="intent"
        How far to move from task i to its neighbor r, given their certainties S:
        ``S_r / (S_i + S_r)``, which ends closer to the more certain one, as ICED's text
        says; ``S_i / (S_i + S_r)``, as printed in its eq. 2.5, which ends closer to the less
        certain one; or uniform from 0 to 1, which is plain SMOTE.
    copy : {"sample", "majority"}, default="sample"
        Whether a worker's label is drawn from the worker's own on the nearest tasks, which
        keeps the worker's errors, or is the most frequent of these, which hides them.
    jitter : float, default=0.1
        Maximum amount added to or subtracted from the distance, at random.
    floor : float, default=0.05
        See :func:`crowdwise.evaluate.certainty`.

    References
    ----------
    Wang, Thekinen, Liu, Liu and Tang (2021). Learning from imbalanced crowdsourced labeled
    data. SIAM International Conference on Data Mining. Section 2.4.

    Chawla, Bowyer, Hall and Kegelmeyer (2002). SMOTE: synthetic minority over-sampling
    technique. JAIR 16. doi:10.1613/jair.953

    Examples
    --------
    >>> X, labels = [[0.0], [1.0], [5.0], [6.0], [7.0]], [[0, 0], [0, 1], [1, 1], [1, 1], [1, 1]]
    >>> new = CrowdSMOTE(n_neighbors=1).generate(X, labels, [0, 0, 1, 1, 1], random_state=0)
    >>> new.truth.tolist(), new.annotations.n_annotations
    ([0], 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "balance": [between(0.0, 1.0)],
        "n_neighbors": [at_least(1)],
        "delta_rule": [one_of("intent", "printed", "uniform")],
        "copy": [one_of("sample", "majority")],
        "jitter": [between(0.0, 1.0)],
        "floor": [more_than(0.0)],
    }

    def __init__(
        self,
        *,
        balance: float = 1.0,
        n_neighbors: int = 5,
        delta_rule: str = "intent",
        copy: str = "sample",
        jitter: float = 0.1,
        floor: float = 0.05,
    ) -> None:
        self.balance = balance
        self.n_neighbors = n_neighbors
        self.delta_rule = delta_rule
        self.copy = copy
        self.jitter = jitter
        self.floor = floor

    def generate(
        self,
        X: FeaturesLike,
        annotations: AnnotationsLike,
        truth: ArrayLike,
        random_state: RandomState = None,
    ) -> NewTasks:
        """Generate as many tasks of each class as it lacks.

        Parameters
        ----------
        X : array of shape (n_tasks, n_features), or frame indexed by task
            Positions of tasks: features or, in ICED, a network's embeddings.
        annotations : Annotations, frame, array, dict or path
            Labels of the tasks; tasks without labels are not copied from.
        truth : array of shape (n_tasks,)
            Class numbers, as in ``annotations.classes``; -1 for tasks to leave out.
        random_state : int or RandomState, optional
            Random seed.
        """
        self.check()
        votes, rng = as_annotations(annotations), check_random_state(random_state)
        X = in_task_order(X, votes.tasks) if isinstance(X, pd.DataFrame) else X
        X, truth = np.asarray(X, dtype=np.float64), np.asarray(truth)
        _refuse(X, truth, votes)
        origin = origins(truth, amounts(truth, votes.n_classes, self.balance), rng)
        neighbor = neighbors_of_class(X, truth, origin, self.n_neighbors, rng)
        certainty = measure_certainty(votes, self.floor)
        delta = distances(certainty[origin], certainty[neighbor], self.delta_rule, self.jitter, rng)
        place = X[origin] + delta[:, None] * (X[neighbor] - X[origin])
        labels = copy_labels(X, place, votes, self.n_neighbors, self.copy, rng)
        return NewTasks(truth[origin], origin, neighbor, delta, place, labels)


def amounts(truth: Ints, n_classes: int, balance: float) -> Ints:
    """Return how many tasks each class lacks to its share of the largest; 0 if it is empty."""
    size = np.bincount(truth[truth >= 0], minlength=n_classes)
    short = np.floor(balance * size.max(initial=0)).astype(np.int64) - size
    return np.where(size > 0, np.maximum(short, 0), 0)


def origins(truth: Ints, amount: Ints, rng: np.random.RandomState) -> Ints:
    """Return tasks to start from: all of a class equally often, plus some at random."""
    parts = [np.empty(0, dtype=np.int64)]
    for number in np.flatnonzero(amount):
        own = np.flatnonzero(truth == number)
        often, rest = divmod(int(amount[number]), len(own))
        parts += [np.repeat(own, often), rng.permutation(own)[:rest]]
    return np.concatenate(parts)


def neighbors_of_class(
    X: Floats, truth: Ints, origin: Ints, k: int, rng: np.random.RandomState
) -> Ints:
    """Return one of the k nearest tasks of the same class, at random; itself if alone."""
    neighbor = origin.copy()
    for number in np.unique(truth[origin]):
        own = np.flatnonzero(truth == number)
        mine = truth[origin] == number
        size = min(k, len(own) - 1)
        if size:
            near = NearestNeighbors(n_neighbors=size).fit(X[own]).kneighbors(return_distance=False)
            row = np.searchsorted(own, origin[mine])
            neighbor[mine] = own[near[row, rng.randint(size, size=len(row))]]
    return neighbor


def distances(
    here: Floats, there: Floats, rule: str, jitter: float, rng: np.random.RandomState
) -> Floats:
    """Return how far to move between two tasks, by their certainties (eq. 2.5)."""
    if rule == "uniform":
        return rng.uniform(size=len(here))
    toward = there if rule == "intent" else here
    share = toward / np.maximum(here + there, 1e-300)  # both 0: neither has labels
    return np.clip(share + rng.uniform(-jitter, jitter, size=len(here)), 0.0, 1.0)


def copy_labels(
    X: Floats, place: Floats, votes: Annotations, k: int, copy: str, rng: np.random.RandomState
) -> Annotations:
    """Return each worker's label at new positions, from their labels on the nearest tasks."""
    labeled = np.flatnonzero(votes.votes().sum(axis=1) > 0)
    size, n_codes = min(k, len(labeled)), votes.n_workers * votes.n_classes
    near = np.empty((len(place), size), dtype=np.int64)
    if len(place):
        near = NearestNeighbors(n_neighbors=size).fit(X[labeled]).kneighbors(place, size, False)
    picks = csr_array(
        (np.ones(near.size), labeled[near].ravel(), np.arange(len(place) + 1) * size),
        shape=(len(place), votes.n_tasks),
    )
    counts = (picks @ votes.cells.matrix(0, votes.n_tasks, n_codes)).tocsr()
    counts.sort_indices()
    task, code, weight = draw_cells(counts, votes.n_classes, copy, rng)
    task, code = task[weight > 0], code[weight > 0]
    n_labels = np.bincount(task, minlength=len(place))  # sorted by new task
    columns = {
        "tasks": np.arange(len(place)),
        "indptr": np.append(0, np.cumsum(n_labels)),
        "worker": (code // votes.n_classes).astype(np.int32),
        "label": (code % votes.n_classes).astype(votes.label.dtype),
    }
    return Annotations(workers=votes.workers, classes=votes.classes, **freeze(columns))


def draw_cells(
    counts: csr_array, n_classes: int, copy: str, rng: np.random.RandomState
) -> tuple[Ints, Ints, Floats]:
    """Draw one (worker, label) cell per task and worker, weighted among that worker's cells."""
    task = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    code, weight = counts.indices, counts.data.astype(np.float64)
    owner = task * (counts.shape[1] // n_classes) + code // n_classes
    first = np.flatnonzero(np.diff(owner, prepend=-1))  # where each task and worker begins
    group = np.repeat(np.arange(len(first)), np.diff(first, append=len(owner)))
    if len(first) and copy == "majority":
        most = np.maximum.reduceat(weight, first)[group]
        weight = ((weight >= most) & (weight > 0)).astype(np.float64)
    upto = np.cumsum(weight)
    before = (upto - weight)[first]
    chance = rng.random_sample(len(first)) * (np.append(before[1:], upto[-1:]) - before)
    chosen = np.searchsorted(upto, before + chance, side="right")
    chosen = np.minimum(chosen, np.append(first[1:], len(owner)) - 1)
    return task[chosen], code[chosen], weight[chosen]


def _refuse(X: Floats, truth: Ints, votes: Annotations) -> None:
    """Refuse inputs that do not match."""
    if X.ndim != 2 or len(X) != votes.n_tasks or truth.shape != (votes.n_tasks,):
        raise ParameterError(
            explain(
                f"X has shape {X.shape} and truth {truth.shape} for {votes.n_tasks:,} tasks.",
                expected="a row of features and a class number for each task",
                fix="give one row and one class per task, in the order of tasks",
            )
        )
    if not np.isfinite(X).all():
        raise ParameterError(
            explain(
                f"X has {int((~np.isfinite(X)).sum()):,} values that are missing or infinite.",
                expected="finite numbers",
                fix="fill them in first, for example with sklearn.impute.SimpleImputer",
            )
        )
    if truth.dtype.kind not in "iu" or not ((truth >= -1) & (truth < votes.n_classes)).all():
        raise ParameterError(
            explain(
                f"truth has the values {listing(np.unique(truth))}.",
                expected=f"class numbers from 0 to {votes.n_classes - 1}, and -1 for none",
                fix="replace names by their positions in annotations.classes",
            )
        )
