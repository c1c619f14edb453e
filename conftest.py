"""What is not collected: code whose optional dependency is not installed."""

import gc
from importlib.util import find_spec

import pytest

ONLY_WITH = {
    "pyspark": "src/crowdwise/spark/*",
    "triton": "src/crowdwise/inference/engines/fused.py",
}
collect_ignore_glob = [path for package, path in ONLY_WITH.items() if not find_spec(package)]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage among modules and tests: they stay, and are a million objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
