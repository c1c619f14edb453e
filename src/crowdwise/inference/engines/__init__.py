"""Engines: where the sweeps of truth inference run."""

from crowdwise.inference.engines.engine import Engine, Sums, Sweep
from crowdwise.inference.engines.memory import MemoryEngine, engine_for

__all__ = ["Engine", "MemoryEngine", "Sums", "Sweep", "engine_for"]
