"""From rows to columns grouped by task; words that mean "no label"; notes on what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from crowdwise import compiled
from crowdwise.annotations.names import as_names, require_unique
from crowdwise.errors import AnnotationError, explain, plural
from crowdwise.typing import Array, Floats, Ints, Names

# What pandas, R, SQL, Python and spreadsheets write for missing values.
WORDS = frozenset(
    {
        "", "NA", "N/A", "n/a", "<NA>", "#NA", "#N/A", "#N/A N/A", "NaN", "nan", "-NaN", "-nan",
        "NaT", "None", "NULL", "Null", "null", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
        "#NULL!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#DIV/0!",
    }
)  # fmt: skip
TAKEN = "taken as missing"  # in every note about such words


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
) -> dict[str, Any]:
    """Check the columns and sort them by task, in the same order within a task."""
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
    columns["worker"] = columns["worker"].astype(np.int32, copy=False)
    columns["label"] = columns["label"].astype(np.min_scalar_type(-max(n_classes, 1)), copy=False)
    indptr, columns = _sort_by_task(columns, n_tasks)
    columns |= _as_floats(columns, n_classes)
    known = None if gold is None else _check_gold(gold, n_tasks, n_classes)
    given = (task, worker, label, tasks, workers, classes, time, score)
    own = {name: _copy_if_given(column, given) for name, column in {**names, **columns}.items()}
    whole = {**own, "indptr": indptr, "gold": known, "declined": declined}
    return {**freeze(whole), "notes": notes}


def _sort_by_task(columns: dict[str, Array], n_tasks: int) -> tuple[Ints, dict[str, Array]]:
    """Return where each task's annotations begin, and the other columns sorted by task."""
    task = columns.pop("task").astype(np.int32, copy=False)
    indptr = np.zeros(n_tasks + 1, dtype=np.int64)
    np.cumsum(np.bincount(task, minlength=n_tasks), out=indptr[1:])
    if len(task) and (task[1:] < task[:-1]).any():
        order = order_by(task, indptr)
        columns = {name: column[order] for name, column in columns.items()}
    return indptr, columns


def as_codes(column: ArrayLike, role: str) -> Ints:
    """Return the column as integers, or raise an error that says what it is."""
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
    """Copy a column if its memory is the caller's, who may write to it."""
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
                fix="give one class number for each task, -1 where it is unknown",
            )
        )
    return codes.astype(np.int32)


def _name_codes(role: str, names: Names | None, codes: Ints) -> Array:
    size = int(codes.max()) + 1 if len(codes) else 0
    if len(codes) and codes.min() < 0:
        raise AnnotationError(
            f"The {role} column has negative numbers.\n  expected: 0 or more"
            "\n  fix:      leave out rows without a name, or number from 0"
        )
    if names is None:
        return np.arange(size)
    known = require_unique(as_names(names), role)
    if len(known) < size:
        raise AnnotationError(
            f"The {role} column goes up to {size - 1}, but only {len(known):,} have names.\n"
            f"  expected: a name for every number"
            "\n  fix:      give a name for every number, or leave the names out"
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
                fix="give columns with one entry for each annotation",
            )
        )


def _refuse_unusable(columns: dict[str, Array]) -> None:
    """Refuse negative or non-finite weights and soft labels, and non-finite scores."""
    least = {"weight": 0.0, "soft": 0.0, "score": -np.inf}
    for name in [name for name in least if name in columns]:
        values = columns[name].astype(np.float64)
        bad = ~(np.isfinite(values) & (values >= least[name]))
        if name == "weight":
            bad = ~fit_single(values)
        bad[columns["label"] < 0] = False
        if bad.any():
            row = np.argwhere(bad)[0][0]
            raise AnnotationError(
                explain(
                    f"{int(bad.sum()):,} of {values.size:,} values of {name} cannot be used.",
                    first=f"row {row + 1:,}: {values[row].tolist()}",
                    expected="finite numbers" + " of 0 or more" * (least[name] == 0),
                    fix=f"correct these values of {name}, or drop these rows",
                )
            )


