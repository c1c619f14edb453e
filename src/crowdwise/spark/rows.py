"""From rows of a Spark frame to blocks of tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from crowdwise.annotations import Cells
from crowdwise.annotations.pairs import encode
from crowdwise.inference.engines.ranks import CrowdNames
from crowdwise.typing import Array, Floats, Ints

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Batches: TypeAlias = "Iterable[pa.RecordBatch]"
ROWS_AT_ONCE = 1 << 18  # to encode at once, since the lookup table is built each time
BUCKET, TASK, WORKER, LABEL, WEIGHT = "bucket", "task", "worker", "label", "weight"


def gather_rows(batches: Batches, n_rows: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """Yield Arrow tables of about as many rows, from the small batches that Spark sends."""
    import pyarrow

    held, count = [], 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= n_rows:
            yield pyarrow.Table.from_batches(held).combine_chunks()
            held, count = [], 0
    if count:
        yield pyarrow.Table.from_batches(held).combine_chunks()


def deal_out(placed: DataFrame, n_buckets: int, n_ranks: int) -> DataFrame:
    """Put the rows of each rank in one partition, sorted so that every task is contiguous."""
    from pyspark.sql import functions as sf

    rank = sf.floor(sf.col(BUCKET) * sf.lit(n_ranks) / sf.lit(n_buckets)).cast("int")
    order = [name for name in (BUCKET, TASK, WORKER, LABEL, WEIGHT) if name in placed.columns]
    return placed.repartitionById(n_ranks, rank).sortWithinPartitions(*order)


def buckets_of(rank: int, n_ranks: int, n_buckets: int) -> range:
    """Return the buckets of a rank."""
    return range(-(-rank * n_buckets // n_ranks), -(-(rank + 1) * n_buckets // n_ranks))


def is_missing(name: object) -> bool:
    """Return whether a name is missing."""
    return name is None or (isinstance(name, float) and math.isnan(name))


def look_up(column: pa.Array, names: Array) -> Ints:
    """Return the number of each name; -1 for unknown ones."""
    import pyarrow
    from pyarrow import compute

    known = pyarrow.array(names.tolist(), type=column.type)
    return compute.fill_null(compute.index_in(column, value_set=known), -1).to_numpy()


def find_changes(column: pa.ChunkedArray) -> Array:
    """Return where a value differs from the one before, including the first."""
    from pyarrow import compute

    changed = np.ones(len(column), dtype=bool)
    column = column.combine_chunks()
    if len(column) > 1:
        differs = compute.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        changed[1:] = differs.to_numpy(zero_copy_only=False)
    return changed


@dataclass(frozen=True, eq=False)
class BucketRows:
    """Annotations in the order of their buckets and tasks, as numbers."""

    bucket: Ints  # (task,)
    start: Ints  # (task + 1,): its first annotation
    code: Ints  # (annotation,)
    weight: Floats | None
    names: Sequence[pa.Array] = ()  # of the tasks, if they were asked for

    def blocks(self, numbers: range) -> list[Cells]:
        """Return the cells of each of these buckets; tasks without rows are left out."""
        edges = np.searchsorted(self.bucket, np.arange(numbers.start, numbers.stop + 1))
        return [self._cells(low, high) for low, high in pairwise(edges.tolist())]

    def _cells(self, low: int, high: int) -> Cells:
        begin, end = self.start[low], self.start[high]
        weight = None if self.weight is None else self.weight[begin:end]
        return Cells(self.start[low : high + 1] - begin, self.code[begin:end], weight)


def read_rows(batches: Batches, crowd: CrowdNames, *, named: bool = False) -> BucketRows:
    """Read rows that Spark has sorted by bucket and task; names become numbers."""
    buckets, starts, codes, weights, names, seen = [], [], [], [], [], 0
    last: tuple[int, object] | None = None
    pairs = None if crowd.pairs.whole else crowd.pairs
    for table in gather_rows(batches):
        bucket, task = table.column(BUCKET).to_numpy(), table.column(TASK)
        first = find_changes(task)
        first[1:] |= bucket[1:] != bucket[:-1]
        first[0] = last != (int(bucket[0]), task[0].as_py())
        last = int(bucket[-1]), task[-1].as_py()
        worker = look_up(table.column(WORKER).combine_chunks(), crowd.workers)
        label = look_up(table.column(LABEL).combine_chunks(), crowd.classes)
        codes.append(encode(worker, label, len(crowd.classes), pairs))
        if WEIGHT in table.column_names:
            weights.append(table.column(WEIGHT).to_numpy())
        place = np.flatnonzero(first)
        buckets.append(bucket[place])
        if named:
            names.extend(task.take(place).chunks)
        starts.append(place + seen)
        seen += len(bucket)
    if not codes:
        return BucketRows(np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32), None)
    start = np.append(np.concatenate(starts), seen)
    weight = np.concatenate(weights) if weights else None
    return BucketRows(np.concatenate(buckets), start, np.concatenate(codes), weight, names)
