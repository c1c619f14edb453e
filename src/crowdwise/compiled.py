"""The compiled loops, if they were built; ``CROWDWISE_NATIVE=0`` disables them."""

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any


def load() -> ModuleType | None:
    """Load the compiled loops; None if they were not built or are disabled."""
    if os.environ.get("CROWDWISE_NATIVE", "1") == "0":
        return None
    try:
        from crowdwise import _native
    except ImportError:
        return None
    return _native


native = load()


def find(name: str) -> Callable[..., Any] | None:
    """Find a compiled loop; None if there is none of that name, as in an older build."""
    return getattr(native, name, None)