def fit_single(weight: Floats) -> Array:
    """Return which weights are valid: 0, or within single precision."""
    kind = np.finfo(np.float32)
    return (weight == 0) | ((weight >= kind.tiny) & (weight < kind.max))


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
                    fix="give one row per annotation and one column per class",
                )
            )
        checked["soft"] = soft / total
    return checked


def order_by(task: Ints, indptr: Ints) -> Ints:
    """Return row numbers grouped by task, in order; each task's rows begin at ``indptr``."""
    if compiled.native is None or len(task) > np.iinfo(np.uint32).max:
        return np.argsort(task, kind="stable")
    order = np.empty(len(task), dtype=np.uint32)
    compiled.native.group(np.ascontiguousarray(task), indptr[:-1].copy(), order)
    return order


def count_repeats(indptr: Ints, worker: Ints, n_workers: int) -> int:
    """Count the annotations that repeat one by the same worker on the same task."""
    ones, shape = np.ones(len(worker), dtype=np.int8), (len(indptr) - 1, max(n_workers, 1))
    pairs = csr_array((ones, worker.copy(), indptr.copy()), shape=shape)
    pairs.sum_duplicates()
    return len(worker) - int(pairs.nnz)


def freeze(columns: dict[str, Any]) -> dict[str, Any]:
    """Make columns read-only, and return them."""
    for column in columns.values():
        if isinstance(column, np.ndarray) and column.flags.owndata:
            column.flags.writeable = False
    return columns


class Aside(str):
    """A note on records that are not annotations: what happened to them, and how many.

    The records of a source are its annotations plus those counted in such notes.

    >>> note = Aside("canceled annotations left out", 1200)
    >>> note, note.n
    ('canceled annotations left out: 1,200', 1200)
    """

    __slots__ = ("n", "what")
    what: str
    n: int

    def __new__(cls, what: str, n: int) -> Self:
        note = super().__new__(cls, f"{what}: {n:,}")
        note.what, note.n = what, n
        return note

    def __getnewargs__(self) -> tuple[str, int]:  # type: ignore[override]
        return self.what, self.n


def count_aside(notes: Iterable[str]) -> int:
    """Count the records that the notes account for."""
    return sum(note.n for note in notes if isinstance(note, Aside))


def join_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Return each note once, with equal counts added up."""
    total: Counter[str] = Counter()
    for note in (notes := list(notes)):
        if isinstance(note, Aside):
            total[note.what] += note.n
    plain = dict.fromkeys(note for note in notes if not isinstance(note, Aside))
    return (*plain, *(Aside(what, n) for what, n in total.items()))


def is_word(cell: object, words: frozenset[str] = WORDS) -> bool:
    """Return whether a cell is one of these words, ignoring spaces around it."""
    return isinstance(cell, str) and cell.strip() in words


def find_words(missing: object, classes: Iterable[object] = ()) -> frozenset[str]:
    """Return words that mean "no label": those given, or the usual ones that are not classes."""
    if isinstance(missing, str) and missing == "auto":
        return WORDS - {name for name in classes if isinstance(name, str)}
    return frozenset(value.strip() for value in list_missing(missing) if isinstance(value, str))


def list_missing(missing: object) -> list[Any]:
    """List the values that mean "no label"."""
    return list(missing) if isinstance(missing, list | tuple | set | frozenset) else [missing]


def note_words(found: Counter[str], what: str = "labels") -> tuple[str, ...]:
    """Note how many of which words were read as missing, and how to keep them."""
    if not found:
        return ()
    in_order = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{word!r} {times:,}" for word, times in in_order)
    how = "missing=None in Python and --missing '' in a shell keep them"
    return (f"{what} {TAKEN}: {shown} ({how})",)
