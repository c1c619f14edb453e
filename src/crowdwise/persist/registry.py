"""The classes that a file may name, and the only ones."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from crowdwise.errors import FormatError, explain

# Where each part lives that a model's parameters or results are made of. A file says only the
# name; the place is always ours.
PARTS: Mapping[str, str] = {
    "CrowdLabels": "crowdwise.embed.crowd_labels",
    "Encoder": "crowdwise.embed.encoder",
    "History": "crowdwise.nets.loop",
    "LIAML": "crowdwise.learn.lia_ml",
    "LogisticRegression": "sklearn.linear_model",
    "MLP": "crowdwise.learn.truth",
    "NetClassifier": "crowdwise.learn.net_classifier",
    "OneWorker": "crowdwise.learn.net_classifier",
    "Pipeline": "sklearn.pipeline",
    "ResponseModel": "crowdwise.learn.response",
    "StandardScaler": "sklearn.preprocessing",
    "Training": "crowdwise.nets.settings",
    "WorkerHistory": "crowdwise.aggregate.dawid_skene",
}
MODELS = {  # and their lists
    "crowdwise.aggregate": "__all__",
    "crowdwise.learn": "LEARNERS",
    "crowdwise.embed": "EMBEDDERS",
}


def name_of(cls: type) -> str | None:
    """The name that stands for a class in a file; None for a class that is not on the list."""
    home = ".".join(cls.__module__.split(".")[:2])
    if cls.__name__ not in PARTS and home not in MODELS:
        return None
    try:
        return cls.__name__ if class_named(cls.__name__) is cls else None
    except FormatError:
        return None


def class_named(name: str) -> type:
    """The class of a name in a file."""
    if name in PARTS:
        return _attribute(PARTS[name], name)
    for home, listed in MODELS.items():  # those that need torch come last
        if name in _attribute(home, listed):
            return _attribute(home, name)
    raise FormatError(
        explain(
            f"There is no model or part named {name!r:.80}.",
            expected="one of crowdwise's own classes",
            fix="if a newer crowdwise wrote the file, install that version",
        )
    )


def _attribute(home: str, name: str) -> Any:
    return getattr(import_module(home), name)
