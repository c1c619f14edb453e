"""The compiled loops, where they were built; ``CROWDWISE_NATIVE=0`` does without them."""

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any


def load() -> ModuleType | None:
    """The compiled loops, or None when they were not built or are not wanted."""
    if os.environ.get("CROWDWISE_NATIVE", "1") == "0":
        return None
    try:
        from crowdwise import _native
    except ImportError:
        return None
    return _native


native = load()


def find(name: str) -> Callable[..., Any] | None:
    """A compiled loop, or None where there is none of that name: a build may be older."""
    return getattr(native, name, None)
