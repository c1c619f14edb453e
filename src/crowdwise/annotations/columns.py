"""What the table stores: columns checked and grouped by task, their parts, votes and cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from crowdwise import compiled
from crowdwise.annotations.names import as_names, require_unique
from crowdwise.errors import AnnotationError, ParameterError, explain, plural
from crowdwise.typing import Array, Floats, Indices, Ints, Names

ROWS_AT_ONCE = 1 << 20
TIE = 1e-9  # classes closer than this to the best one are tied with it, as in _native.c

Table = TypeVar("Table", bound="Columns")


@dataclass(frozen=True)
class Cells:
    """Rows of (worker, label) pairs with values; ``code = worker * n_labels + label``."""

    indptr: Ints
    code: Ints
    value: Floats | None

    @property
    def n_tasks(self) -> int:
        return len(self.indptr) - 1

    def matrix(self, start: int, stop: int, n_codes: int) -> csr_array:
        """The rows from ``start`` to ``stop`` as a scipy matrix."""
        low, high = self.indptr[start], self.indptr[stop]
        value = np.ones(high - low) if self.value is None else self.value[low:high]
        parts = (value, self.code[low:high], self.indptr[start : stop + 1] - low)
        return csr_array(parts, shape=(stop - start, n_codes))


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """What :class:`~crowdwise.Annotations` stores; its docstring explains each column."""

    tasks: Array
    workers: Array
    classes: Array
    indptr: Ints
    worker: Ints
    label: Ints
    weight: Floats | None = None
    time: Array | None = None
    soft: Floats | None = None
    gold: Ints | None = None
    score: Floats | None = None
    declined: Ints | None = None
    about_workers: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def n_annotations(self) -> int:
        return len(self.label)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_tasks, self.n_workers

    @property
    def redundancy(self) -> Ints:
        """Annotations per task."""
        return np.diff(self.indptr)

    @property
    def task(self) -> Ints:
        """Running number of each annotation's task."""
        return np.repeat(np.arange(self.n_tasks, dtype=np.int32), self.redundancy)

    def per_annotation(self) -> dict[str, Array | None]:
        """The columns that have one entry per annotation."""
        return {
            "worker": self.worker,
            "label": self.label,
            "weight": self.weight,
            "time": self.time,
            "soft": self.soft,
            "score": self.score,
        }

    def __getitem__(self, rows: Indices) -> Self:
        """The tasks at ``rows``: a number, slice, mask or array of numbers."""
        chosen = np.atleast_1d(np.arange(self.n_tasks)[rows])
        size = self.redundancy[chosen]
        indptr = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        start = np.repeat(self.indptr[chosen] - indptr[:-1], size)
        gold = None if self.gold is None else self.gold[chosen]
        kept = {"tasks": self.tasks[chosen], "indptr": indptr, "gold": gold}
        if self.declined is not None:
            place = np.full(self.n_tasks, -1, dtype=np.int32)
            place[chosen] = np.arange(len(chosen))
            moved = np.column_stack([place[self.declined[:, 0]], self.declined[:, 1]])
            kept["declined"] = moved[moved[:, 0] >= 0]
        return replace(self, **freeze({**kept, **self._take(start + np.arange(indptr[-1]))}))

    def filter(self, mask: ArrayLike) -> Self:
        """The annotations where ``mask`` is true; all tasks, workers and classes stay."""
        mask = np.asarray(mask, dtype=bool)
        if mask.shape != (self.n_annotations,):
            raise ParameterError(
                f"The mask has shape {mask.shape}.\n"
                f"  expected: one true or false per annotation ({self.n_annotations:,})"
            )
        before = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
        return replace(self, **freeze({"indptr": before[self.indptr], **self._take(mask)}))

    def _take(self, at: Array) -> dict[str, Array | None]:
        return {k: None if own is None else own[at] for k, own in self.per_annotation().items()}

    @cached_property
    def cells(self) -> Cells:
        """The sparse matrix tasks x (worker, label) that every aggregator works on."""
        return to_cells(self)

    def votes(self) -> Floats:
        """Weight of the labels of each class, shape (n_tasks, n_classes)."""
        # A block of tasks at a time, to save memory.
        n_classes = self.n_classes
        votes = np.zeros((self.n_tasks, n_classes))
        indptr, start = self.indptr, 0
        while start < self.n_tasks:
            stop = int(np.searchsorted(indptr, indptr[start] + ROWS_AT_ONCE, side="right")) - 1
            stop = min(max(stop, start + 1), self.n_tasks)
            low, high = indptr[start], indptr[stop]
            task = np.repeat(np.arange(stop - start), np.diff(indptr[start : stop + 1]))
            weight = None if self.weight is None else self.weight[low:high]
            if self.soft is None:
                cell = task * n_classes + self.label[low:high]
                flat = np.bincount(cell, weight, minlength=(stop - start) * n_classes)
                votes[start:stop] = flat.reshape(stop - start, n_classes)
            else:
                value = self.soft[low:high].astype(np.float64)
                scaled = value if weight is None else value * weight[:, None]
                np.add.at(votes[start:stop], task, scaled)
            start = stop
        return votes

    def shares(self) -> Floats:
        """Each task's share of labels, uniform where it has none."""
        return normalize_votes(self.votes())


