"""Engines: where the sweeps of truth inference run."""

from crowdwise.inference.engines.compact import CompactEngine
from crowdwise.inference.engines.engine import (
    CoinSums,
    Engine,
    PairSums,
    Posterior,
    Sums,
    Sweep,
)
from crowdwise.inference.engines.memory import (
    MemoryEngine,
    count_labels,
    pooled_confusion,
)
from crowdwise.inference.engines.weighted import WeightedEngine

__all__ = [
    "CoinSums",
    "CompactEngine",
    "Engine",
    "MemoryEngine",
    "PairSums",
    "Posterior",
    "Sums",
    "Sweep",
    "WeightedEngine",
    "count_labels",
    "pooled_confusion",
]
