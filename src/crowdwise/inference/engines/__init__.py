"""Engines: where the sweeps of truth inference run."""

from crowdwise.inference.engines.engine import Engine, Sums, Sweep
from crowdwise.inference.engines.memory import (
    MemoryEngine,
    count_labels,
    engine_for,
    pooled_confusion,
)

__all__ = [
    "Engine",
    "MemoryEngine",
    "Sums",
    "Sweep",
    "count_labels",
    "engine_for",
    "pooled_confusion",
]
