"""Learners with short training, for laws and tests that are not about how good they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from sklearn.base import BaseEstimator, clone

if TYPE_CHECKING:
    from crowdwise.base.learner import Learner

Model: TypeAlias = Any  # third parties' classes have no type of ours: laws only need methods

# Upper limits of parameters, by the end of their names.
SHORT = {"epochs": 5, "rounds": 2, "max_iter": 20, "per_epoch": 64, "members": 2}


def quick(learner: Learner) -> Model:
    """Copy a learner with a fixed seed, for brief training on the CPU, on all labels at once.

    Parameters that count epochs, rounds or steps are reduced to a few; so are the epochs of
    parts, ``training``, and a ``learner`` inside.
    """
    copy: Model = clone(learner)
    changes: dict[str, object] = {}
    for name, given in copy.get_params(deep=False).items():
        value = getattr(copy, f"default_{name}", None) if given is None else given
        for word, most in SHORT.items():
            if name.endswith(word) and isinstance(value, int):
                changes[name] = min(value, most)
        if name == "objective" and value is not None:  # a part with its own epochs and rounds
            changes[name] = quick(value)
        elif isinstance(value, BaseEstimator) and "epochs" in value.get_params(deep=False):
            changes[name] = clone(value).set_params(epochs=min(value.epochs, SHORT["epochs"]))
    if "training" in copy.get_params(deep=False):
        usual = clone(copy.training if copy.training is not None else copy.default_training)
        brief = min(usual.epochs, SHORT["epochs"])
        changes["training"] = usual.set_params(epochs=brief, batch_size=None, device="cpu")
    if "learner" in copy.get_params(deep=False):
        changes["learner"] = quick(copy.default_learner if copy.learner is None else copy.learner)
    if "random_state" in copy.get_params(deep=False):
        changes["random_state"] = 0
    return copy.set_params(**changes)
