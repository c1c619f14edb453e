"""What is not collected: code whose optional dependency is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pyspark") else ["src/crowdwise/spark/*"]
