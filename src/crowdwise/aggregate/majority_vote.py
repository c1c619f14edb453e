"""Majority vote: the label most workers gave."""

from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from crowdwise.annotations import TIE, Annotations, tied
from crowdwise.base import DEVICES, Aggregator, LiveUpdates, Traits, one_of
from crowdwise.errors import ParameterError, explain, listing, plural
from crowdwise.inference import CompactPosterior, Engine, Posterior, Sums
from crowdwise.typing import Array, Floats, Ints, RandomState


class MajorityVote(Aggregator):
    """Infer truths by counting labels.

    Workers count equally, or by ``weights``; nothing is learned. The probability of
    a class is its share of the labels.

    Parameters
    ----------
    voting : {"soft", "hard"}, default="soft"
        Whether annotations that are distributions count in part for every class, or fully
        for their best one. Plain labels are the same either way.
    weights : mapping from worker to number, optional
        Weight of each worker. Workers that are not in it are an error.
    ties : {"first", "random", "abstain"}, default="first"
        The label of a task whose best classes are tied: the first in
        ``classes_``, one at random, or none.
    random_state : int or RandomState, optional
        Random seed for ties.
    device : str, optional
        "cuda" or "cuda:1" to sweep on a GPU (needs PyTorch), "cpu" for the same code without
        one; by default in compiled code on this machine's cores.

    Notes
    -----
    The maths::

        P(truth of i = k)
            = sum over w of weight[w] * [w gave i the label k] / sum over w of weight[w]

    Works when workers are about equally good, tasks have many labels, and classes are about
    equally frequent: then other methods gain little.

    Fails when some workers are much better than others, when errors lean to one class, or
    when a task has two or three labels, so that ties and chance majorities decide. Its
    probabilities are shares of labels, and underconfident if workers are good.

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

    traits = Traits(compact=True)
    _updates = LiveUpdates()
    _parameter_constraints = {
        "voting": [one_of("soft", "hard")],
        "weights": [Mapping, "array-like", None],
        "ties": [one_of("first", "random", "abstain")],
        "random_state": ["random_state"],
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        voting: str = "soft",
        weights: Mapping[Hashable, float] | ArrayLike | None = None,
        ties: str = "first",
        random_state: RandomState = None,
        device: str | None = None,
    ) -> None:
        self.voting = voting
        self.weights = weights
        self.ties = ties
        self.random_state = random_state
        self.device = device

    def _fit(self, engine: Engine) -> Posterior:
        return self._posterior(engine)

    def _posterior(self, engine: Engine) -> Posterior:
        weights = None if self.weights is None else weights_of(self.weights, engine.workers)
        return engine.shares(weights, soft=self.voting == "soft")

    def _learn(self, sums: Sums, crowd: Floats) -> None:
        """Do nothing, since nothing is learned."""

    def _take(self, votes: Annotations) -> Annotations:
        return votes if self.voting == "soft" else replace(votes, soft=None)

    def _choose(self, posterior: Posterior) -> Ints:
        if self.ties == "first":
            return super()._choose(posterior)
        if isinstance(posterior, CompactPosterior):
            return self._choose_compact(posterior)
        best = tied(posterior)
        if self.ties == "abstain":
            return np.where(best.sum(axis=1) > 1, -1, best.argmax(axis=1))
        draw = check_random_state(self.random_state).random_sample(best.shape)
        return np.where(best, draw, -1.0).argmax(axis=1)

    def _choose_compact(self, posterior: CompactPosterior) -> Ints:
        first, lone = posterior.argmax(), posterior.count_tied() == 1
        if self.ties == "abstain":
            return np.where(lone, first, -1)
        rng = check_random_state(self.random_state)
        leads = posterior.value >= posterior.max()[posterior.task] - TIE
        order = rng.permutation(np.flatnonzero(leads))  # the last one of each task is chosen
        chosen = np.where(lone, first, rng.randint(len(posterior.prior), size=len(posterior)))
        chosen[posterior.task[order]] = posterior.label[order]
        return chosen


def weights_of(weights: Mapping[Hashable, float] | ArrayLike, workers: Array) -> Floats:
    """Return the weights in the order of ``workers``."""
    table = dict(weights.items()) if isinstance(weights, Mapping | pd.Series) else None
    if table is None:
        values = np.asarray(weights, dtype=np.float64)
        if values.shape != workers.shape:
            raise ParameterError(
                explain(
                    f"There are {len(workers):,} workers but weights of shape {values.shape}.",
                    expected="one weight per worker, or a mapping from worker to weight",
                    fix="give a weight for each worker, in the order of annotations.workers",
                )
            )
        return refuse_weights(values, workers)
    missing = [name for name in workers.tolist() if name not in table]
    if missing:
        raise ParameterError(
            explain(
                f"{len(missing):,} of {len(workers):,} workers have no weight: {listing(missing)}.",
                fix="name every worker in weights",
            )
        )
    values = np.array([table[name] for name in workers.tolist()], dtype=np.float64)
    return refuse_weights(values, workers)


def refuse_weights(values: Floats, workers: Array) -> Floats:
    """Return the weights, or refuse invalid ones."""
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        at = int(bad.argmax())
        raise ParameterError(
            explain(
                f"{plural(int(bad.sum()), 'weight')} cannot be used.",
                first=f"worker {listing(workers[[at]])}: {values[at]:g}",
                expected="finite numbers of 0 or more",
                fix="give 0 to a worker whose labels should not count",
            )
        )
    return values
