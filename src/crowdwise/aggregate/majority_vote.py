"""Majority vote: the label most workers gave."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.annotations.cells import count_votes, normalize_votes
from crowdwise.base.aggregator import Aggregator, Traits
from crowdwise.base.params import one_of
from crowdwise.errors import ParameterError, listing
from crowdwise.inference.simplex import tied
from crowdwise.typing import Array, Floats, Ints


class MajorityVote(Aggregator):
    """Infer truths by counting labels.

    Every worker counts the same, or by ``weights``; nothing is learned. The probability of
    a class is its share of the labels.

    Parameters
    ----------
    voting : {"soft", "hard"}, default="soft"
        Whether annotations that are distributions count in part for every class, or whole
        for their best one. Plain labels are the same either way.
    weights : mapping from worker to number, optional
        How much each worker counts. Workers it does not name are an error.
    ties : {"first", "random", "abstain"}, default="first"
        The label of a task whose best classes have the same share: the first in
        ``classes_``, one at random, or none.
    random_state : int or RandomState, optional
        Decides random ties.

    Notes
    -----
    The maths::

        P(truth of i = k)
            = sum over w of weight[w] * [w gave i the label k] / sum over w of weight[w]

    Works when all workers are about as good, labels per task are many, and classes are about as
    frequent: then nothing else gains much.

    Fails when some workers are much better than others, when errors lean to one class, or when
    a task has two or three labels, so that ties and unlucky majorities decide. Its
    probabilities are shares of labels, and too timid where workers are good.

    References
    ----------
    Sheng, Provost and Ipeirotis (2008). Get another label? Improving data quality and data
    mining using multiple, noisy labelers. KDD. doi:10.1145/1401890.1401965

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 1, -1]]  # tasks x workers, -1 is no label
    >>> MajorityVote(ties="abstain").fit_predict(labels).tolist()
    [0, 1, None]
    """

    traits = Traits(weighted=True)
    _parameter_constraints = {
        "voting": [one_of("soft", "hard")],
        "weights": [Mapping, "array-like", None],
        "ties": [one_of("first", "random", "abstain")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        voting: str = "soft",
        weights: Any = None,
        ties: str = "first",
        random_state: Any = None,
    ) -> None:
        self.voting = voting
        self.weights = weights
        self.ties = ties
        self.random_state = random_state

    def _fit(self, annotations: Annotations, gold: Ints | None) -> Floats:
        return self._posterior(annotations)

    def _posterior(self, annotations: Annotations) -> Floats:
        weights = None if self.weights is None else weights_of(self.weights, annotations.workers)
        return weighted_shares(annotations, weights, soft=self.voting == "soft")

    def _choose(self, posterior: Floats) -> Ints:
        best = tied(posterior)
        first = best.argmax(axis=1)
        if self.ties == "first":
            return first
        if self.ties == "abstain":
            return np.where(best.sum(axis=1) > 1, -1, first)
        luck = check_random_state(self.random_state).random_sample(best.shape)
        return np.where(best, luck, -1.0).argmax(axis=1)


def weighted_shares(
    annotations: Annotations, weights: Floats | None = None, *, soft: bool = True
) -> Floats:
    """Share of the labels of each class, when workers have weights."""
    own = annotations.weight
    if weights is not None:
        own = weights[annotations.worker] * (1.0 if own is None else own)
    distributions = annotations.soft if soft else None
    return normalize_votes(count_votes(replace(annotations, weight=own, soft=distributions)))


def weights_of(weights: Any, workers: Array) -> Floats:
    """The weights in the order of ``workers``."""
    table = dict(weights.items()) if hasattr(weights, "items") else None
    if table is None:
        values = np.asarray(weights, dtype=np.float64)
        if values.shape != workers.shape:
            raise ParameterError(
                f"There are {len(workers):,} workers but weights of shape {values.shape}.\n"
                "  expected: one weight per worker, or a mapping from worker to weight"
            )
        return values
    missing = [name for name in workers.tolist() if name not in table]
    if missing:
        raise ParameterError(
            f"{len(missing):,} of {len(workers):,} workers have no weight: {listing(missing)}.\n"
            "  fix:      name every worker in weights"
        )
    return np.array([table[name] for name in workers.tolist()], dtype=np.float64)
