"""What a method keeps for each task, such as GLAD's ease: it stays with the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from crowdwise.base import Aggregator
from crowdwise.inference.engines.engine import Engine
from crowdwise.inference.engines.kernels import Block
from crowdwise.spark.rows import TASK, Batches
from crowdwise.typing import Floats

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

ROWS_AT_ONCE = 1 << 16
NOBODY = -1  # stands for all tasks in a model that has left theirs behind


def keeps_tasks(method: Aggregator) -> bool:
    """Return whether a method learns numbers for each task."""
    return getattr(type(method), "_task_rows", None) is not Aggregator._task_rows


def leave_tasks(method: Aggregator, engine: Engine) -> Floats:
    """Take the rows of a rank's tasks from a fitted method, which keeps only their average."""
    ((name, rows),) = method._task_rows().items()
    flat, first = rows.reshape(len(rows), -1), engine.own_tasks[0]

    def work(block: Block, total: Floats) -> None:
        total += flat[block.first - first :][: block.n_tasks].sum(axis=0)

    _, (total,) = engine.sum_blocks(work, [(int(np.prod(rows.shape[1:])),)])
    mean = (total / engine.n_tasks).reshape(1, *rows.shape[1:])
    method._restore({name: method._average_task(mean)[None]})
    method.tasks_ = np.array([NOBODY])
    method.posterior_ = np.full((1, engine.n_classes), 1.0 / engine.n_classes)
    return flat


def pack_tasks(names: Sequence[pa.Array], rows: Floats) -> Iterator[bytes]:
    """Yield tasks and their rows, some at a time, as bytes."""
    import pyarrow

    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), rows.shape[1])
    lists = lists.cast(pyarrow.list_(pyarrow.float64()))
    table = pyarrow.table({TASK: pyarrow.chunked_array(names), "rows": lists})
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield sink.getvalue().to_pybytes()


def unpack_tasks(packed: DataFrame, kind: DataType, name: str) -> DataFrame:
    """Return a frame of tasks, of a Spark type, and their rows, from a column ``content``."""
    from pyspark.sql import types as st

    def unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for content in (row for batch in batches for row in batch.column("content")):
            with pyarrow.ipc.open_stream(content.as_py()) as stream:
                for batch in stream:
                    yield batch.rename_columns([TASK, name])

    fields = [st.StructField(TASK, kind), st.StructField(name, st.ArrayType(st.DoubleType()))]
    return packed.select("content").mapInArrow(unpack, st.StructType(fields))


def name_column(method: Aggregator) -> str:
    """Name the column of rows after the method's attribute, without the underscore."""
    (name,) = method._task_rows()
    return str(name).rstrip("_")


def hand_out(method: Aggregator, column: pa.Array) -> Aggregator:
    """Return the method with the rows of some tasks, counted from 0; the average if missing."""
    ((name, average),) = method._task_rows().items()
    known = column.is_valid().to_numpy(zero_copy_only=False)
    rows = np.repeat(average, len(column), axis=0)
    values = column.filter(known).flatten().to_numpy(zero_copy_only=False)
    rows[known] = values.reshape(-1, *average.shape[1:])
    own = copy(method)
    own._restore({name: rows})
    own.tasks_ = np.arange(len(column))
    return own
