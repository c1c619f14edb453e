"""How annotations lie in memory, and how parts of them are cut out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from crowdwise.annotations.names import as_names, unique_names
from crowdwise.compiled import native
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.typing import Array, Floats, Ints

if TYPE_CHECKING:
    from crowdwise.annotations.table import Annotations

PER_ANNOTATION = ("worker", "label", "weight", "time", "soft")
COLUMNS = ("tasks", "workers", "classes", "indptr", *PER_ANNOTATION, "gold")


def group_by_task(
    task: Any,
    worker: Any,
    label: Any,
    tasks: Any,
    workers: Any,
    classes: Any,
    weight: Any,
    time: Any,
    soft: Any,
    gold: Any,
) -> dict[str, Any]:
    """Check integer columns and sort them by task, keeping the order within a task."""
    columns = {"task": as_codes(task, "task"), "worker": as_codes(worker, "worker")}
    columns["label"] = as_codes(label, "label")
    for name, column in (("weight", weight), ("time", time), ("soft", soft)):
        if column is not None:
            columns[name] = np.asarray(column)
    _check_lengths(columns)
    _refuse_unusable(columns)
    present = columns["label"] >= 0
    if not present.all():
        columns = {name: column[present] for name, column in columns.items()}
    names = {
        "tasks": _names("task", tasks, columns["task"]),
        "workers": _names("worker", workers, columns["worker"]),
        "classes": _names("label", classes, columns["label"]),
    }
    grouped = columns.pop("task").astype(np.int32, copy=False)
    indptr = np.zeros(len(names["tasks"]) + 1, dtype=np.int64)
    np.cumsum(np.bincount(grouped, minlength=len(names["tasks"])), out=indptr[1:])
    if len(grouped) and (grouped[1:] < grouped[:-1]).any():
        order = _order_by(grouped, indptr)
        columns = {name: column[order] for name, column in columns.items()}
    columns["worker"] = columns["worker"].astype(np.int32, copy=False)
    columns["label"] = columns["label"].astype(_smallest(len(names["classes"])), copy=False)
    columns |= _as_floats(columns, len(names["classes"]))
    known = None if gold is None else _gold(gold, len(names["tasks"]), len(names["classes"]))
    given = (task, worker, label, tasks, workers, classes, time)
    own = {name: _own(column, given) for name, column in {**names, **columns}.items()}
    return _frozen({**own, "indptr": indptr, "gold": known})


def as_codes(column: Any, role: str) -> Ints:
    """The column as integers, or an error that shows the first value that is none."""
    array = np.asarray(column)
    if array.dtype.kind in "iu" and array.ndim == 1:
        return array
    if array.ndim == 1 and array.size == 0:
        return array.astype(np.int32)
    raise AnnotationError(
        explain(
            f"The {role} column holds {array.dtype} in {array.ndim} dimension(s).",
            expected="integers that count from zero",
            fix="use Annotations.from_frame for columns of names",
        )
    )


def take_tasks(annotations: Annotations, rows: Any) -> dict[str, Any]:
    """The fields of the table that has only these tasks."""
    chosen = np.atleast_1d(np.arange(annotations.n_tasks)[rows])
    size = annotations.redundancy[chosen]
    indptr = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    start = np.repeat(annotations.indptr[chosen] - indptr[:-1], size)
    at = start + np.arange(indptr[-1])
    gold = None if annotations.gold is None else annotations.gold[chosen]
    kept = {"tasks": annotations.tasks[chosen], "indptr": indptr, "gold": gold}
    return _frozen({**kept, **_rows(annotations, at)})


def take_rows(annotations: Annotations, mask: Array) -> dict[str, Any]:
    """The fields of the table that has only these annotations."""
    before = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
    return _frozen({"indptr": before[annotations.indptr], **_rows(annotations, mask)})


def count_repeats(indptr: Ints, worker: Ints, n_workers: int) -> int:
    """Annotations beyond the first of the same worker on the same task."""
    ones = np.ones(len(worker), dtype=np.int8)
    shape = (len(indptr) - 1, max(n_workers, 1))
    pairs = csr_array((ones, worker.copy(), indptr.copy()), shape=shape)
    pairs.sum_duplicates()
    return len(worker) - pairs.nnz


def keep_repeats(annotations: Annotations, keep: str) -> Array:
    """Which annotations stay when each worker may label a task only once."""
    if keep not in ("first", "last", "majority"):
        raise ParameterError(f"keep={keep!r} is unknown.\n  expected: first, last or majority")
    task, worker, label = annotations.task, annotations.worker, annotations.label
    place = np.arange(len(label)) if annotations.time is None else annotations.time
    order = np.lexsort((np.arange(len(label)), place, worker, task))
    pair_changes = (np.diff(task[order]) != 0) | (np.diff(worker[order]) != 0)
    group = np.concatenate([[0], np.cumsum(pair_changes)])[: len(label)]
    key: Floats | Ints = np.arange(len(label))  # within a pair, the least key stays
    if keep == "last":
        key = -key
    elif keep == "majority":
        cell = group * annotations.n_classes + label[order]
        _, inverse, times = np.unique(cell, return_inverse=True, return_counts=True)
        key = -times[inverse].astype(np.float64)
    best = np.lexsort((np.arange(len(label)), key, group))
    mask = np.zeros(len(label), dtype=bool)
    mask[order[best[np.unique(group, return_index=True)[1]]]] = True
    return mask


def at_most(indptr: Ints, redundancy: int, random_state: Any) -> Array:
    """A random ``redundancy`` annotations of every task."""
    if redundancy < 1:
        raise ParameterError(f"redundancy={redundancy} is too small.\n  expected: 1 or more")
    n = int(indptr[-1])
    task = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((check_random_state(random_state).random_sample(n), task))
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n) - indptr[:-1][task]
    return rank < redundancy


def cut(n: int, test_size: float, random_state: Any, what: str) -> tuple[Ints, Ints]:
    """Two sorted sets of numbers below ``n``, the second holding ``test_size`` of them."""
    n_test = round(n * test_size)
    if not 0 < n_test < n:
        raise ParameterError(
            f"test_size={test_size} leaves one side of {n:,} {what} empty.\n"
            "  expected: a fraction between 0 and 1 that leaves both sides some"
        )
    order = check_random_state(random_state).permutation(n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def same(a: Any, b: Any) -> bool:
    """Whether two optional columns are equal."""
    return (a is None) == (b is None) and (a is None or np.array_equal(a, b))


def _rows(annotations: Annotations, at: Array) -> dict[str, Any]:
    columns = {name: getattr(annotations, name) for name in PER_ANNOTATION}
    return {name: None if column is None else column[at] for name, column in columns.items()}


def _own(column: Array, given: tuple[Any, ...]) -> Array:
    """The column, copied where its memory is the caller's, who may write to it."""
    ours = column.flags.owndata and not any(column is one for one in given)
    return column if ours else column.copy()


