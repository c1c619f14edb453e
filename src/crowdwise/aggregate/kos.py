"""KOS: message passing between tasks of two classes and workers."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from crowdwise import progress
from crowdwise.annotations import Annotations
from crowdwise.base import Aggregator, Traits, at_least, by_worker
from crowdwise.inference import Engine, normalize
from crowdwise.inference.rows import LabelRows, sum_by_group
from crowdwise.typing import Floats, Ints, RandomState


class Edges(NamedTuple):
    """The net label of each worker for each task they labeled, with repeats added up."""

    task: Ints
    worker: Ints
    sign: Floats  # weight of labels of the second class minus that of the first
    mass: Floats  # weight of all labels


class KOS(Aggregator):
    """Infer truths of two classes by messages between tasks and workers.

    A label is +1 or -1. A task tells each of its workers which way the labels of the others
    lean, weighted by their messages; a worker tells each of its tasks how well its labels on
    the others agree with that. The method is designed for tasks that are assigned to workers
    at random, and for even errors. If a few workers label much more than the
    rest, or lean to one class, messages may follow them instead of the truth. If all
    workers label all tasks, it amounts to the leading singular vector of the table of labels.

    The probability of a class is its share of the labels, each weighted by all messages to
    its worker, so that new tasks are decided like old ones; a label of negative weight counts
    for the other class. Without messages, because workers share no other task, all labels
    count equally. Repeated labels of a worker add up, so a yes and a no cancel out.

    Parameters
    ----------
    center : bool, default=False
        Whether to subtract each worker's mean label first, which the paper does not do. Helps a
        lot if workers lean to one class, each in their own way; hurts if the classes are far
        from equally frequent.
    max_iter : int, default=10
        Number of rounds of messages.
    random_state : int or RandomState, optional
        Random seed of the first messages, which are drawn around one.

    Attributes
    ----------
    weights_ : ndarray of shape (n_workers,)
        Weight of each worker, relative to the largest message; negative for one who
        is mostly wrong.
    leaning_ : ndarray of shape (n_workers,)
        Mean label of each worker, from -1 to 1, if ``center``; else 0.
    skills_ : Series
        ``weights_`` by worker.

    Notes
    -----
    The maths::

        to worker[i -> w] = sum over others v of label[i, v] * to task[v -> i]
        to task[w -> i] = sum over other tasks j of label[j, w] * to worker[j -> w]
        truth[i] = sign of sum over w of label[i, w] * to task[w -> i]

    Works when there are two classes of about equal size, tasks are assigned to workers at
    random, and all workers have similar numbers of them.

    Fails when a few workers do most of the work, or lean to one class: messages then follow
    them. Only two classes. On real crowds it is often worse than majority vote.

    References
    ----------
    Karger, Oh and Shah (2014). Budget-optimal task allocation for reliable crowdsourcing
    systems. Operations Research 62(1). doi:10.1287/opre.2013.1235

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [-1, -1, 0]]  # tasks x workers
    >>> KOS(random_state=0).fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    _axes = {**Aggregator._axes, "weights_": ("workers_",), "leaning_": ("workers_",)}
    traits = Traits(binary_only=True, stochastic=True, blockwise=False)
    _parameter_constraints = {
        "center": ["boolean"],
        "max_iter": [at_least(1)],
        "random_state": ["random_state"],
    }

    def __init__(
        self, *, center: bool = False, max_iter: int = 10, random_state: RandomState = None
    ) -> None:
        self.center = center
        self.max_iter = max_iter
        self.random_state = random_state

    @property
    def skills_(self) -> pd.Series:
        """Weight of each worker."""
        check_is_fitted(self)
        return by_worker(self.weights_, self.workers_)

    def _fit(self, engine: Engine) -> Floats:
        annotations, _ = engine.collect()
        edges, shape = edges_of(annotations), annotations.shape
        leaning = mean_sign(edges, shape[1]) if self.center else np.zeros(shape[1])
        edges = edges._replace(sign=edges.sign - leaning[edges.worker] * edges.mass)
        message = check_random_state(self.random_state).normal(1.0, 1.0, len(edges.sign))
        for _ in progress.track(range(self.max_iter), "KOS"):
            weights, message = exchange(edges, message, shape)
        self.leaning_, self.weights_ = leaning, mostly_right(edges, weights, shape)
        return self._posterior(engine)

    def _posterior(self, engine: Engine) -> Floats:
        annotations, _ = engine.collect()
        if annotations.n_classes < 2:
            return np.ones((annotations.n_tasks, annotations.n_classes))
        task, worker, sign, mass = edges_of(annotations)
        pull = self.weights_[worker] * (sign - self.leaning_[worker] * mass)
        sides = [np.maximum(-pull, 0.0), np.maximum(pull, 0.0)]
        votes = np.stack([sum_by_group(task, side, annotations.n_tasks) for side in sides], axis=1)
        reached = votes.sum(axis=1, keepdims=True) > 0
        return np.where(reached, normalize(votes), annotations.shares())

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"weights_": self.weights_, "leaning_": self.leaning_}


def edges_of(annotations: Annotations) -> Edges:
    """Return the annotations as signs, one for each task and worker."""
    rows, n_workers = LabelRows.of(annotations), annotations.n_workers
    pair, edge = np.unique(rows.task * n_workers + rows.worker, return_inverse=True)
    signed = rows.weight * (2.0 * rows.label - 1.0)
    sign, mass = (sum_by_group(edge, part, len(pair)) for part in (signed, rows.weight))
    return Edges(pair // n_workers, pair % n_workers, sign, mass)


def exchange(edges: Edges, message: Floats, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Run one round: tasks to workers, and back. Returns the workers' totals and messages.

    The message from all others is the total minus one's own, so a round costs O(n). Only
    ratios of messages matter, so the largest is kept at one.
    """
    pull = edges.sign * message
    to_worker = sum_by_group(edges.task, pull, shape[0])[edges.task] - pull
    agreed = edges.sign * to_worker
    total = sum_by_group(edges.worker, agreed, shape[1])
    to_task = total[edges.worker] - agreed
    largest = np.abs(to_task).max() or 1.0
    return total / largest, to_task / largest


def mean_sign(edges: Edges, n_workers: int) -> Floats:
    """Return the mean label of each worker, 0 for one without any."""
    sign, mass = (sum_by_group(edges.worker, part, n_workers) for part in (edges.sign, edges.mass))
    return np.divide(sign, mass, out=np.zeros(n_workers), where=mass > 0)


def mostly_right(edges: Edges, weights: Floats, shape: tuple[int, int]) -> Floats:
    """Flip the weights in each part of the crowd where they are negative on average.

    Messages are determined up to a sign for each part, which depends on their random first
    values.
    """
    pair = (edges.task, shape[0] + edges.worker)
    graph = coo_array((np.ones(len(edges.task)), pair), shape=(sum(shape), sum(shape)))
    part = connected_components(graph, directed=False)[1]
    trust = sum_by_group(part[pair[1]], weights[edges.worker] * edges.mass, part.max() + 1)
    return np.where(trust[part[shape[0] :]] < 0, -weights, weights)
