"""Learners cut short, for laws that are not about how good they are; and what to check."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError
from crowdwise.typing import Array, Floats

if TYPE_CHECKING:
    from crowdwise.base.learner import CrowdLearner

# Most of what parameters may ask for, by the end of their names.
SHORT = {"epochs": 5, "rounds": 2, "max_iter": 20, "per_epoch": 64, "members": 2}
ROUNDING = 1e-4  # what sums in another order come to, after some steps in single precision
LUCK = 0.1  # mean difference that other random numbers may make


def quick(learner: CrowdLearner) -> Any:
    """A seeded copy that trains briefly on the CPU, on all labels at once.

    Parameters that count epochs, rounds or steps are cut to a few; so are ``training``, and a
    ``learner`` inside.
    """
    copy: Any = clone(learner)
    changes: dict[str, Any] = {}
    for name, value in copy.get_params(deep=False).items():
        for word, most in SHORT.items():
            if name.endswith(word) and isinstance(value, int):
                changes[name] = min(value, most)
    usual_groups = getattr(copy, "default_groups_per_epoch", None)
    if usual_groups is not None and copy.groups_per_epoch is None:
        changes["groups_per_epoch"] = min(usual_groups, SHORT["per_epoch"])
    if "training" in copy.get_params(deep=False):
        usual = clone(copy.training if copy.training is not None else copy.default_training)
        brief = min(usual.epochs, SHORT["epochs"])
        changes["training"] = usual.set_params(epochs=brief, batch_size=None, device="cpu")
    if "learner" in copy.get_params(deep=False):
        changes["learner"] = quick(copy.default_learner if copy.learner is None else copy.learner)
    if "random_state" in copy.get_params(deep=False):
        changes["random_state"] = 0
    return copy.set_params(**changes)


def fitted(learner: CrowdLearner, X: Any, votes: Annotations) -> Any:
    """A quick copy, fitted; that it ran out of steps is not a breach."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return quick(learner).fit(X, votes)


def results(model: Any, X: Any) -> list[Any]:
    """What a learner says of new rows and of its own tasks; the rows come first."""
    if hasattr(model, "transform"):
        return [model.transform(X), model.posterior_, model.confidence_]
    return [model.predict_proba(X), model.posterior_]


def agree(learner: CrowdLearner, order: str, found: Any, expected: Any, X: Floats) -> None:
    """Equal to rounding; alike where the learner draws luck for each row, task or worker."""
    luck = getattr(getattr(learner, "traits", None), "luck", ())  # a third party may have none
    for one, other in zip(results(found, X), results(expected, X), strict=True):
        if order in luck:
            assert np.abs(one - other).mean() < LUCK
        else:
            assert_allclose(one, other, atol=ROUNDING)


def is_distribution(proba: Array) -> None:
    """Rows are finite, non-negative and sum to one."""
    assert np.isfinite(proba).all()
    assert (proba > -1e-9).all()
    assert_allclose(proba.sum(axis=-1), 1, atol=1e-5)


def refuses(learner: CrowdLearner, X: Floats, votes: Annotations, what: str) -> None:
    """Learning from this is a ``CrowdwiseError``."""
    try:
        fitted(learner, X, votes)
    except CrowdwiseError:
        return
    raise AssertionError(f"{what} went unnoticed")


def foreign(method: Any) -> bool:
    """Whether it is a third party's: a file may name only crowdwise's own classes."""
    from crowdwise.persist.registry import registered_name

    return registered_name(type(method)) is None
