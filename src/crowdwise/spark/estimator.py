"""Truth inference as an estimator of ``pyspark.ml``."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import MLReadable, MLWritable
from sklearn.base import clone

from crowdwise.base import Aggregator
from crowdwise.errors import ParameterError, explain, plural
from crowdwise.spark.barrier import Job, fit_in_barrier
from crowdwise.spark.crowd import Columns, Survey, check_method, refuse_other_names, survey
from crowdwise.spark.infer import infer_rows
from crowdwise.spark.rows import LABEL, TASK, WEIGHT, WORKER, deal_out
from crowdwise.spark.steps import StepEngine, encode_blocks
from crowdwise.spark.storage import MethodReader, MethodWriter
from crowdwise.spark.workers import describe_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMS = ("auto", "barrier", "steps")
Fitted: TypeAlias = "tuple[Aggregator, DataFrame | None]"
TEXT, NUMBER = TypeConverters.toString, TypeConverters.toInt


class CrowdParams(Params):
    """Parameters of estimator and model: the input and output columns."""

    def __init__(self) -> None:
        super().__init__()
        self._add("taskCol", "column of tasks", "task")
        self._add("workerCol", "column of workers", "worker")
        self._add("labelCol", "column of labels", "label")
        self._add("weightCol", "column of weights of annotations; all count equally if empty", "")
        self._add("predictionCol", "output column for the most probable label", "label")
        self._add("probabilityCol", "output column for its probability", "probability")
        text = "output column for a map with the probability of every class; none if empty"
        self._add("distributionCol", text, "distribution")
        text = "what to do with workers unknown to fit: average, ignore or error"
        self._add("unknownWorkers", text, "average")

    def _add(
        self, name: str, text: str, default: object, kind: Callable[[Any], Any] = TEXT
    ) -> None:
        setattr(self, name, Param(self, name, text, kind))
        self._setDefault(**{name: default})

    def _columns(self) -> Columns:
        names = (self.getOrDefault(f"{role}Col") for role in (TASK, WORKER, LABEL, WEIGHT))
        task, worker, label, weight = names
        return Columns(task, worker, label, weight or None)

    def setParams(self, **params: object) -> Self:  # noqa: N802  Spark's name
        """Set parameters by name."""
        unknown = [name for name in params if not self.hasParam(name)]
        if unknown:
            known = ", ".join(param.name for param in self.params)
            what = f"{type(self).__name__} has no parameter {unknown[0]!r}."
            fix = "choose one of these; the method has its own, as in method=IBCC(max_iter=50)"
            raise ParameterError(explain(what, expected=known, fix=fix))
        return self._set(**{name: value for name, value in params.items() if value is not None})


class CrowdAggregator(Estimator[Any], CrowdParams, MLReadable[Any], MLWritable):
    """Infer truths from a Spark frame of annotations with any blockwise method.

    Every rank, a Spark task, holds some of the tasks and runs the method's own loop; at each
    step, ranks exchange a sum of the workers' tables. Results are the same bits on any number
    of ranks, and those of one machine up to rounding.

    Parameters
    ----------
    method : Aggregator
        Such as ``DawidSkene()``. It is not modified.
    **params
        ``taskCol``, ``workerCol``, ``labelCol`` and ``weightCol`` name the input columns;
        ``predictionCol``, ``probabilityCol`` and ``distributionCol`` those that the model adds;
        ``unknownWorkers`` says what to do with workers unknown to ``fit``. ``numRanks`` is
        the number of Spark tasks, by default one per core. ``form`` is "barrier",
        one stage for the whole fit, or "steps", a Spark job for every step; by default the first
        if the session allows it. ``checkpointDir`` is a folder that all executors can write
        to, where sums are stored for a restart; by default each machine's own temporary folder.

    Examples
    --------
    ::

        estimator = CrowdAggregator(DawidSkene(), taskCol="item", workerCol="who")
        model = estimator.fit(frame)
        model.transform(frame).write.parquet("labels")  # item, label, probability, distribution
        model.workers.show()  # worker, skill, confusion
    """

    def __init__(self, method: Aggregator, **params: object) -> None:
        super().__init__()
        self.method = method
        self._add("numRanks", "number of Spark tasks; 0 for one per core", 0, NUMBER)
        self._add("form", "barrier, steps, or auto", "auto")
        self._add("checkpointDir", "folder that all executors can write to", "")
        self.setParams(**params)

    def _fit(self, dataset: DataFrame) -> CrowdAggregatorModel:
        form = self._form(dataset)
        check_method(self.method, form)
        method = fix_seed(clone(self.method))
        method._validate_params()
        rows = self._columns().select(dataset)
        found = survey(rows)
        n_ranks = self._count_ranks(dataset.sparkSession, form, found.n_buckets)
        dealt = deal_out(found.place(rows), found.n_buckets, n_ranks)
        fit = self._fit_steps if form == "steps" else self._fit_barrier
        fitted, tasks = fit(method, found, dealt, n_ranks)
        if tasks is None:
            fitted.tasks_ = np.zeros(0, dtype=object)  # they stay distributed
            fitted.posterior_ = np.zeros((0, len(fitted.classes_)))
        model = CrowdAggregatorModel(fitted, tasks)
        own = {param.name: value for param, value in self._paramMap.items()}
        return model._resetUid(self.uid).setParams(
            **{name: value for name, value in own.items() if model.hasParam(name)}
        )

    def _form(self, dataset: DataFrame) -> str:
        """Return the form that was asked for, or the one that the session allows."""
        form = self.getOrDefault("form")
        if form not in FORMS:
            what, fix = f"form={form!r} is unknown.", "leave it out: the session decides"
            raise ParameterError(explain(what, expected=", ".join(FORMS), fix=fix))
        if form != "auto":
            return str(form)
        conf = dataset.sparkSession.conf
        moves = str(conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true"
        return "steps" if moves or is_remote(dataset.sparkSession) else "barrier"

    def _count_ranks(self, spark: SparkSession, form: str, n_buckets: int) -> int:
        """Return the number of ranks; more than can run at once would end the whole session."""
        asked = self.getOrDefault("numRanks")
        if form == "steps":
            return min(asked or count_cores(spark), n_buckets)
        slots = count_slots(spark)
        if asked > slots:
            warnings.warn(
                f"numRanks={asked}, but Spark runs {plural(slots, 'task')} at once now: "
                f"{plural(slots, 'rank')} will do, with the same result.",
                stacklevel=4,
            )
        return min(asked or slots, slots, n_buckets)

    def _fit_barrier(
        self, method: Aggregator, found: Survey, dealt: DataFrame, n_ranks: int
    ) -> Fitted:
        conf = dealt.sparkSession.conf
        job = Job(
            found.crowd,
            method,
            found.n_buckets,
            n_ranks,
            int(conf.get("spark.task.cpus", "1") or 1),
            secrets.token_bytes(32),
            secrets.token_hex(8),
            self.getOrDefault("checkpointDir") or None,
        )
        return fit_in_barrier(dealt, job)

    def _fit_steps(self, method: Aggregator, found: Survey, dealt: DataFrame, _: int) -> Fitted:
        blocks = encode_blocks(dealt, found.crowd)
        folder = self.getOrDefault("checkpointDir")
        if folder:
            place = f"{folder}/crowdwise-{secrets.token_hex(8)}"
            blocks.write.parquet(place)
            blocks = dealt.sparkSession.read.parquet(place)
        else:
            blocks = blocks.persist()
        try:
            method.fit_engine(StepEngine.of(found.crowd, blocks), found.crowd.classes)
        finally:
            if not folder:
                blocks.unpersist()
        return method, None

    def write(self) -> MethodWriter:
        return MethodWriter(self)

    @classmethod
    def read(cls) -> MethodReader:
        return MethodReader(cls)


class CrowdAggregatorModel(Model, CrowdParams, MLReadable[Any], MLWritable):
    """A fitted method that infers the labels of a frame's tasks.

    Attributes
    ----------
    method : Aggregator
        The fitted method, with all that it has learned about classes and workers.
    tasks : DataFrame or None
        What the method keeps for each task, such as the column ``log_ease`` of ``GLAD``, by
        the names of the tasks in the column ``task``.
    """

    def __init__(self, method: Aggregator, tasks: DataFrame | None = None) -> None:
        super().__init__()
        self.method, self.tasks = method, tasks

    def _transform(self, dataset: DataFrame) -> DataFrame:
        from pyspark.sql import types as st

        columns, fields = self._columns(), dataset.schema
        rows = columns.select(dataset)
        refuse_other_names(rows, self.method)
        label = fields[columns.label].dataType
        out = [
            st.StructField(columns.task, fields[columns.task].dataType),
            st.StructField(self.getOrDefault("predictionCol"), label),
            st.StructField(self.getOrDefault("probabilityCol"), st.DoubleType()),
        ]
        if self.getOrDefault("distributionCol"):
            kind = st.MapType(label, st.DoubleType())
            out.append(st.StructField(self.getOrDefault("distributionCol"), kind))
        names = [field.name for field in out]
        infer = infer_rows(self.method, self.getOrDefault("unknownWorkers"), names)
        order = [name for name in (TASK, WORKER, LABEL, WEIGHT) if name in rows.columns]
        if self.tasks is not None:
            rows = rows.join(self.tasks, TASK, "left")
        ordered = rows.repartition(TASK).sortWithinPartitions(*order)
        return ordered.mapInArrow(infer, st.StructType(out))

    @property
    def workers(self) -> DataFrame:
        """Return a frame with the skill and, if any, the confusion matrix of each worker.

        ``confusion[truth][label]`` is P(label | truth).
        """
        return describe_workers(self.method)

    def write(self) -> MethodWriter:
        return MethodWriter(self)

    @classmethod
    def read(cls) -> MethodReader:
        return MethodReader(cls)


def fix_seed(method: Aggregator) -> Aggregator:
    """Give the method a seed if it has none: all ranks must draw the same numbers."""
    if getattr(method, "random_state", 0) is None:
        method.set_params(random_state=secrets.randbelow(1 << 31))
    return method


def is_remote(spark: SparkSession) -> bool:
    """Return whether the session is one of Spark Connect, which has no barriers."""
    return not hasattr(spark, "_jsparkSession")


def count_slots(spark: SparkSession) -> int:
    """Count how many Spark tasks can run at once; the default parallelism may be set to more."""
    context: Any = spark.sparkContext._jsc.sc()
    profile = context.resourceProfileManager().defaultResourceProfile()
    return max(int(context.maxNumConcurrentTasks(profile)), 1)


def count_cores(spark: SparkSession) -> int:
    """Count how many Spark tasks are worth their while."""
    if is_remote(spark):
        return int(spark.range(1 << 20).selectExpr("spark_partition_id() AS p").distinct().count())
    return int(spark.sparkContext.defaultParallelism) // int(
        spark.conf.get("spark.task.cpus", "1") or 1
    )
