"""The compiled loops, where they were built; ``CROWDWISE_NATIVE=0`` does without them."""

import os
from types import ModuleType


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
