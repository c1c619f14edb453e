"""Labels of a frame's tasks under a fitted model, partition by partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.annotations.grouping import find_words, is_word
from crowdwise.base import Aggregator
from crowdwise.errors import AnnotationError, explain
from crowdwise.spark.rows import (
    LABEL,
    TASK,
    WEIGHT,
    WORKER,
    Batches,
    find_changes,
    gather_rows,
    is_missing,
    look_up,
)
from crowdwise.spark.tasks import hand_out, keeps_tasks, name_column
from crowdwise.typing import Array, Floats

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 1 << 19
UNKNOWN = "unknown worker"


def infer_rows(
    model: Aggregator, unknown_workers: str, names: list[str]
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Make the function applied to a partition's rows, which Spark has sorted by task.

    ``names`` are the columns for the task, the label, its probability and that of every
    class; the last one is optional.
    """

    def infer(batches: Batches) -> Iterator[pa.RecordBatch]:
        for rows in cut_between_tasks(gather_rows(batches, ROWS_AT_ONCE)):
            yield from infer_tasks(model, unknown_workers, names, rows)

    return infer


def cut_between_tasks(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables cut between two tasks."""
    import pyarrow

    held = None
    for some in tables:
        table = some if held is None else pyarrow.concat_tables([held, some]).combine_chunks()
        last = int(np.flatnonzero(find_changes(table.column(TASK)))[-1])
        if last:
            yield table.slice(0, last)
        held = table.slice(last)
    if held is not None:
        yield held


def infer_tasks(
    model: Aggregator, unknown_workers: str, names: list[str], rows: pa.Table
) -> Iterator[pa.RecordBatch]:
    import pyarrow

    changes = find_changes(rows.column(TASK))
    place = np.flatnonzero(changes)
    tasks = rows.column(TASK).take(place).combine_chunks()
    if tasks.null_count:
        what = "The task is missing in some rows."
        raise AnnotationError(explain(what, fix="leave them out: frame.dropna(subset=[…])"))
    votes = as_annotations(model, rows, np.cumsum(changes) - 1, len(place))
    if keeps_tasks(model):
        model = hand_out(model, rows.column(name_column(model)).take(place).combine_chunks())
    posterior = model.predict_proba(votes, unknown_workers=unknown_workers).to_numpy()
    chosen = model._choose(posterior)
    classes = pyarrow.array(model.classes_.tolist(), type=rows.column(LABEL).type)
    label = classes.take(pyarrow.array(chosen, mask=chosen < 0))
    columns = [tasks, label, pyarrow.array(posterior.max(axis=1))]
    if len(names) > len(columns):
        columns.append(as_maps(posterior, classes))
    table = pyarrow.Table.from_arrays(columns, names=names)
    yield from table.to_batches(max_chunksize=1 << 16)


def as_annotations(model: Aggregator, rows: pa.Table, task: Array, n_tasks: int) -> Annotations:
    """Return the rows that count as annotations; tasks are numbers, unlabeled ones included."""
    import pyarrow

    columns = {name: rows.column(name).combine_chunks() for name in (WORKER, LABEL)}
    label = look_up(columns[LABEL], model.classes_)
    worker = look_up(columns[WORKER], model.workers_)
    weight = rows.column(WEIGHT).to_numpy() if WEIGHT in rows.column_names else None
    asked = np.ones(len(label), dtype=bool) if weight is None else weight != 0
    counts = asked & refuse_unknown(columns[LABEL], label, model.classes_, asked)
    if weight is not None and not ((weight > 0) & np.isfinite(weight))[counts].all():
        what = "The weight is missing, negative or infinite in some rows."
        fix = "leave them out, or give them a weight of 0"
        raise AnnotationError(explain(what, expected="numbers of 0 or more", fix=fix))
    if columns[WORKER].filter(pyarrow.array(counts)).null_count:
        what = "The worker is missing in some rows that have a label."
        raise AnnotationError(explain(what, fix="leave them out: frame.dropna(subset=[…])"))
    workers = model.workers_.astype(object)
    if (worker < 0).any():
        worker = np.where(worker < 0, len(workers), worker)
        workers = np.array([*workers, UNKNOWN], dtype=object)
    return Annotations.from_codes(
        task[counts], worker[counts], label[counts], tasks=np.arange(n_tasks), workers=workers,
        classes=model.classes_, weight=None if weight is None else weight[counts],
    )  # fmt: skip


def refuse_unknown(labels: pa.Array, code: Array, classes: Array, asked: Array) -> Array:
    """Return which labels are classes; refuse those that are neither classes nor missing.

    Only labels that are ``asked`` about have to be known.
    """
    known = code >= 0
    strange = asked & ~known
    if not strange.any():
        return known
    words = find_words("auto", [])
    for name in set(labels.filter(strange).to_pylist()):
        if not (is_missing(name) or (isinstance(name, str) and is_word(name, words))):
            raise AnnotationError.unknown(
                "label",
                n_bad=int(strange.sum()),
                n_rows=len(known),
                first=f"label={name!r}",
                known=list(classes),
                fix="fit again with these labels, or drop the rows that name them",
            )
    return known


def as_maps(posterior: Floats, classes: pa.Array) -> pa.MapArray:
    """Return the probability of every class by name, one map per task."""
    import pyarrow

    n_tasks, n_classes = posterior.shape
    offsets = np.arange(0, (n_tasks + 1) * n_classes, n_classes, dtype=np.int32)
    keys = classes.take(pyarrow.array(np.tile(np.arange(n_classes), n_tasks)))
    return pyarrow.MapArray.from_arrays(offsets, keys, pyarrow.array(posterior.ravel()))
