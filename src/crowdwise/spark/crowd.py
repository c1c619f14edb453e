"""What the driver finds out about a frame of annotations before any model is fitted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crowdwise.annotations.grouping import find_words, is_word
from crowdwise.annotations.names import as_names, locate
from crowdwise.annotations.pairs import CROWDED, Pairs
from crowdwise.base import Aggregator
from crowdwise.errors import AnnotationError, ParameterError, explain, plural
from crowdwise.inference.engines.blocks import CELLS_PER_BLOCK, MOST_CELLS
from crowdwise.inference.engines.ranks import CrowdNames
from crowdwise.spark.rows import BUCKET, LABEL, TASK, WEIGHT, WORKER, is_missing
from crowdwise.spark.tasks import keeps_tasks
from crowdwise.typing import Array, Ints

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MOST_BUCKETS = 4096  # unless they would be larger than MOST_CELLS
NAMES = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double")


@dataclass(frozen=True)
class Columns:
    """Names of the columns with the annotations."""

    task: str = "task"
    worker: str = "worker"
    label: str = "label"
    weight: str | None = None

    def select(self, frame: DataFrame) -> DataFrame:
        """Select the annotations of a frame, under our own names."""
        from pyspark.sql import functions as sf

        self._refuse(frame)
        roles = {TASK: self.task, WORKER: self.worker, LABEL: self.label}
        columns = [sf.col(f"`{name}`").alias(role) for role, name in roles.items()]
        if self.weight is None:
            return frame.select(*columns)
        weight = sf.col(f"`{self.weight}`").cast("double").alias(WEIGHT)
        return frame.select(*columns, weight)

    def _refuse(self, frame: DataFrame) -> None:
        """Refuse a frame without these columns, or with types that cannot be names."""
        types = dict(frame.dtypes)
        for role in (TASK, WORKER, LABEL, WEIGHT):
            name = getattr(self, role)
            if name is None:
                continue
            if frame.columns.count(name) > 1:
                raise AnnotationError(
                    explain(
                        f"The frame has several columns named {name!r}.",
                        expected=f"one column for the {role}",
                        fix="rename the others, for example with toDF",
                    )
                )
            if name not in types:
                raise AnnotationError.missing_column(
                    name, where="The frame", found=types, fix=f"name it: {role}Col='…'"
                )
            kind = types[name]
            if role in (WORKER, LABEL) and kind not in NAMES:
                fix = f"cast it, for example to string: withColumn({name!r}, col({name!r}).cast(…))"
                what = f"The column {name!r} of {role}s has the type {kind}."
                raise AnnotationError(explain(what, expected=", ".join(NAMES), fix=fix))
            if role == WEIGHT and kind not in NAMES[2:] and not kind.startswith("decimal"):
                what = f"The column {name!r} of weights has the type {kind}."
                raise AnnotationError(explain(what, expected="numbers", fix="cast it to double"))
            if role == TASK and kind.startswith(("map", "array", "struct", "variant")):
                what = f"The column {name!r} of tasks has the type {kind}."
                raise AnnotationError(explain(what, fix="convert it to one word or number"))


@dataclass(frozen=True, eq=False)
class Survey:
    """The crowd of a frame, and how its tasks are distributed over buckets."""

    crowd: CrowdNames
    n_annotations: int
    n_buckets: int
    words: tuple[str, ...]  # labels that mean "no label"

    def place(self, rows: DataFrame) -> DataFrame:
        """Return the rows that count, with the bucket of their task."""
        from pyspark.sql import functions as sf

        some = _weighty(rows).where(sf.col(LABEL).isNotNull())
        if dict(rows.dtypes)[LABEL] in ("float", "double"):
            some = some.where(~sf.isnan(LABEL))
        if self.words:
            some = some.where(~sf.col(LABEL).isin(list(self.words)))
        bucket = sf.pmod(sf.xxhash64(TASK), sf.lit(self.n_buckets)).cast("int")
        return some.withColumn(BUCKET, bucket)


def survey(rows: DataFrame) -> Survey:
    """Go over the annotations once: workers, classes, and anything that cannot be read."""
    from pyspark.sql import functions as sf

    nothing = sf.col(TASK).isNull()
    if dict(rows.dtypes)[TASK] in ("float", "double"):
        nothing = nothing | sf.isnan(TASK)
    sums = [sf.count(sf.lit(1)).alias("n"), sf.count_if(nothing).alias("unnamed")]
    if WEIGHT in rows.columns:
        weight = sf.col(WEIGHT)
        bad = weight.isNull() | sf.isnan(weight) | (weight < 0) | (weight == float("inf"))
        sums.append(sf.count_if(bad).alias("unweighted"))
    found = _weighty(rows).groupBy(WORKER, LABEL).agg(*sums).toArrow()
    counts = found.column("n").to_numpy()
    labels = np.array(found.column(LABEL).to_pylist(), dtype=object)
    words = _find_words(labels, counts)
    out = [is_missing(label) or label in words for label in labels.tolist()]
    kept = found.filter(~np.array(out, dtype=bool))
    _refuse_rows(found, kept)
    return _build(kept, words)


def _weighty(rows: DataFrame) -> DataFrame:
    """Return the rows whose weight is not 0."""
    if WEIGHT not in rows.columns:
        return rows
    return rows.where(f"{WEIGHT} IS NULL OR {WEIGHT} <> 0")


def _refuse_rows(found: pa.Table, kept: pa.Table) -> None:
    """Refuse rows without a task, labels without a worker, and invalid weights."""
    total, counts = int(np.sum(found.column("n").to_numpy())), kept.column("n").to_pylist()
    workers = zip(kept.column(WORKER).to_pylist(), counts, strict=True)
    bad = {
        TASK: int(np.sum(found.column("unnamed").to_numpy())),
        WORKER: sum(count for name, count in workers if is_missing(name)),
    }
    for role, number in bad.items():
        if number:
            what = f"The {role} is missing in {number:,} of {plural(total, 'row')}."
            fix = f"leave them out: frame.dropna(subset=[the column of {role}s]), or name them"
            raise AnnotationError(explain(what, expected=f"a {role} in every row", fix=fix))
    if "unweighted" in found.column_names:
        number = int(np.sum(found.column("unweighted").to_numpy()))
        if number:
            what = f"The weight is missing, negative or infinite in {number:,} of {total:,} rows."
            fix = "leave them out, or give them a weight of 0"
            raise AnnotationError(explain(what, expected="numbers of 0 or more", fix=fix))


def _find_words(labels: Array, counts: Ints) -> tuple[str, ...]:
    """Find words among the labels that mean "no label"; a warning counts them."""
    words = find_words("auto", [])
    found = sorted({label for label in labels if isinstance(label, str) and is_word(label, words)})
    if found:
        number = int(sum(counts[labels == word].sum() for word in found))
        shown = ", ".join(map(repr, found))
        warnings.warn(f"{plural(number, 'label')} taken as missing: {shown}.", stacklevel=5)
    return tuple(found)


def _build(found: pa.Table, words: tuple[str, ...]) -> Survey:
    counts = found.column("n").to_numpy()
    if not len(counts):
        fix = "check the column of labels: all of them are missing, or there are no rows"
        raise AnnotationError(explain("There are no annotations in the frame.", fix=fix))
    workers, worker = _number(found.column(WORKER))
    classes, label = _number(found.column(LABEL))
    sizes = len(workers), len(classes)
    code = np.unique(worker.astype(np.int64) * sizes[1] + label)
    if len(code) > CROWDED * sizes[0] * sizes[1]:
        pairs = Pairs.all_of(*sizes)
    else:
        of_worker, of_label = np.divmod(code, sizes[1])
        pairs = Pairs(of_worker.astype(np.int32), of_label.astype(np.int32), *sizes)
    n_annotations = int(counts.sum())
    n_buckets = count_buckets(n_annotations, len(pairs) * sizes[1])
    return Survey(CrowdNames(workers, classes, pairs), n_annotations, n_buckets, words)


def _number(column: pa.ChunkedArray) -> tuple[Array, Ints]:
    """Return the sorted names of a column, and the number of each value."""
    names = as_names(sorted(set(column.to_pylist())))
    return names, locate(names, as_names(column.to_pylist()))


def count_buckets(n_annotations: int, table_size: int) -> int:
    """Return a power of two that only depends on the data; buckets exceed their sums."""
    worth = n_annotations // max(CELLS_PER_BLOCK, 4 * table_size)
    number = min(1 << (max(worth, 1).bit_length() - 1), MOST_BUCKETS)
    while number * MOST_CELLS < n_annotations:
        number *= 2
    return number


def check_method(method: Aggregator, form: str) -> None:
    """Refuse a method that cannot be fitted in this form."""
    name = type(method).__name__
    if not getattr(getattr(method, "traits", None), "blockwise", False):
        raise ParameterError(
            explain(
                f"{name} needs all annotations at once, and Spark distributes them.",
                expected="a method that works in blocks",
                fix="choose one such as BayesBag, DawidSkene, IBCC or GLAD",
            )
        )
    inner = getattr(method, "base", None)
    if isinstance(inner, Aggregator) and (keeps_tasks(inner) or not inner.traits.blockwise):
        raise ParameterError(
            explain(
                f"{name}({type(inner).__name__}()) keeps numbers for each task in every bag, and "
                "Spark distributes the tasks.",
                expected="a base with tables of workers alone",
                fix="leave base out, or choose one such as DawidSkene, IBCC or OneCoin",
            )
        )
    if form == "steps" and keeps_tasks(method):
        raise ParameterError(
            explain(
                f"{name} keeps a number for each task, which ranks of a barrier stage can, and "
                "steps of their own cannot.",
                fix="give form='barrier', in a session that allows it; or choose a method such as "
                "DawidSkene, IBCC or OneCoin",
            )
        )


def refuse_other_names(rows: DataFrame, model: Aggregator) -> None:
    """Refuse workers or labels that are text if the model has numbers, and vice versa."""
    types = dict(rows.dtypes)
    for role, names in ((WORKER, model.workers_), (LABEL, model.classes_)):
        found, known = _kind_of(types[role]), _kind_of_names(names)
        if found != known:
            what = f"The {role}s of this frame are {found}, those of the model {known}."
            fix = f"cast the column of {role}s to the type it had in fit"
            raise AnnotationError(explain(what, found=types[role], expected=known, fix=fix))


def _kind_of(kind: str) -> str:
    return {"string": "text", "boolean": "true or false"}.get(kind, "numbers")


def _kind_of_names(names: Array) -> str:
    if names.dtype.kind == "O":
        return "text" if any(isinstance(name, str) for name in names) else "numbers"
    return {"b": "true or false", "U": "text"}.get(names.dtype.kind, "numbers")
