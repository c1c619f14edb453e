"""From files of annotations to files of labels and workers, all in Spark."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING

from crowdwise.base import Aggregator
from crowdwise.errors import FileError, ParameterError, explain
from crowdwise.spark.estimator import CrowdAggregator, CrowdAggregatorModel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KINDS = ("parquet", "csv", "json", "orc")


def label_files(
    path: str, output: str, method: Aggregator, **params: object
) -> CrowdAggregatorModel:
    """Fit the annotations at ``path``; write folders ``labels`` and ``workers`` of Parquet files.

    Paths are anything that Spark can read and write. The current session is used, such as that
    of spark-submit, or a new one on this machine. ``params`` are those of
    :class:`CrowdAggregator`.
    """
    from pyspark.sql import SparkSession

    if path.rstrip("/") == output.rstrip("/"):
        raise ParameterError(
            explain(f"{output} is the input, and would be overwritten.", fix="change -o")
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        builder = SparkSession.builder.appName("crowdwise")
        spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        frame = read_files(spark, path)
        model = CrowdAggregator(method, **params).fit(frame)
        model.transform(frame).write.mode("overwrite").parquet(f"{output}/labels")
        model.workers.write.mode("overwrite").parquet(f"{output}/workers")
    return model


def read_files(spark: SparkSession, path: str) -> DataFrame:
    """Open a file or a folder of files as a frame; Parquet unless its name says otherwise."""
    from pyspark.errors import AnalysisException

    ending = path.rstrip("/").rsplit(".", 1)[-1].lower()
    kind = ending if ending in KINDS else "parquet"
    reader = spark.read.format(kind)
    if kind == "csv":
        reader = reader.option("header", True).option("inferSchema", True)
    try:
        return reader.load(path)
    except AnalysisException as error:
        first = str(error).splitlines()[0]
        fix = f"check the path; files are {', '.join(KINDS)}"
        raise FileError(explain(f"Spark cannot read {path}.", first=first, fix=fix)) from None
