"""The compiled loops, if they were built; ``CROWDWISE_NATIVE=0`` disables them."""

import os
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def load() -> ModuleType | None:
    """Load the compiled loops; None if they were not built, are out of date or are disabled."""
    if os.environ.get("CROWDWISE_NATIVE", "1") == "0":
        return None
    try:
        from crowdwise import _native
    except ImportError:
        return None
    sources = checksum(Path(__file__).parent)
    if sources and getattr(_native, "SOURCES", None) != sources:
        warnings.warn(
            "the compiled loops were built from other sources than those of this version, so "
            "slower numpy takes their place; reinstall crowdwise (in a checkout: pip install "
            "--editable .)",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return _native


def checksum(folder: Path) -> int:
    """Return the checksum of a folder's C files, which setup.py compiles in; 0 without any."""
    files = sorted(folder.glob("_native*.[ch]"))
    return zlib.crc32(b"".join(file.read_bytes() for file in files)) >> 1


native = load()


def find(name: str) -> Callable[..., Any] | None:
    """Find a compiled loop; None if none are used."""
    return getattr(native, name, None)
