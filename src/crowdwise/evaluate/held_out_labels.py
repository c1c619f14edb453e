"""Prediction of held-out labels, which measures a method without truths."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import Aggregator
from crowdwise.errors import ParameterError
from crowdwise.evaluate.intervals import IntervalSettings, bootstrap
from crowdwise.inference import pooled_confusion
from crowdwise.inference.posteriors import as_array
from crowdwise.typing import Array, FeaturesLike, Floats, RandomState

if TYPE_CHECKING:
    from crowdwise.base.learner import Learner

Method: TypeAlias = Union[Aggregator, "Learner"]


def choose_held_out(votes: Annotations, share: float, random_state: RandomState) -> Array:
    """Choose annotations to hold out at random, one per task that has others."""
    rng = check_random_state(random_state)
    order = rng.permutation(votes.n_annotations)
    order = order[votes.redundancy[votes.task[order]] > 1]
    _, first = np.unique(votes.task[order], return_index=True)
    most = round(share * votes.n_annotations)
    mask = np.zeros(votes.n_annotations, dtype=bool)
    mask[order[np.sort(first)[:most]]] = True
    return mask


def fit_to_rest(method: Method, votes: Annotations, X: FeaturesLike | None, asked: Array) -> Floats:
    """Fit without the held-out annotations and return the posterior."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # shown by the first fit already
        return as_array(fit_clone(method, votes.filter(~asked), X).posterior_)


def score_held_out(posterior: Floats, votes: Annotations, asked: Array) -> Floats:
    """Return the log-likelihood of each held-out annotation, by a posterior from the others."""
    kept, out = votes.filter(~asked), votes.filter(asked)
    confusion = pooled_confusion(kept, posterior)
    by_truth = confusion[out.worker, :, out.label]  # (row, truth)
    return np.log(np.einsum("rk,rk->r", posterior[out.task], by_truth))


def compare_with_best(
    evidence: Mapping[str, Floats], settings: IntervalSettings
) -> dict[str, dict[str, float]]:
    """Return the mean held-out log-likelihood of each method, and its gap to the best one.

    The same annotations are held out for all methods, so that differences are paired.
    """
    means = {name: float(each.mean()) for name, each in evidence.items()}
    best = max(means, key=lambda name: means[name], default="")
    rows = {}
    for name, each in evidence.items():
        low, high = _interval(each, settings)
        behind = evidence[best] - each
        least, most = (0.0, 0.0) if name == best else _interval(behind, settings)
        rows[name] = {
            **{"held_out": means[name], "held_out_low": low, "held_out_high": high},
            **{"behind": float(behind.mean()), "behind_low": least, "behind_high": most},
        }
    return rows


def _interval(values: Floats, settings: IntervalSettings) -> tuple[float, float]:
    pair = np.column_stack([np.ones(len(values)), values])
    return bootstrap(pair, lambda sums: sums[:, 1] / sums[:, 0], **settings)


def fit_clone(method: Method, votes: Annotations, X: FeaturesLike | None) -> Method:
    """Fit a clone of an aggregator, or of a learner, which needs features."""
    model: Method = clone(method)
    if isinstance(model, Aggregator):
        return model.fit(votes)
    if X is None:
        raise ParameterError(f"{type(model).__name__} needs features.\n  fix:      give X")
    return model.fit(X, votes)
