"""How much memory a method may take, and what to say when it would take more."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from crowdwise.annotations.columns import Columns
from crowdwise.errors import AnnotationError, explain, plural

DENSE = 1 << 30  # bytes: a larger array of tasks x classes is kept in compact form
CELL = 46  # bytes per cell of workers x classes x classes: tables of a step, and their sums
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
COMPACT = (
    "choose MajorityVote, Wawa, ZeroBasedSkill or OneCoin, which take memory by the annotation; "
    "or merge rare classes"
)
CGROUP = Path("/sys/fs/cgroup/memory.max")


def free_memory() -> int:
    """Bytes that this process can still take, as far as the system says."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")] if _has_pages() else []
    with suppress(OSError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
    with suppress(OSError, ValueError):  # there is none, or "max"
        limits.append(int(CGROUP.read_text()))
    return min(limits, default=1 << 62)


def _has_pages() -> bool:
    return hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names


def refuse_too_large(name: str, needed: float, data: Columns, fix: str = COMPACT) -> None:
    """Say how much memory something would take, and what to do, before it is taken."""
    if needed > DENSE and needed > (free := free_memory()):
        sizes = f"{plural(data.n_tasks, 'task')}, {plural(data.n_workers, 'worker')} and "
        sizes += plural(data.n_classes, "class", "classes")
        raise AnnotationError(
            explain(
                f"{name} would need about {in_words(needed)} of memory for {sizes}.",
                found=f"{in_words(free)} free",
                fix=fix,
            )
        )


def in_words(n_bytes: float) -> str:
    """A number of bytes in its largest unit."""
    size, unit = float(n_bytes), 0
    while size >= 1000.0 and unit < len(UNITS) - 1:
        size, unit = size / 1000.0, unit + 1
    return f"{size:,.0f} {UNITS[unit]}" if size >= 10 or not unit else f"{size:,.1f} {UNITS[unit]}"
