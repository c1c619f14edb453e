"""Clustered personal classifiers: workers who label alike share one."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import by_worker
from crowdwise.base.params import at_least, more_than
from crowdwise.errors import ParameterError, explain
from crowdwise.inference.stopping import until_converged
from crowdwise.learn.confusion_learner import infer_truths
from crowdwise.learn.personal_classifier import (
    Labeled,
    LabeledByMost,
    PersonalLearner,
    collect_labels,
)
from crowdwise.typing import Array, FeaturesLike, Floats, Ints

ARRAYS_OF_PAIRS = 5  # the pairs' differences and multipliers, and three temporary ones
ROUNDS_OF_BALANCING = 50  # afterward the step is fixed, so that the method converges


class ClusteredPersonalClassifier(PersonalLearner):
    """Learn a logistic regression per worker, with equal ones for workers who label alike.

    As in :class:`PersonalClassifier`, but with a penalty on the distance of every pair of
    classifiers, including the shared one, instead of its square, so that some distances become
    exactly 0. The problem is convex; it is solved by the alternating direction method
    of multipliers. Time and memory grow with the square of the number of workers.

    Parameters
    ----------
    fusion : float, default=1
        Penalty on the distances, the paper's mu, divided by the number of workers; a larger one
        makes larger clusters.
    ridge : float, default=1
        Penalty on the squared weights of the shared classifier, the paper's eta.
    step : float, default=1
        Initial step size of the multipliers, the paper's rho, which is adapted during fitting.
        It affects the path, not the result.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    max_iter : int, default=200
        Maximum number of rounds.
    tol : float, default=1e-4
        Stop once a round changes the objective by less than this fraction of it; with 0,
        ``max_iter`` rounds are run.
    max_memory : float, default=2
        Gigabytes that the pairs of workers may take; fitting is refused if they need more.

    Attributes
    ----------
    clusters_ : Series
        Cluster of each worker: workers with the same number share a classifier, and number 0 is
        that of the shared classifier.
    posterior_, confusion_, worker_accuracy_, weights_, worker_weights_
        See :class:`PersonalClassifier`.
    objective_ : list of float
        Minus the penalized loss after each round. It settles, but may fall in between.
    n_iter_ : int
        Number of rounds.

    Notes
    -----
    The maths::

        loss = PersonalClassifier's, with fusion / (number of workers)
            * sum over pairs of |weights_v - weights_w|, not of squares

    Works when workers fall into groups of the same opinion, and number a few dozen at most.

    Fails when workers are many, since pairs are penalized one by one; and wherever
    PersonalClassifier fails.

    References
    ----------
    Kajino, Tsuboi and Kashima (2013). Clustering crowds. Proceedings of the AAAI Conference on
    Artificial Intelligence 27.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(ClusteredPersonalClassifier().fit(X, votes).score(X, truth) > 0.8)
    True
    """

    _parameter_constraints = {
        **PersonalLearner._parameter_constraints,
        "fusion": [at_least(0.0)],
        "ridge": [at_least(0.0)],
        "step": [more_than(0.0)],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
        "max_memory": [more_than(0.0)],
    }

    def __init__(
        self,
        *,
        fusion: float = 1.0,
        ridge: float = 1.0,
        step: float = 1.0,
        scale: bool = True,
        max_iter: int = 200,
        tol: float = 1e-4,
        max_memory: float = 2.0,
    ) -> None:
        self.fusion = fusion
        self.ridge = ridge
        self.step = step
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.max_memory = max_memory

    def _fit(self, X: FeaturesLike, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        design, everyone = self._learn_design(X), votes
        votes, place = number_classifiers(everyone)
        pairs = ClassifierPairs.of(votes.n_workers + 1)
        size = (design.shape[1], votes.n_classes)
        refuse_too_many(len(pairs.first), int(np.prod(size)), self.max_memory)
        labeled, price = collect_labels(design, votes, gold), self.fusion / votes.n_workers
        weights, step = np.zeros((votes.n_workers + 1, *size)), self.step
        apart, multiplier = (np.zeros((len(pairs.first), *size)) for _ in range(2))
        for admm in until_converged(self.max_iter, self.tol, name="ADMM"):
            drawn = pairs.gather(multiplier + step * apart)
            weights = descend(weights, labeled, drawn, self.ridge, step)
            gap, before = pairs.differences(weights), apart
            apart = shrink(step * gap - multiplier, price) / step
            multiplier += step * (apart - gap)
            value = labeled.loss(weights)[0] + 0.5 * self.ridge * (weights[0] ** 2).sum()
            admm.record(-value - price * norms(gap).sum())
            if len(admm.objective) < ROUNDS_OF_BALANCING:
                moved = step * pairs.gather(apart - before)
                step = balance_step(step, norms(apart - gap), norms(moved))
        self.objective_, self.n_iter_ = admm.objective, len(admm.objective)
        self.weights_, self.worker_weights_ = weights[0], weights[place]
        cluster = pairs.clusters(norms(apart) == 0.0)
        self.clusters_: pd.Series = by_worker(cluster[place], everyone.workers, "cluster")
        return infer_truths(everyone, self.predict_proba(X), gold)


def number_classifiers(votes: Annotations) -> tuple[Annotations, Ints]:
    """Return annotations by workers with labels, and the number of each worker's classifier.

    A worker without labels has only the shared classifier, number 0.
    """
    labels = np.bincount(votes.worker, minlength=votes.n_workers) > 0
    place = np.where(labels, np.cumsum(labels), 0)
    worker = (place[votes.worker] - 1).astype(np.int32)
    return replace(votes, workers=votes.workers[labels], worker=worker), place


@dataclass(frozen=True)
class ClassifierPairs:
    """All pairs of classifiers."""

    first: Ints
    second: Ints
    incidence: csr_array  # (classifier, pair): 1 for the first of the pair, -1 for the second

    @classmethod
    def of(cls, n: int) -> Self:
        first, second = np.triu_indices(n, 1)
        pair, ones = np.arange(len(first)), np.ones(len(first))
        columns = (np.concatenate([first, second]), np.concatenate([pair, pair]))
        signs = coo_array((np.concatenate([ones, -ones]), columns), shape=(n, len(first)))
        return cls(first, second, signs.tocsr())

    def differences(self, weights: Floats) -> Floats:
        """Return the first classifier of each pair minus the second."""
        return weights[self.first] - weights[self.second]

    def gather(self, value: Floats) -> Floats:
        """Sum over each classifier's pairs, with the sign of its position in them."""
        flat = self.incidence @ value.reshape(len(value), -1)
        return flat.reshape(-1, *value.shape[1:])

    def clusters(self, equal: Array) -> Ints:
        """Return the number of each classifier's cluster, 0 for that of the first one."""
        n = self.incidence.shape[0]
        ends = (self.first[equal], self.second[equal])
        graph = coo_array((np.ones(len(ends[0])), ends), shape=(n, n))
        return pd.factorize(connected_components(graph, directed=False)[1])[0]


