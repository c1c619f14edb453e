"""How much memory is available, and what would need more."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from crowdwise.errors import AnnotationError, CrowdwiseError, FileError, explain

LARGE = 1 << 30  # bytes: larger objects are made in parts if possible, and logged if not
CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")

log = logging.getLogger("crowdwise")


def refuse_too_large(
    name: str,
    needed: float,
    why: str,
    fix: str = "read a part of it, or use a machine with more memory",
    error: type[CrowdwiseError] = FileError,
) -> None:
    """Refuse what needs more memory than there is; ``needed`` is the minimum, in bytes."""
    there = available_memory()
    what = f"about {show_bytes(needed)} of memory: {why}"
    if needed > LARGE:
        log.info("%s: %s", name, what)
    if there is not None and needed > there:
        left = f"{show_bytes(there)} available"
        raise error(explain(f"{name} would need {what}.", found=left, fix=fix))


def refuse_dense(what: str, shape: tuple[int, int], names: tuple[str, str]) -> None:
    """Refuse to make an array of numbers that would not fit into memory."""
    if (needed := 8.0 * shape[0] * shape[1]) > LARGE:
        size = " x ".join(f"{n:,} {name}" for n, name in zip(shape, names, strict=True))
        fix = "merge rare classes into one, as crowdwise report does"
        refuse_too_large(what, needed, size, fix, AnnotationError)


def show_bytes(number: float) -> str:
    """Write a number of bytes with a unit.

    >>> show_bytes(2_500_000), show_bytes(123e9)
    ('2.5 MB', '123 GB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:,.3g} TB" if number < 1000 else f"{number:,.0f} TB"


def available_memory() -> int | None:
    """Return how many bytes this process can still use, as far as the system says."""
    known = [_read_meminfo(), _read_limit(), *(_read_cgroup(*own) for own in _list_cgroups())]
    return min((max(own, 0) for own in known if own is not None), default=None)


def _read_meminfo() -> int | None:
    """Return the memory that Linux counts as available, plus free swap."""
    found = _read_table(PROC / "meminfo")
    there = found.get("MemAvailable:")
    return None if there is None else 1024 * (there + found.get("SwapFree:", 0))


def _list_cgroups() -> list[tuple[Path, str, str]]:
    """List where the limits of a container are, with the names of limit and usage."""
    try:
        own = (PROC / "self" / "cgroup").read_text().rpartition("::")[2].strip()
    except OSError:
        own = ""
    new = [CGROUPS / own.lstrip("/"), CGROUPS]
    old = (CGROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
    return [*((home, "memory.max", "memory.current") for home in new), old]


def _read_cgroup(home: Path, limit: str, use: str) -> int | None:
    """Return what is left under the limit; the page cache can be freed."""
    try:
        most, used = (int((home / name).read_text()) for name in (limit, use))
    except (OSError, ValueError):  # no limit, or "max"
        return None
    found = _read_table(home / "memory.stat")
    return most - used + found.get("inactive_file", 0)


def _read_limit() -> int | None:
    """Return what ``ulimit -v`` leaves."""
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    try:
        pages = int((PROC / "self" / "statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return None if most == resource.RLIM_INFINITY else most - pages * resource.getpagesize()


def _read_table(path: Path) -> dict[str, int]:
    """Read the names and numbers at the start of a file's lines; empty if it does not exist."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}
