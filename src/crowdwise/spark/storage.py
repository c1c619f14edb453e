"""Saving estimators and models wherever Spark can write, and loading them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark.ml import Model
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader, MLWriter

from crowdwise.base import Aggregator
from crowdwise.persist import load, save
from crowdwise.spark.tasks import keeps_tasks

CHUNK = 1 << 24  # bytes in one row
PLACE, TASKS = "method", "tasks"  # next to the metadata


class MethodWriter(MLWriter):
    """Writes the parameters, and the method as ``crowdwise.save`` writes it."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:  # noqa: N802  Spark's name
        spark, own = self.sparkSession, self.instance
        params = {p.name: v for p, v in own._paramMap.items()}
        DefaultParamsWriter.saveMetadata(own, path, spark, paramMap=params)
        content = to_bytes(own.method, fitted=isinstance(own, Model))
        rows = [(i, content[i : i + CHUNK]) for i in range(0, len(content), CHUNK)]
        frame = spark.createDataFrame(rows, "start long, content binary")
        frame.write.parquet(f"{path}/{PLACE}")
        if getattr(own, "tasks", None) is not None:
            own.tasks.write.parquet(f"{path}/{TASKS}")


class MethodReader(MLReader[Any]):
    """Reads what :class:`MethodWriter` wrote."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self.kind = kind

    def load(self, path: str) -> Any:
        spark = self.sparkSession
        metadata = DefaultParamsReader.loadMetadata(path, spark)
        rows = spark.read.parquet(f"{path}/{PLACE}").orderBy("start").collect()
        content = b"".join(bytes(row.content) for row in rows)
        fitted = issubclass(self.kind, Model)
        found = self.kind(from_bytes(content, fitted=fitted))
        if fitted and keeps_tasks(found.method):
            found.tasks = spark.read.parquet(f"{path}/{TASKS}")
        found._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(found, metadata)
        return found


def to_bytes(method: Aggregator, *, fitted: bool) -> bytes:
    """Return the contents of the file that a method is saved to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "method.safetensors"
        save(method, path, fitted=fitted)
        return path.read_bytes()


def from_bytes(content: bytes, *, fitted: bool) -> Aggregator:
    """Load the method from such a file; reading it runs none of its code."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "method.safetensors"
        path.write_bytes(content)
        return load(path, fitted=fitted)