def freeze(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns themselves, no longer writeable."""
    for column in columns.values():
        if isinstance(column, np.ndarray) and column.flags.owndata:
            column.flags.writeable = False
    return columns


def to_cells(table: Columns) -> Cells:
    """One cell per annotation, or one per class of a soft annotation."""
    n_classes = max(table.n_classes, 1)
    if table.n_workers * n_classes > np.iinfo(np.int32).max:
        raise AnnotationError(
            explain(
                f"{table.n_workers:,} workers with {n_classes:,} classes are too many.",
                expected="workers x classes below 2**31",
                fix="merge rare classes, or drop workers with few annotations",
            )
        )
    code = table.worker.astype(np.int32) * np.int32(n_classes)
    if table.soft is None:
        code += table.label.astype(np.int32)
        weight = table.weight
        value = None if weight is None else weight.astype(np.float64)
        return Cells(table.indptr, code, value)
    spread = code[:, None] + np.arange(n_classes, dtype=np.int32)
    value = table.soft.astype(np.float64)
    if table.weight is not None:
        value = value * table.weight[:, None]
    return Cells(table.indptr * n_classes, spread.reshape(-1), value.reshape(-1))


def normalize_votes(votes: Floats) -> Floats:
    """Scale each row to sum to one, uniform where it is empty."""
    total = votes.sum(axis=1, keepdims=True)
    uniform = 1.0 / max(votes.shape[1], 1)
    return np.divide(votes, total, out=np.full_like(votes, uniform), where=total > 0)


def tied(shares: Floats) -> Array:
    """Which classes are as good as the best one of each task."""
    return shares >= shares.max(axis=1, keepdims=True) - TIE


def drop_weightless(data: Table) -> Table:
    """The annotations that count: those of weight 0 say nothing. All names stay."""
    if data.weight is None or (data.weight > 0).all():
        return data
    return data.filter(data.weight > 0)


def keep_counting(data: Table, purpose: str = "learn from") -> Table:
    """The annotations that count; refuses a table without any."""
    if not data.n_annotations or (data.weight is not None and not (data.weight > 0).any()):
        raise AnnotationError(
            explain(
                f"There are no annotations to {purpose}.",
                found=f"{data.n_annotations:,} of weight 0" if data.n_annotations else "",
                expected="at least one (task, worker, label) that counts",
            )
        )
    return drop_weightless(data)


def find_labeled(data: Columns) -> Array:
    """Which tasks have a label that counts."""
    if data.weight is None:
        return data.redundancy > 0
    weight: Array = np.bincount(data.task, data.weight, minlength=data.n_tasks)
    return weight > 0


def group_by_task(
    task: ArrayLike,
    worker: ArrayLike,
    label: ArrayLike,
    *,
    tasks: Names | None = None,
    workers: Names | None = None,
    classes: Names | None = None,
    weight: ArrayLike | None = None,
    time: ArrayLike | None = None,
    soft: ArrayLike | None = None,
    gold: ArrayLike | None = None,
    score: ArrayLike | None = None,
    declined: Ints | None = None,
    notes: tuple[str, ...] = (),
) -> Columns:
    """Check integer columns and sort them by task, keeping the order within a task."""
    columns = {"task": as_codes(task, "task"), "worker": as_codes(worker, "worker")}
    columns["label"] = as_codes(label, "label")
    for name, column in (("weight", weight), ("time", time), ("soft", soft), ("score", score)):
        if column is not None:
            columns[name] = np.asarray(column)
    _check_lengths(columns)
    _refuse_unusable(columns)
    present = columns["label"] >= 0
    if not present.all():
        columns = {name: column[present] for name, column in columns.items()}
    names = {
        "tasks": _name_codes("task", tasks, columns["task"]),
        "workers": _name_codes("worker", workers, columns["worker"]),
        "classes": _name_codes("label", classes, columns["label"]),
    }
    n_tasks, n_classes = len(names["tasks"]), len(names["classes"])
    indptr, columns = _sort_by_task(columns, n_tasks)
    columns["worker"] = columns["worker"].astype(np.int32, copy=False)
    columns["label"] = columns["label"].astype(np.min_scalar_type(-max(n_classes, 1)), copy=False)
    columns |= _as_floats(columns, n_classes)
    known = None if gold is None else _check_gold(gold, n_tasks, n_classes)
    given = (task, worker, label, tasks, workers, classes, time, score)
    own = {name: _copy_if_given(column, given) for name, column in {**names, **columns}.items()}
    return Columns(
        **freeze({**own, "indptr": indptr, "gold": known, "declined": declined}), notes=notes
    )


def _sort_by_task(columns: dict[str, Array], n_tasks: int) -> tuple[Ints, dict[str, Array]]:
    """Where each task's annotations begin, and the other columns in the order of the tasks."""
    task = columns.pop("task").astype(np.int32, copy=False)
    indptr = np.zeros(n_tasks + 1, dtype=np.int64)
    np.cumsum(np.bincount(task, minlength=n_tasks), out=indptr[1:])
    if len(task) and (task[1:] < task[:-1]).any():
        order = _order_by(task, indptr)
        columns = {name: column[order] for name, column in columns.items()}
    return indptr, columns


def as_codes(column: ArrayLike, role: str) -> Ints:
    """The column as integers, or an error that says what they are."""
    array = np.asarray(column)
    if array.dtype.kind in "iu" and array.ndim == 1:
        return array
    if array.ndim == 1 and array.size == 0:
        return array.astype(np.int32)
    raise AnnotationError(
        explain(
            f"The {role} column holds {array.dtype} in {plural(array.ndim, 'dimension')}.",
            expected="integers that count from zero",
            fix="use Annotations.from_frame for columns of names",
        )
    )


def _copy_if_given(column: Array, given: tuple[object, ...]) -> Array:
    """The column, copied where its memory is the caller's, who may write to it."""
    ours = column.flags.owndata and not any(column is one for one in given)
    return column if ours else column.copy()


def _check_gold(gold: ArrayLike, n_tasks: int, n_classes: int) -> Ints:
    codes = as_codes(gold, "gold")
    bad = (codes < -1) | (codes >= n_classes)
    if len(codes) != n_tasks or bad.any():
        raise AnnotationError(
            explain(
                f"The gold column does not fit {n_tasks:,} tasks and {n_classes:,} classes.",
                first=f"task {int(bad.argmax())}: {int(codes[bad.argmax()])}" if bad.any() else "",
                found=f"{len(codes):,} values" if len(codes) != n_tasks else "",
                expected="for each task the number of a class, or -1 where it is unknown",
            )
        )
    return codes.astype(np.int32)


def _name_codes(role: str, names: Names | None, codes: Ints) -> Array:
    size = int(codes.max()) + 1 if len(codes) else 0
    if len(codes) and codes.min() < 0:
        raise AnnotationError(f"The {role} column has negative numbers.\n  expected: 0 or more")
    if names is None:
        return np.arange(size)
    known = require_unique(as_names(names), role)
    if len(known) < size:
        raise AnnotationError(
            f"The {role} column goes up to {size - 1}, but only {len(known):,} have names.\n"
            f"  expected: a name for every number"
        )
    return known


def _check_lengths(columns: dict[str, Array]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise AnnotationError(
            explain(
                "The columns have different lengths.",
                found=", ".join(f"{name} {length:,}" for name, length in lengths.items()),
                expected="one value per annotation in each",
            )
        )


def _refuse_unusable(columns: dict[str, Array]) -> None:
    """Refuse weights and soft labels that are negative or not finite."""
    for name in [name for name in ("weight", "soft") if name in columns]:
        values = columns[name].astype(np.float32)
        bad = ~(np.isfinite(values) & (values >= 0))
        bad[columns["label"] < 0] = False
        if bad.any():
            row = np.argwhere(bad)[0][0]
            raise AnnotationError(
                explain(
                    f"{int(bad.sum()):,} of {values.size:,} values of {name} cannot be used.",
                    first=f"row {row + 1:,}: {values[row].tolist()}",
                    expected="finite numbers of 0 or more",
                    fix=f"correct these values of {name}, or drop these rows",
                )
            )


def _as_floats(columns: dict[str, Array], n_classes: int) -> dict[str, Array]:
    kept = {"weight", "soft"} & columns.keys()
    checked = {name: columns[name].astype(np.float32) for name in kept}
    if "soft" in checked:
        soft = checked["soft"]
        total = soft.sum(axis=1, keepdims=True) if soft.ndim == 2 else None
        if total is None or soft.shape[1] != n_classes or not (total > 0).all():
            raise AnnotationError(
                explain(
                    f"The soft labels have shape {soft.shape}.",
                    expected=f"a distribution over {n_classes} classes for every annotation",
                )
            )
        checked["soft"] = soft / total
    return checked


def _order_by(task: Ints, indptr: Ints) -> Ints:
    if compiled.native is None or len(task) > np.iinfo(np.uint32).max:
        return np.argsort(task, kind="stable")
    order = np.empty(len(task), dtype=np.uint32)
    compiled.native.group(np.ascontiguousarray(task), indptr[:-1].copy(), order)
    return order
