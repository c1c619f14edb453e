"""Truth inference on Spark: the methods of :mod:`crowdwise.aggregate` on frames of any size."""

from crowdwise.errors import MissingExtraError

try:
    import pyspark  # noqa: F401  with our own error
except ImportError:
    raise MissingExtraError.of("crowdwise.spark", "pyspark", "spark") from None

from crowdwise.spark.estimator import CrowdAggregator, CrowdAggregatorModel

__all__ = ["CrowdAggregator", "CrowdAggregatorModel"]
