"""A fit in one barrier stage: every rank runs the same loop over its own blocks.

At each step, ranks only exchange a sum of tables, over their own sockets.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from crowdwise.base import Aggregator
from crowdwise.errors import CrowdwiseError
from crowdwise.inference.engines.group import gather
from crowdwise.inference.engines.ranks import CrowdNames, RankEngine
from crowdwise.inference.engines.record import Record, Recorder
from crowdwise.inference.engines.sockets import GroupError, SocketGroup
from crowdwise.spark.rows import TASK, Batches, buckets_of, read_rows
from crowdwise.spark.tasks import (
    keeps_tasks,
    leave_tasks,
    name_column,
    pack_tasks,
    unpack_tasks,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import BarrierTaskContext
    from pyspark.sql import DataFrame, Row

RESULT = "part int, kind string, content binary"
CHUNK = 1 << 24  # bytes of a model in one row
MODEL, WARNING, ERROR, TASKS = "model", "warning", "error", "tasks"


@dataclass(frozen=True)
class Job:
    """Everything that a rank is given."""

    crowd: CrowdNames
    method: Aggregator
    n_buckets: int
    n_ranks: int
    n_threads: int
    secret: bytes
    name: str  # of this fit, the same after a restart
    folder: str | None  # where sums are stored for a restart; each machine's own by default


def fit_in_barrier(dealt: DataFrame, job: Job) -> tuple[Aggregator, DataFrame | None]:
    """Return the fitted method, and a frame of what it learned for each task, or None.

    ``dealt`` are the rows of each rank.
    """
    made = dealt.mapInArrow(run_rank(job), RESULT, barrier=True)
    # Spark restarts a barrier stage only if another stage consumes its output.
    if not keeps_tasks(job.method):
        return take_result(made.repartition(1).collect()), None
    kept = made.repartition(job.n_ranks, "part").persist()
    try:
        method = take_result(kept.where(f"kind <> '{TASKS}'").collect())
    except Exception:
        kept.unpersist()
        raise
    kind, name = dealt.schema[TASK].dataType, name_column(method)
    return method, unpack_tasks(kept.where(f"kind = '{TASKS}'"), kind, name)


def run_rank(job: Job) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Make the function that a rank applies to its rows."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        import pyarrow
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        found = fit_rank(job, batches, context)
        for part, (kind, content) in enumerate(found):
            if context.partitionId() and kind != TASKS:
                continue  # the same on all ranks
            columns = {"part": [part], "kind": [kind], "content": [content]}
            schema = pyarrow.schema(
                [
                    ("part", pyarrow.int32()),
                    ("kind", pyarrow.string()),
                    ("content", pyarrow.binary()),
                ]
            )
            yield pyarrow.RecordBatch.from_pydict(columns, schema=schema)

    return run


def fit_rank(job: Job, batches: Batches, context: BarrierTaskContext) -> list[tuple[str, bytes]]:
    """Meet the other ranks, fit together, and return the model with its warnings."""
    rank, infos = context.partitionId(), context.getTaskInfos()
    hosts = [info.address.rsplit(":", 1)[0].strip("[]") for info in infos]
    host = "127.0.0.1" if len(set(hosts)) == 1 else hosts[rank]
    numbers = buckets_of(rank, job.n_ranks, job.n_buckets)
    rows = read_rows(batches, job.crowd, named=keeps_tasks(job.method))
    cells = rows.blocks(numbers)
    group = SocketGroup.meet(rank, len(infos), host, job.secret, context.allGather)
    home = Path(job.folder or tempfile.gettempdir()) / f"crowdwise-{job.name}"
    keeps = (0 if job.folder else hosts.index(hosts[rank])) == rank
    try:
        recorder = Recorder(group, Record(home / "sums.bin") if keeps else None)
        engine = RankEngine(job.crowd, cells, numbers.start, job.n_threads, group, recorder)
        found = fit_method(job.method, engine, rows.names)
        gather(group, 0)  # no rank leaves before all are done
    finally:
        group.close()
    if keeps:
        shutil.rmtree(home, ignore_errors=True)
    return found


def fit_method(
    method: Aggregator, engine: RankEngine, names: Sequence[pa.Array]
) -> list[tuple[str, bytes]]:
    """Fit and return the method, its warnings, and what it learned for each of the rank's tasks.

    ``names`` are those of these tasks. An error of ours is returned alone: a restart would not
    fix it.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            method.fit_engine(engine, engine.crowd.classes)
        except GroupError:
            raise
        except CrowdwiseError as error:
            return [(ERROR, pickle.dumps(error))]
    kept: list[tuple[str, bytes]] = []
    if keeps_tasks(method):
        own = leave_tasks(method, engine)
        if names:
            kept = [(TASKS, content) for content in pack_tasks(names, own)]
    warned = [(WARNING, pickle.dumps((w.category, str(w.message)))) for w in caught]
    dumps: Any = cloudpickle.dumps  # even for a class that only the driver can import
    content = dumps(method)
    parts = [content[i : i + CHUNK] for i in range(0, len(content), CHUNK)]
    return [*warned, *((MODEL, part) for part in parts), *kept]


def take_result(rows: list[Row]) -> Aggregator:
    """Return the model sent by rank 0, and show its warnings."""
    content = []
    for row in sorted(rows, key=lambda row: row.part):
        if row.kind == ERROR:
            raise pickle.loads(row.content)
        if row.kind == WARNING:
            category, message = pickle.loads(row.content)
            warnings.warn(message, category, stacklevel=5)
        else:
            content.append(bytes(row.content))
    return pickle.loads(b"".join(content))
