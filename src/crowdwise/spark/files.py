"""From files of annotations to files of labels and workers, all in Spark."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from crowdwise.annotations.grouping import WORDS
from crowdwise.annotations.names import FORMULA, GUARDED, is_number, is_whole_number
from crowdwise.base import Aggregator
from crowdwise.errors import AnnotationError, FileError, ParameterError, explain, plural
from crowdwise.io.recognize import normalize_name
from crowdwise.spark.estimator import CrowdAggregator, CrowdAggregatorModel

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

KINDS = ("parquet", "csv", "json", "orc")
ROLES = ("task", "worker", "label")
BROKEN = "_crowdwise_broken"  # column with the text of rows that do not match the header
# "" inside quotes is a quote; all columns are parsed, to find broken rows.
TEXT: dict[str, str | bool] = {
    "header": True, "escape": '"', "mode": "PERMISSIVE", "columnNameOfCorruptRecord": BROKEN,
    "enforceSchema": False, "columnPruning": False,
}  # fmt: skip


def label_files(
    path: str, output: str, method: Aggregator, **params: object
) -> CrowdAggregatorModel:
    """Fit the annotations at ``path``; write folders ``labels`` and ``workers`` of Parquet files.

    Paths are anything that Spark can read and write. The current session is used, such as that
    of spark-submit, or a new one on this machine. ``params`` are those of
    :class:`CrowdAggregator`; a column named weight is used without being named.
    """
    from pyspark.sql import SparkSession

    if path.rstrip("/") == output.rstrip("/"):
        raise ParameterError(
            explain(f"{output} is the input, and would be overwritten.", fix="change -o")
        )
    folders = [f"{output}/{name}" for name in ("labels", "workers")]
    for folder in folders:
        refuse_existing(folder)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        builder = SparkSession.builder.appName("crowdwise")
        spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        names = {role: str(params.get(f"{role}Col") or role) for role in ROLES}
        frame = read_files(spark, path, names)
        weight = params.get("weightCol") or find_weight(frame)
        if is_text(path) and weight in frame.columns:
            frame = frame.withColumn(str(weight), frame[f"`{weight}`"].try_cast("double"))
        model = CrowdAggregator(method, **{**params, "weightCol": weight}).fit(frame)
        for found, folder in zip((model.transform(frame), model.workers), folders, strict=True):
            found.write.parquet(folder)
    return model


def refuse_existing(folder: str) -> None:
    """Refuse to write where something is, before any work where that can be known."""
    if "://" not in folder and Path(folder).exists():
        fix = "delete it, or name another folder"
        raise ParameterError(explain(f"{folder} exists, and would be overwritten.", fix=fix))


def is_text(path: str) -> bool:
    return find_kind(path) == "csv"


def find_kind(path: str) -> str:
    """Return the kind of files: Parquet unless the path says otherwise."""
    ending = path.rstrip("/").rsplit(".", 1)[-1].lower()
    return ending if ending in KINDS else "parquet"


def find_weight(frame: DataFrame) -> str | None:
    """Return the column named like a weight; probabilities of classes are refused."""
    soft = [name for name in frame.columns if name.startswith("proba_")]
    if soft:
        raise AnnotationError(
            explain(
                "Probabilities of classes cannot be fitted on Spark.",
                found=f"the column {soft[0]!r}",
                expected="one label on each row",
                fix="remove these columns, or fit on one machine",
            )
        )
    return next((name for name in frame.columns if normalize_name(name) == "weight"), None)


def read_files(spark: SparkSession, path: str, names: dict[str, str]) -> DataFrame:
    """Open a file or a folder of files as a frame; Parquet unless its name says otherwise.

    ``names`` are the columns of task, worker and label.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    kind = find_kind(path)
    reader: DataFrameReader = spark.read.format(kind).option("mode", "FAILFAST")
    try:
        if kind != "csv":
            return reader.load(path)
        columns = reader.options(**TEXT).load(path).columns
        schema = ", ".join(f"`{name.replace('`', '``')}` string" for name in [*columns, BROKEN])
        frame = reader.options(**TEXT).schema(schema).load(path)
        known = all(name in columns for name in names.values())
        return read_names(frame, names, path) if known else frame.drop(BROKEN)
    except (PySparkException, Py4JJavaError) as error:
        first = str(error).splitlines()[0]
        fix = f"check the path and its rows; files are {', '.join(KINDS)}"
        raise FileError(explain(f"Spark cannot read {path}.", first=first, fix=fix)) from None


def read_names(frame: DataFrame, names: dict[str, str], path: str) -> DataFrame:
    """Read names in text by the same rules as on one machine, in one pass over the rows.

    Whole numbers are numbers if all of a column are, apostrophes before formulas are removed,
    rows that repeat the header are left out, and those that do not match it are refused.
    """
    from pyspark.sql import functions as sf

    columns = {role: sf.col(f"`{name}`") for role, name in names.items()}
    header = sf.lit(True)
    for role, column in columns.items():
        header = header & column.eqNullSafe(names[role])
    body = frame.where(~header)
    word = sf.trim(columns["label"]).isin(sorted(WORDS))
    broken = sf.col(BROKEN)
    counts = {"headers": sf.count_if(header), "words": sf.count_if(word & ~header)}
    counts |= {"broken": sf.count(broken), "first": sf.min(broken)}
    for role, column in columns.items():
        own = sf.when(word, None).otherwise(column) if role == "label" else column
        part = ~header & own.isNotNull()
        counts[f"{role} is text"] = sf.count_if(part & ~own.rlike(match(is_whole_number)))
        counts[f"{role} is foreign"] = sf.count_if(part & (guard(unguard(own)) != own))
    found = frame.agg(*(count.alias(name) for name, count in counts.items())).collect()[0].asDict()
    if found["broken"]:
        rows = plural(found["broken"], "row does not", "rows do not")
        raise FileError(
            explain(
                f"{rows} match the header of {path}.",
                first=found["first"],
                expected="one cell per column, and no line end inside a cell",
                fix="correct these rows, or convert the file to Parquet: crowdwise convert",
            )
        )
    if found["headers"]:
        rows = plural(found["headers"], "row")
        warnings.warn(f"{rows} left out: the header, repeated.", stacklevel=4)
    for role, column in columns.items():
        own = unguard(column) if not found[f"{role} is foreign"] else column
        if not found[f"{role} is text"]:
            own = sf.regexp_replace(column, r"\.0\z", "").try_cast("bigint")
            if role == "label" and found["words"]:
                rows = plural(found["words"], "label")
                warnings.warn(f"{rows} taken as missing.", stacklevel=4)
        body = body.withColumn(names[role], own)
    return body.drop(BROKEN)


def match(full: object) -> str:
    """Return the pattern of a ``fullmatch`` for Spark."""
    return rf"\A(?:{full.__self__.pattern})\z"  # type: ignore[attr-defined]


def unguard(column: Column) -> Column:
    """Remove the apostrophes before formulas, as :func:`crowdwise.annotations.names.unguard`."""
    from pyspark.sql import functions as sf

    return sf.regexp_replace(column, f"(?s){GUARDED.pattern}", "")


def guard(column: Column) -> Column:
    """Put an apostrophe before formulas, as :func:`crowdwise.annotations.names.guard`."""
    from pyspark.sql import functions as sf

    guarded = sf.regexp_replace(column, f"(?s){FORMULA.pattern}", "'")
    return sf.when(column.rlike(match(is_number)), column).otherwise(guarded)
