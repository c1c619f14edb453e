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
from crowdwise.inference.engines.files import FileEngine, StreamedPosterior, StreamedSweeps
from crowdwise.inference.engines.group import ALONE, Group, LocalGroup, TreeGroup, run_ranks
from crowdwise.inference.engines.memory import (
    MemoryEngine,
    count_labels,
    pooled_confusion,
)

__all__ = [
    "ALONE",
    "CoinSums",
    "CompactEngine",
    "Engine",
    "FileEngine",
    "Group",
    "LocalGroup",
    "MemoryEngine",
    "PairSums",
    "Posterior",
    "StreamedPosterior",
    "StreamedSweeps",
    "Sums",
    "Sweep",
    "TreeGroup",
    "count_labels",
    "pooled_confusion",
    "run_ranks",
]
