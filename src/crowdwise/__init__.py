"""Learn from labels that disagree.

>>> import crowdwise as cw
>>> votes = {"q1": {"ann": "cat", "bob": "cat", "cy": "dog"}, "q2": {"ann": "dog", "cy": "dog"}}
>>> cw.aggregate.MajorityVote().fit_predict(votes).to_dict()
{'q1': 'cat', 'q2': 'dog'}
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

__version__ = version("crowdwise")

_NAMES = {
    "Annotations": "crowdwise.annotations",
    "CrowdwiseError": "crowdwise.errors",
    "load": "crowdwise.persist",
    "read": "crowdwise.io",
}

__all__ = [
    "Annotations",
    "CrowdwiseError",
    "__version__",
    "aggregate",
    "annotations",
    "base",
    "cli",
    "compat",
    "datasets",
    "embed",
    "errors",
    "evaluate",
    "inference",
    "io",
    "laws",
    "learn",
    "load",
    "nets",
    "persist",
    "plan",
    "plot",
    "progress",
    "read",
    "report",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Load a part on first use, so that importing the package costs nothing."""
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    if name in __all__:
        return import_module(f"crowdwise.{name}")
    raise AttributeError(f"module 'crowdwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
