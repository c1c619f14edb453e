"""A fit as one Spark job per step, for Spark Connect and serverless: no barrier, no sockets.

The loop runs where the session is. Blocks of tasks are rows of a frame that Spark keeps; every
step sends the tables to them and adds the sums that come back, in the same order as ranks do.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdwise.annotations import Cells
from crowdwise.inference.engines.blocks import Run
from crowdwise.inference.engines.kernels import NO_CELLS, Block
from crowdwise.inference.engines.ranks import CrowdNames, CrowdSweeps, cut_row
from crowdwise.inference.engines.sweeps import Edges, Work
from crowdwise.spark.rows import BUCKET, Batches, read_rows
from crowdwise.typing import Array, Floats, Ints

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

BLOCKS = {BUCKET: "int", "n_tasks": "long", "start": "binary", "code": "binary", "value": "binary"}
FOUND = {BUCKET: "int", "found": "binary"}
SUMS = {"level": "int", "place": "long", "total": "binary"}
Shapes = Sequence[tuple[int, ...]]


def schema_of(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def as_batch(columns: dict[str, str], row: Sequence[object]) -> pa.RecordBatch:
    """Return one row in the form that Spark expects."""
    import pyarrow

    kinds = {"int": pyarrow.int32(), "long": pyarrow.int64(), "binary": pyarrow.binary()}
    arrays = [pyarrow.array([v], kinds[k]) for v, k in zip(row, columns.values(), strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))


def encode_blocks(dealt: DataFrame, crowd: CrowdNames) -> DataFrame:
    """Return a frame with a row for every bucket that has tasks: its cells, as bytes."""

    def encode(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = read_rows(batches, crowd)
        for bucket in np.unique(rows.bucket).tolist():
            (cells,) = rows.blocks(range(bucket, bucket + 1))
            start, value = cells.indptr.astype(np.int64), cells.value
            arrays = start, cells.code, value
            data = [None if array is None else array.tobytes() for array in arrays]
            yield as_batch(BLOCKS, [bucket, cells.n_tasks, *data])

    return dealt.mapInArrow(encode, schema_of(BLOCKS))


def read_block(row: dict[str, Any], label: Ints, n_classes: int, first: int) -> Block:
    start, code = np.frombuffer(row["start"], np.int64), np.frombuffer(row["code"], np.int32)
    value = None if row["value"] is None else np.frombuffer(row["value"], np.float64)
    return Block(Cells(start, code, value), label, None, n_classes, first)


@dataclass(frozen=True, eq=False)
class StepEngine(CrowdSweeps):
    """Blocks of tasks in a frame, made by :func:`encode_blocks`."""

    crowd: CrowdNames
    blocks: DataFrame
    first: dict[int, int]  # number of the first task of each block
    n_tasks: int
    n_threads: int | None = 1

    @classmethod
    def of(cls, crowd: CrowdNames, blocks: DataFrame) -> StepEngine:
        """Make the engine of a frame of blocks, which is read once."""
        first, seen = {}, 0
        for row in blocks.select(BUCKET, "n_tasks").orderBy(BUCKET).collect():
            first[row[BUCKET]], seen = seen, seen + row["n_tasks"]
        return cls(crowd, blocks, first, seen)

    def _cut(self, table_size: int) -> list[Edges]:
        raise NotImplementedError  # blocks stay in the frame

    def _load(self, edges: Edges) -> Block:
        raise NotImplementedError

    def gather_blocks(self, work: Callable[[Block], tuple[Array, ...]]) -> list[Array]:
        label, n_classes, first = self.pairs.label, self.n_classes, self.first
        nothing = work(Block(NO_CELLS, label, None, n_classes))

        def find(batches: Batches) -> Iterator[pa.RecordBatch]:
            for row in (row for batch in batches for row in batch.to_pylist()):
                block = read_block(row, label, n_classes, first[row[BUCKET]])
                yield as_batch(FOUND, [row[BUCKET], pickle.dumps(work(block))])

        rows = self.blocks.mapInArrow(find, schema_of(FOUND)).collect()
        found = [pickle.loads(row["found"]) for row in sorted(rows, key=lambda row: row[BUCKET])]
        return [np.concatenate(parts) for parts in zip(nothing, *found, strict=True)]

    def _sum(
        self, work: Work, shapes: Shapes, *, keeps: bool = False
    ) -> tuple[float, list[Floats]]:
        add = add_blocks(work, shapes, self.pairs.label, self.n_classes, self.first)
        found = self.blocks.mapInArrow(add, schema_of(SUMS)).collect()
        total = Run()
        for row in sorted(found, key=lambda row: row["place"] << row["level"]):
            total.append(row["level"], row["place"], (np.frombuffer(row["total"]).copy(),))
        (whole,) = total.total()
        return float(whole[0]), cut_row(whole[1:], shapes)


def add_blocks(
    work: Work, shapes: Shapes, label: Ints, n_classes: int, first: dict[int, int]
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Make the function that adds up the blocks of a partition, as far as consecutive."""
    place = {bucket: number for number, bucket in enumerate(first)}

    def add(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = [row for batch in batches for row in batch.to_pylist()]
        run = Run()
        for row in sorted(rows, key=lambda row: row[BUCKET]):
            total = np.zeros(1 + sum(int(np.prod(shape)) for shape in shapes))
            bucket = row[BUCKET]
            block = read_block(row, label, n_classes, first[bucket])
            total[0] = work(block, *cut_row(total[1:], shapes)) or 0.0
            run.append(0, place[bucket], (total,))
        for level, number, (total,) in run.nodes:
            yield as_batch(SUMS, [level, number, total.tobytes()])

    return add
