"""A fitted model's workers, as a Spark frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crowdwise.base import Aggregator
from crowdwise.errors import AnnotationError
from crowdwise.typing import Array, Floats

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ROWS_AT_ONCE = 1 << 14


def describe_workers(model: Aggregator) -> DataFrame:
    """Return a frame ``worker, skill, confusion``; null if the method has none."""
    import pyarrow
    from pyspark.sql import SparkSession

    skills = getattr(model, "skills_", None)
    confusion = matrices_of(model)
    workers, classes = as_arrow(model.workers_), as_arrow(model.classes_)
    skill = None if skills is None else skills.to_numpy()
    columns = {
        "worker": workers,
        "skill": pyarrow.array(
            [None] * len(workers) if skill is None else skill, pyarrow.float64()
        ),
    }
    spark = SparkSession.active()
    if confusion is None:
        kind = "map<{0}, map<{0}, double>>".format(spark_type(classes.type))
        frame = spark.createDataFrame(pyarrow.table(columns))
        return frame.selectExpr("*", f"CAST(NULL AS {kind}) AS confusion")
    columns["confusion"] = as_maps(confusion, classes)
    return spark.createDataFrame(pyarrow.table(columns))


def matrices_of(model: Aggregator) -> Floats | None:
    """Return P(label | truth) of each worker, if the method has it and it fits into memory."""
    try:
        return getattr(model, "confusion_", None)
    except AnnotationError:  # too many to store
        return None


def as_maps(matrices: Floats, classes: pa.Array) -> pa.MapArray:
    """Return ``{truth: {label: probability}}`` of each worker."""
    import numpy as np
    import pyarrow

    n_workers, n_truths, n_labels = matrices.shape

    def keys(n_maps: int, n: int) -> pa.Array:
        return classes.take(pyarrow.array(np.tile(np.arange(n), n_maps)))

    def edges(n_maps: int, n: int) -> Array:
        return np.arange(0, (n_maps + 1) * n, n, dtype=np.int32)

    n_rows = n_workers * n_truths
    values = pyarrow.array(matrices.ravel())
    inner = pyarrow.MapArray.from_arrays(edges(n_rows, n_labels), keys(n_rows, n_labels), values)
    return pyarrow.MapArray.from_arrays(
        edges(n_workers, n_truths), keys(n_workers, n_truths), inner
    )


def as_arrow(names: Array) -> pa.Array:
    """Return names as an Arrow array of text or numbers."""
    import pyarrow

    return pyarrow.array(names.tolist())


def spark_type(kind: pa.DataType) -> str:
    """Return Spark's name for an Arrow type of names."""
    known = {"string": "string", "int64": "bigint", "double": "double", "bool": "boolean"}
    return known[str(kind)]
