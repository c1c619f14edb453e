"""The compiled loops, where there are any."""

import os
from functools import cache
from types import ModuleType


def native() -> ModuleType | None:
    """The compiled loops, or None when they were not built or ``CROWDWISE_NATIVE=0``."""
    return _module() if os.environ.get("CROWDWISE_NATIVE", "1") != "0" else None


@cache
def _module() -> ModuleType | None:
    try:
        from crowdwise import _native
    except ImportError:
        return None
    return _native