def _gold(gold: Any, n_tasks: int, n_classes: int) -> Ints:
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


def _frozen(columns: dict[str, Any]) -> dict[str, Any]:
    for column in columns.values():
        if isinstance(column, np.ndarray) and column.flags.owndata:
            column.flags.writeable = False
    return columns


def _names(role: str, names: Any, codes: Ints) -> Array:
    size = int(codes.max()) + 1 if len(codes) else 0
    if len(codes) and codes.min() < 0:
        raise AnnotationError(f"The {role} column has negative numbers.\n  expected: 0 and up")
    if names is None:
        return np.arange(size)
    names = unique_names(as_names(names), role)
    if len(names) < size:
        raise AnnotationError(
            f"The {role} column goes up to {size - 1}, but only {len(names):,} names are given.\n"
            f"  expected: a name for every number"
        )
    return names


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
    """Refuse weights and chances of labels that are negative or no finite number."""
    for name in [name for name in ("weight", "soft") if name in columns]:
        values = columns[name].astype(np.float32)
        bad = ~(np.isfinite(values) & (values >= 0))
        bad[columns["label"] < 0] = False
        if bad.any():
            row = np.argwhere(bad)[0][0]
            raise AnnotationError(
                explain(
                    f"{int(bad.sum()):,} of {values.size:,} values of {name} are not usable.",
                    first=f"row {row + 1:,}: {values[row].tolist()}",
                    expected="finite numbers of 0 or more",
                    fix=f"mend these values of {name}, or drop these rows",
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
    compiled = native()
    if compiled is None or len(task) > np.iinfo(np.uint32).max:
        return np.argsort(task, kind="stable")
    order = np.empty(len(task), dtype=np.uint32)
    compiled.group(np.ascontiguousarray(task), indptr[:-1].copy(), order)
    return order


def _smallest(n_classes: int) -> Any:
    return np.min_scalar_type(-max(n_classes, 1))
