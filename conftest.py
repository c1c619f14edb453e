"""What is not collected: code whose optional dependency is not installed."""

from importlib.util import find_spec

ONLY_WITH = {
    "pyspark": "src/crowdwise/spark/*",
    "triton": "src/crowdwise/inference/engines/fused.py",
}
collect_ignore_glob = [path for package, path in ONLY_WITH.items() if not find_spec(package)]
