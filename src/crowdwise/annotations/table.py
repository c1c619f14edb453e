"""Annotations: who gave which label to which task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from crowdwise.annotations import grouping as layout
from crowdwise.annotations.cells import Cells, count_votes, normalize_votes, to_cells
from crowdwise.annotations.names import locate
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.typing import Array, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd


def _reader(format: str, tool: str) -> Any:
    """A constructor that reads one tool's export."""

    def from_export(cls: type[Any], /, export: Any, **options: Any) -> Annotations:
        return cls.read(export, format, **options)

    from_export.__doc__ = f"""Build from an export of {tool}: a path, or its content.

    ``question=`` says which question to read; see :func:`crowdwise.io.reader.read`.
    """
    return classmethod(from_export)


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """An immutable table of (task, worker, label), stored as integers grouped by task.

    Build one with :meth:`from_frame`, :meth:`from_matrix`, :meth:`from_dict`,
    :meth:`from_codes` or :meth:`read`; any method that takes annotations also takes what
    those take. A *row* is a task: ``len``, ``shape`` and indexing count and cut tasks, as
    scikit-learn's splitters expect, and keep the workers and classes.

    Attributes
    ----------
    tasks, workers, classes : ndarray
        Their names, in the order of the running numbers used everywhere else.
    indptr : ndarray of shape (n_tasks + 1,)
        Task ``i`` has the annotations ``indptr[i]`` up to ``indptr[i + 1]``.
    worker, label : ndarray of shape (n_annotations,)
        Running numbers of the worker and the label.
    weight : ndarray of shape (n_annotations,) or None
        How much each annotation counts; a weight of two equals a repeated row.
    time : ndarray of shape (n_annotations,) or None
        When each annotation was given.
    soft : ndarray of shape (n_annotations, n_classes) or None
        Each annotation as a distribution over the classes.
    gold : ndarray of shape (n_tasks,) or None
        Class numbers of truths that came with the data, ``-1`` where unknown. Never used
        unless it is passed to ``fit``; ``gold_labels`` has their names.
    notes : tuple of str
        What the reader took for what, and what it left out.

    Examples
    --------
    >>> votes = Annotations.from_dict({"q1": {"ann": "yes", "bob": "no"}, "q2": {"bob": "no"}})
    >>> votes
    <Annotations: 3 annotations of 2 tasks by 2 workers, 2 classes>
    >>> votes.classes.tolist(), votes.shape
    (['no', 'yes'], (2, 2))
    """

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
    notes: tuple[str, ...] = ()

    # -- where they come from ----------------------------------------------------------

    @classmethod
    def from_codes(
        cls,
        task: Any,
        worker: Any,
        label: Any,
        *,
        tasks: Any = None,
        workers: Any = None,
        classes: Any = None,
        weight: Any = None,
        time: Any = None,
        soft: Any = None,
        gold: Any = None,
        notes: tuple[str, ...] = (),
    ) -> Self:
        """Build from integer columns that count from zero; the fastest way in.

        Names default to the numbers themselves. A label of ``-1`` is no annotation.
        """
        return cls(
            **layout.group_by_task(
                task, worker, label, tasks, workers, classes, weight, time, soft, gold
            ),
            notes=notes,
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        task: str = "task",
        worker: str = "worker",
        label: str = "label",
        **options: Any,
    ) -> Annotations:
        """Build from a long frame (pandas, polars, Arrow), one row an annotation.

        See :func:`crowdwise.annotations.frames.from_frame` for the options: ``weight``, ``time``,
        ``gold`` and ``soft`` columns, declared ``tasks``, ``workers`` and ``classes``, and
        what to do with ``repeats``.
        """
        from crowdwise.annotations.frames import from_frame

        return from_frame(frame, task, worker, label, **options)

    @classmethod
    def from_matrix(cls, matrix: Any, missing: Any = "auto", **names: Any) -> Annotations:
        """Build from a wide table, one row a task and one column a worker.

        ``missing="auto"`` takes NaN, None and -1 for "no label"; give another value, or a
        list of values, to mean only those. A frame's index and columns name the tasks and
        workers; otherwise ``tasks=``, ``workers=`` and ``classes=`` do.
        """
        from crowdwise.annotations.wide import from_matrix

        return from_matrix(matrix, missing, **names)

    @classmethod
    def from_snorkel(cls, matrix: Any, cardinality: int | None = None) -> Annotations:
        """Build from a Snorkel label matrix: -1 abstains, classes count from zero."""
        classes = None if cardinality is None else np.arange(cardinality)
        return cls.from_matrix(matrix, missing=-1, classes=classes)

    @classmethod
    def from_dict(
        cls, labels: Mapping[Any, Mapping[Any, Any]], *, classes: Any = None, workers: Any = None
    ) -> Annotations:
        """Build from ``{task: {worker: label}}``; tasks keep the dict's order."""
        from crowdwise.annotations.wide import from_dict

        return from_dict(labels, classes=classes, workers=workers)

    @classmethod
    def read(cls, path: Any, format: str | None = None, **options: Any) -> Annotations:
        """Read a file of any known format; see :func:`crowdwise.io.reader.read`."""
        from crowdwise.io.reader import read

        return read(path, format, **options)

    from_label_studio = _reader("label_studio", "Label Studio")
    from_prodigy = _reader("prodigy", "Prodigy")
    from_argilla = _reader("argilla", "Argilla")
    from_doccano = _reader("doccano", "doccano")
    from_mturk = _reader("mturk", "Mechanical Turk")
    from_appen = _reader("appen", "Appen")
    from_toloka = _reader("toloka", "Toloka")
    from_hugging_face = _reader("hugging_face", "the Hugging Face Hub")

    # -- how many ----------------------------------------------------------------------

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

    @cached_property
    def n_repeats(self) -> int:
        """How many annotations repeat an earlier one of the same worker on the same task."""
        return layout.count_repeats(self.indptr, self.worker, self.n_workers)

    @property
    def redundancy(self) -> Ints:
        """Annotations per task."""
        return np.diff(self.indptr)

    @property
    def task(self) -> Ints:
        """Running number of each annotation's task."""
        return np.repeat(np.arange(self.n_tasks, dtype=np.int32), self.redundancy)

    @property
    def gold_labels(self) -> pd.Series | None:
        """Truths that came with the data, as names by task; None if there are none."""
        if self.gold is None or not (self.gold >= 0).any():
            return None
        import pandas as pd

        known = self.gold >= 0
        tasks = pd.Index(self.tasks[known], name="task", tupleize_cols=False)
        return pd.Series(self.classes[self.gold[known]], tasks, name="gold")

    def __len__(self) -> int:
        return self.n_tasks

    def __repr__(self) -> str:
        return (
            f"<Annotations: {self.n_annotations:,} annotations of {self.n_tasks:,} tasks "
            f"by {self.n_workers:,} workers, {self.n_classes} classes>"
        )

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("Annotations are not iterated over; use to_frame() for the rows.")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Each task's most frequent label: what scikit-learn's splitters stratify by."""
        return self.classes[self.votes().argmax(axis=1)].astype(dtype or self.classes.dtype)

    def equals(self, other: Annotations) -> bool:
        """Whether two tables hold the same names, columns and rows in the same order."""
        return isinstance(other, Annotations) and all(
            layout.same(getattr(self, name), getattr(other, name)) for name in layout.COLUMNS
        )

    # -- what the maths works on -------------------------------------------------------

    @cached_property
    def cells(self) -> Cells:
        """The sparse matrix tasks x (worker, label) that every aggregator works on."""
        return to_cells(self)

    def votes(self) -> Floats:
        """Weight of the labels of each class, shape (n_tasks, n_classes)."""
        return count_votes(self)

    def shares(self) -> Floats:
        """Each task's share of labels, uniform where it has none."""
        return normalize_votes(self.votes())

    # -- parts of them -----------------------------------------------------------------

    def __getitem__(self, rows: Any) -> Self:
        """The tasks at ``rows``: a number, slice, mask or array of numbers."""
        return replace(self, **layout.take_tasks(self, rows))

    def filter(self, mask: Any) -> Self:
        """The annotations where ``mask`` is true; all tasks, workers and classes stay."""
        mask = np.asarray(mask, dtype=bool)
        if mask.shape != (self.n_annotations,):
            raise ParameterError(
                f"The mask has shape {mask.shape}.\n"
                f"  expected: one true or false for each of {self.n_annotations:,} annotations"
            )
        return replace(self, **layout.take_rows(self, mask))

    def select_workers(self, workers: Any) -> Self:
        """Only the annotations by these workers (names); all tasks and names stay."""
        found = locate(self.workers, workers)
        if (found < 0).any():
            stranger = list(workers)[int((found < 0).argmax())]
            raise AnnotationError(
                explain(
                    f"There is no worker {stranger!r}.",
                    expected=f"one of the {self.n_workers:,} names in .workers",
                )
            )
        return self.filter(np.isin(self.worker, found))

    def nonempty(self) -> Self:
        """Only the tasks that have at least one annotation."""
        return self[np.flatnonzero(self.redundancy)]

    def split_tasks(self, test_size: float = 0.25, random_state: Any = None) -> tuple[Self, Self]:
        """Cut into two at random, whole tasks at a time."""
        train, test = layout.cut(self.n_tasks, test_size, random_state, "tasks")
        return self[train], self[test]

    def split_workers(self, test_size: float = 0.25, random_state: Any = None) -> tuple[Self, Self]:
        """Cut into two at random, whole workers at a time; both parts keep all tasks."""
        train, test = layout.cut(self.n_workers, test_size, random_state, "workers")
        return self.filter(np.isin(self.worker, train)), self.filter(np.isin(self.worker, test))

    def subsample(self, redundancy: int, random_state: Any = None) -> Self:
        """At most ``redundancy`` random annotations of every task."""
        return self.filter(layout.at_most(self.indptr, redundancy, random_state))

    def without_repeats(self, keep: str = "first") -> Self:
        """One annotation per worker and task: the ``first``, ``last`` or ``majority`` one.

        First and last go by ``time`` where it is known, else by the order of the rows.
        """
        return self.filter(layout.keep_repeats(self, keep))

    # -- where they go -----------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """A long frame ``task, worker, label`` (and ``weight``, ``time`` if known)."""
        from crowdwise.annotations.frames import to_frame

        return to_frame(self)

    def to_matrix(self, missing: Any = np.nan) -> pd.DataFrame:
        """A wide frame, one row a task and one column a worker; repeats are refused."""
        from crowdwise.annotations.wide import to_matrix

        return to_matrix(self, missing)

    def to_snorkel(self) -> Ints:
        """A Snorkel label matrix: class numbers, -1 where a worker abstains."""
        from crowdwise.annotations.wide import to_codes

        return to_codes(self)

    def to_dict(self) -> dict[Any, dict[Any, Any]]:
        """``{task: {worker: label}}``; repeats are refused."""
        from crowdwise.annotations.wide import to_dict

        return to_dict(self)


def refuse_empty(data: Annotations, purpose: str = "learn from") -> None:
    """Refuse annotations of which none counts."""
    if not data.n_annotations or (data.weight is not None and not (data.weight > 0).any()):
        raise AnnotationError(
            explain(
                f"There are no annotations to {purpose}.",
                found=f"{data.n_annotations:,} of weight 0" if data.n_annotations else "",
                expected="at least one (task, worker, label) that counts",
            )
        )


def find_labeled(data: Annotations) -> Array:
    """Which tasks have a label that counts."""
    if data.weight is None:
        return data.redundancy > 0
    weight: Array = np.bincount(data.task, data.weight, minlength=data.n_tasks)
    return weight > 0