def descend(
    weights: Floats, labeled: Labeled | LabeledByMost, drawn: Floats, ridge: float, step: float
) -> Floats:
    """Lower the loss of the classifiers, given where the pairs pull them.

    The sum of squares over all pairs needs no pairs: with n classifiers it is n times the sum
    of squares minus the square of the sum.
    """
    shape, n = weights.shape, len(weights)

    def loss(flat: Floats) -> tuple[float, Floats]:
        now = flat.reshape(shape)
        value, slope = labeled.loss(now)
        spread = n * now - now.sum(axis=0)
        value += 0.5 * step * (now * spread).sum() - (drawn * now).sum()
        value += 0.5 * ridge * (now[0] ** 2).sum()
        slope += step * spread - drawn
        slope[0] += ridge * now[0]
        return float(value), slope.reshape(-1)

    options = {"maxiter": 20, "gtol": 1e-3}  # the next round continues from here
    found = minimize(loss, weights.reshape(-1), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(shape)


def shrink(value: Floats, by: float) -> Floats:
    """Shorten every matrix by ``by``, to 0 if it is shorter than that."""
    length = norms(value)
    share = np.divide(by, length, out=np.ones_like(length), where=length > by)
    return value * (1.0 - share)[:, None, None]


def balance_step(step: float, primal: Floats, dual: Floats) -> float:
    """Adapt the step to keep the two residuals of the method within a factor of ten."""
    broken, moving = np.sqrt((primal**2).sum()), np.sqrt((dual**2).sum())
    if broken > 10.0 * moving:
        return 2.0 * step
    return step / 2.0 if moving > 10.0 * broken else step


def norms(value: Floats) -> Floats:
    """Return the length of each matrix as one vector."""
    return np.sqrt((value**2).sum(axis=(1, 2)))


def refuse_too_many(n_pairs: int, n_weights: int, max_memory: float) -> None:
    """Refuse pairs that would take too much memory."""
    needed = ARRAYS_OF_PAIRS * 8 * n_pairs * n_weights / 1e9
    if needed > max_memory:
        raise ParameterError(
            explain(
                f"{n_pairs:,} pairs of workers with {n_weights:,} weights each take about "
                f"{needed:,.1f} GB.",
                expected=f"at most max_memory={max_memory:g} GB",
                fix="use PersonalClassifier, fewer features or workers, or raise max_memory",
            )
        )
