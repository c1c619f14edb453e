"""The classes that a file may name, and how to build estimators from their names."""

import inspect
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from sklearn.base import BaseEstimator

from crowdwise.errors import FormatError, explain
from crowdwise.persist.soundness import refuse_unsound

Value = Any  # anything that a parameter or a learned attribute may be
Tree = dict[str, Value]  # values by name, or a value as JSON
# Modules of the parts that models' parameters or results are made of. A file has only the
# name; the module is always ours.
PARTS: Mapping[str, str] = {
    "CompactPosterior": "crowdwise.inference.compact",
    "CrowdLabels": "crowdwise.embed.crowd_labels",
    "Encoder": "crowdwise.nets.modules",
    "History": "crowdwise.nets.loop",
    "Ledger": "crowdwise.inference.ledger",
    "LogisticRegression": "sklearn.linear_model",
    "BalancedTasks": "crowdwise.embed.balanced_tasks",
    "MLP": "crowdwise.nets.modules",
    "PairBelief": "crowdwise.inference.engines.pair_belief",
    "Pairs": "crowdwise.annotations.pairs",
    "Pipeline": "sklearn.pipeline",
    "Search": "crowdwise.learn.search",
    "StandardScaler": "sklearn.preprocessing",
    "Training": "crowdwise.nets.training",
    "WorkerHistory": "crowdwise.aggregate.dawid_skene",
    **dict.fromkeys(
        ("Assurance", "Bayesian", "Certain", "MLE"),
        "crowdwise.embed.confidence",
    ),
    **dict.fromkeys(
        ("EveryClass", "OneClass", "RandomGroups"),
        "crowdwise.embed.groups",
    ),
    **dict.fromkeys(("HardGroups", "SafeGroups"), "crowdwise.embed.hard_groups"),
    **dict.fromkeys(
        ("CosineSoftmax", "EuclideanSoftmax", "Example", "Robust"),
        "crowdwise.embed.losses",
    ),
    **dict.fromkeys(
        ("FixedGroups", "FlatHardGroups", "FlippingShares", "LenientSafeGroups", "OwnClassPrior"),
        "crowdwise.embed.published",
    ),
    **dict.fromkeys(("SemiHardTripletLoss", "TripletLoss"), "crowdwise.embed.triplet"),
    **dict.fromkeys(
        (
            "Autoencoder",
            "CertainWarmUp",
            "FullWarmUp",
            "Interpolation",
            "LastLayerOnly",
            "NoWarmUp",
            "StagedWarmUp",
        ),
        "crowdwise.learn.iced_parts",
    ),
    "CrowdSMOTE": "crowdwise.learn.crowd_smote",
    **dict.fromkeys(("KernelAxes", "PrincipalAxes"), "crowdwise.learn.views"),
    "CenterLoss": "crowdwise.embed.center",
    "ContrastiveLoss": "crowdwise.embed.contrastive",
    "CrowdEmbedder": "crowdwise.embed.embedder",
    "LiftedStructureLoss": "crowdwise.embed.lifted",
    **dict.fromkeys(("Episodes", "RelationLoss"), "crowdwise.embed.relation_net"),
    "TwoTowers": "crowdwise.nets.modules",
}
MODELS = {  # modules and their lists
    "crowdwise.aggregate": ("__all__",),
    "crowdwise.learn": ("LEARNERS", "MULTI_LABEL_LEARNERS", "PARTS"),
    "crowdwise.embed": ("EMBEDDERS",),
}


@runtime_checkable
class KeepsState(Protocol):
    """An estimator that itself defines its learned state."""

    def _learned(self) -> dict[str, Value]: ...

    def _restore(self, learned: dict[str, Value]) -> None: ...


def registered_name(cls: type) -> str | None:
    """Return the name that stands for a class in a file; None if it is not on the list."""
    home = ".".join(cls.__module__.split(".")[:2])
    if cls.__name__ not in PARTS and home not in MODELS:
        return None
    try:
        return cls.__name__ if find_class(cls.__name__) is cls else None
    except FormatError:
        return None


def find_class(name: str) -> type:
    """Find the class with this name."""
    if name in PARTS:
        return _class_in(import_module(PARTS[name]), name)
    for home, listed in MODELS.items():  # modules that need torch come last
        module = import_module(home)
        if any(name in getattr(module, names) for names in listed):
            return _class_in(module, name)
    raise FormatError(
        explain(
            f"There is no model or part named {name!r:.80}.",
            expected="one of crowdwise's own classes",
            fix="if a newer crowdwise wrote the file, install that version",
        )
    )


def _class_in(module: ModuleType, name: str) -> type:
    found: type = getattr(module, name)
    return found


def get_learned(estimator: BaseEstimator) -> Tree:
    """Return learned attributes of an estimator of ours or of scikit-learn's."""
    if isinstance(estimator, KeepsState):
        return estimator._learned()
    return learned_attributes(estimator)


def learned_attributes(estimator: object) -> Tree:
    """Return the attributes that ``fit`` has set, by name."""
    return {name: value for name, value in vars(estimator).items() if is_learned(name)}


def is_learned(name: str) -> bool:
    """Return whether a name is that of a learned attribute: ``_`` at its end only."""
    return name.endswith("_") and not name.startswith("_")


def build(name: str, params: Tree, learned: Tree) -> BaseEstimator:
    """Build an estimator by name, with parameters and learned attributes."""
    cls: Value = find_class(name)
    unlearned = [key for key in learned if not is_learned(key)]
    if not issubclass(cls, BaseEstimator) or unlearned:
        raise FormatError(f"{name} cannot have learned {', '.join(unlearned) or 'anything'!s:.80}.")
    unknown = params.keys() - inspect.signature(cls).parameters.keys()
    if unknown:
        raise FormatError(f"{name} has no parameter {sorted(unknown)[0]!r:.80}.")
    if params.get("memory") is not None:  # a cache would be read with pickle
        raise FormatError(f"{name} has a cache on disk.")
    estimator = cls(**params)
    if isinstance(estimator, KeepsState):
        estimator._restore(learned)
        refuse_unsound(estimator)
    else:
        vars(estimator).update(learned)
    return estimator
