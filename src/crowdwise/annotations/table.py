"""Annotations: who gave which label to which task."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, DTypeLike

from crowdwise.annotations import frames, judges, wide
from crowdwise.annotations.columns import Columns
from crowdwise.annotations.grouping import count_repeats, freeze, group_by_task
from crowdwise.annotations.missing import leave_out_missing, warn_missing
from crowdwise.annotations.parts import Parts
from crowdwise.annotations.store import StoredAnnotations
from crowdwise.annotations.streaming import open_annotations
from crowdwise.errors import ParameterError, explain, plural
from crowdwise.typing import Array, Ints, Names

REPEATS = ("all", "first", "last", "majority")
STORED = [field.name for field in fields(Columns) if field.name != "notes"]


class Annotations(Parts):
    """An immutable table of (task, worker, label), stored as integers grouped by task.

    Build one with :meth:`from_frame`, :meth:`from_matrix`, :meth:`from_dict` or
    :meth:`from_codes`, or read one from a file with :func:`crowdwise.read`; any method that
    accepts annotations also accepts their inputs. A *row* is a task: ``len``, ``shape`` and
    indexing count and select tasks, as scikit-learn's splitters expect, and keep the workers and
    classes.

    Attributes
    ----------
    tasks, workers, classes : ndarray
        Their names, in the order of the numbers used everywhere else.
    indptr : ndarray of shape (n_tasks + 1,)
        Task ``i`` has the annotations ``indptr[i]`` up to ``indptr[i + 1]``.
    worker, label : ndarray of shape (n_annotations,)
        Worker number and class number of each annotation.
    weight : ndarray of shape (n_annotations,) or None
        How much each annotation counts; a weight of two equals a repeated row.
    time : ndarray of shape (n_annotations,) or None
        When each annotation was given.
    soft : ndarray of shape (n_annotations, n_classes) or None
        Each annotation as a distribution over the classes.
    gold : ndarray of shape (n_tasks,) or None
        Class numbers of truths that came with the data, ``-1`` if unknown. Only used
        if passed to ``fit``; ``gold_labels`` has their names.
    score : ndarray of shape (n_annotations,) or None
        The number behind each label, if workers gave one; see :meth:`with_scores`.
    declined : ndarray of shape (n, 2) or None
        Numbers of tasks and workers who were asked and gave no label, which is different from
        not being asked; see :meth:`decline`.
    about_workers : DataFrame or None
        Facts about each worker, such as ``kind`` and ``family``; see :meth:`with_workers`.
    notes : tuple of str
        How the reader understood the data, and what it left out.

    Examples
    --------
    >>> votes = Annotations.from_dict({"q1": {"ann": "yes", "bob": "no"}, "q2": {"bob": "no"}})
    >>> votes
    <Annotations: 3 annotations of 2 tasks by 2 workers, 2 classes>
    >>> votes.classes.tolist(), votes.shape
    (['no', 'yes'], (2, 2))
    """

    # -- construction ------------------------------------------------------------------

    @classmethod
    def from_codes(
        cls,
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
        notes: tuple[str, ...] = (),
    ) -> Self:
        """Build from integer columns that count from zero; this is the fastest way.

        Names default to the numbers themselves. A label of ``-1`` is not an annotation.
        """
        grouped = group_by_task(
            task, worker, label, tasks=tasks, workers=workers, classes=classes, weight=weight,
            time=time, soft=soft, gold=gold, score=score, notes=notes,
        )  # fmt: skip
        return cls.from_columns(Columns(**grouped))

    @classmethod
    def from_columns(cls, columns: Columns) -> Self:
        """Build from columns that are already grouped by task, without checks."""
        return cls(**{field.name: getattr(columns, field.name) for field in fields(columns)})

    @classmethod
    def from_frame(
        cls,
        frame: object,
        task: str = "task",
        worker: str = "worker",
        label: str = "label",
        *,
        weight: str | None = None,
        time: str | None = None,
        gold: str | None = None,
        score: str | None = None,
        soft: Mapping[Hashable, str] | None = None,
        tasks: Names | None = None,
        workers: Names | None = None,
        classes: Names | None = None,
        repeats: str = "all",
        missing: object = "auto",
        where: str = "The frame",
        notes: tuple[str, ...] = (),
    ) -> Self:
        """Build from a long frame, one row per annotation.

        Parameters
        ----------
        frame : pandas, polars or Arrow frame
            A row without a label is not an annotation: its worker ``declined``. A row with only a
            task and a truth gives the truth of a task, which may have no annotations.
        task, worker, label : str
            Names of the columns.
        weight, time, gold, score : str, optional
            Names of optional columns. ``gold`` has a task's truth on any of its rows, ``score``
            the number behind each label.
        soft : mapping from class to column, optional
            Columns with the probability of each class; ``label`` may then be missing.
        tasks, workers, classes : array-like, optional
            All names, in order, whether they occur or not. Classes default to the
            categories of an ordered categorical, else to the sorted labels.
        repeats : {"all", "first", "last", "majority"}, default="all"
            What to keep when a worker labels a task more than once.
        missing : value or list of values, default="auto"
            Labels and truths that mean "no label", besides empty cells: by default the text NA,
            nan, null and the like, unless ``classes`` includes it; None keeps all text as labels.
        where : str
            Name of the frame in errors.
        notes : tuple of str
            Notes on where the frame comes from.
        """
        if repeats not in REPEATS:
            known = ", ".join(REPEATS)
            fact, fix = f"repeats={repeats!r} is unknown.", "repeats='all' keeps every label"
            raise ParameterError(explain(fact, expected=known, fix=fix))
        roles = {"task": task, "worker": worker, "label": label}
        extra = {"weight": weight, "time": time, "gold": gold, "score": score}
        roles |= {role: name for role, name in extra.items() if name is not None}
        frames.refuse_values(roles)
        columns = frames.columns_from_frame(
            frame, roles, soft=soft, tasks=tasks, workers=workers, classes=classes,
            where=where, notes=notes,
        )  # fmt: skip
        built = cls._leave_out(columns, missing, classes)
        return built if repeats == "all" else built.without_repeats(repeats)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        missing: object = "auto",
        *,
        tasks: Names | None = None,
        workers: Names | None = None,
        classes: Names | None = None,
    ) -> Self:
        """Build from a wide table, one row per task and one column per worker.

        ``missing="auto"`` reads NaN, None, -1 and text such as NA as "no label"; another value,
        or a list of values, replaces these. A frame's index and columns name the
        tasks and workers; otherwise ``tasks=`` and ``workers=`` do.
        """
        columns = wide.columns_from_matrix(
            matrix, missing, tasks=tasks, workers=workers, classes=classes
        )
        return cls._leave_out(columns, missing, classes)

    @classmethod
    def from_snorkel(cls, matrix: Any, cardinality: int | None = None) -> Self:
        """Build from a Snorkel label matrix: -1 abstains, classes count from zero."""
        classes = None if cardinality is None else np.arange(cardinality)
        return cls.from_matrix(matrix, missing=-1, classes=classes)

    @classmethod
    def from_dict(
        cls,
        labels: wide.Nested,
        *,
        missing: object = "auto",
        classes: Names | None = None,
        workers: Names | None = None,
    ) -> Self:
        """Build from ``{task: {worker: label}}`` in the dict's order; see :meth:`from_frame`."""
        columns = wide.columns_from_dict(labels, classes=classes, workers=workers)
        return cls._leave_out(columns, missing, classes)

    @classmethod
    def _leave_out(cls, columns: Columns, missing: object, classes: Names | None) -> Self:
        """Leave out labels that mean "no label"; a warning counts words among them."""
        kept = columns if missing is None else leave_out_missing(columns, missing, classes)
        if kept is not columns:
            warn_missing(kept.notes, 3)
        return cls.from_columns(kept)

    @staticmethod
    def open(
        path: str | Path,
        folder: str | Path | None = None,
        *,
        task: str = "task",
        worker: str = "worker",
        label: str = "label",
        weight: str | None = None,
    ) -> StoredAnnotations:
        """Open annotations that stay on disk, for files larger than memory.

        Rows are grouped by task in one pass over the files, and written to a folder beside
        them (see :mod:`crowdwise.annotations.store` for its format). Blockwise methods, such as
        DawidSkene, fit them there; see :func:`crowdwise.io.stream_labels`.

        Parameters
        ----------
        path : str or Path
            A Parquet, CSV or Arrow file, a folder of them, or a folder made earlier.
        folder : str or Path, optional
            The folder to write; ``votes.parquet.crowd`` for ``votes.parquet``. If it exists and
            is newer than the file, it is reused.
        task, worker, label : str
            Names of the columns. Rows without a label are left out.
        weight : str, optional
            Name of the column with the weight of each annotation; ``"weight"`` if there
            is one. Rows of weight 0 are left out.
        """
        columns = {"task": task, "worker": worker, "label": label}
        return open_annotations(path, folder, columns | ({"weight": weight} if weight else {}))

    # -- content -----------------------------------------------------------------------

    @cached_property
    def n_repeats(self) -> int:
        """Number of annotations that repeat one by the same worker on the same task."""
        return count_repeats(self.indptr, self.worker, len(self.workers))

    @property
    def gold_labels(self) -> pd.Series | None:
        """Truths that came with the data, as names by task; None if there are none."""
        if self.gold is None or not (self.gold >= 0).any():
            return None
        known = self.gold >= 0
        tasks = pd.Index(self.tasks[known], name="task", tupleize_cols=False)
        return pd.Series(self.classes[self.gold[known]], tasks, name="gold")

    def __len__(self) -> int:
        return self.n_tasks

    def __repr__(self) -> str:
        annotations, tasks = plural(self.n_annotations, "annotation"), plural(self.n_tasks, "task")
        workers = plural(self.n_workers, "worker")
        classes = plural(self.n_classes, "class", "classes")
        return f"<Annotations: {annotations} of {tasks} by {workers}, {classes}>"

    def __iter__(self) -> NoReturn:
        raise TypeError("Annotations cannot be iterated over; use to_frame() for the rows.")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Return each task's most frequent label, by which scikit-learn's splitters stratify."""
        return self.classes[self.votes().argmax(axis=1)].astype(dtype or self.classes.dtype)

    def equals(self, other: Annotations) -> bool:
        """Return whether two tables have the same names, columns and rows in the same order."""
        return isinstance(other, Annotations) and all(
            _equal(getattr(self, name), getattr(other, name)) for name in STORED
        )

    # -- facts beside the labels -------------------------------------------------------

    def with_workers(self, about: object) -> Self:
        """Return the same table with facts about workers.

        ``about`` is a frame or dict with a column ``worker``, or indexed by worker. A column
        ``family`` says which judges err together; ``kind`` may be "person" or "model"; other
        columns are kept as they are.
        """
        return replace(self, about_workers=judges.describe_workers(self, about))

    def with_scores(
        self,
        cut: float | None = None,
        *,
        low: float | None = None,
        high: float | None = None,
        classes: Names = (0, 1),
    ) -> Self:
        """Use numeric labels as scores, and their side of ``cut`` as labels.

        ``low`` and ``high`` are the ends of the scale (by default the lowest and the highest
        score given); the cut is halfway by default. A label that is not a number, such as an
        output that could not be parsed, counts as declined.

        >>> votes = Annotations.from_matrix([[2, 9, "?"], [8, 7, 5]], missing=None)
        >>> scored = votes.with_scores(4.5, low=0, high=9)
        >>> scored.label.tolist(), scored.score.tolist(), len(scored.declined)
        ([0, 1, 1, 1, 1], [2.0, 9.0, 8.0, 7.0, 5.0], 1)
        """
        return replace(self, **freeze(judges.score(self, low, high, cut, classes)))

    def decline(self, labels: Names) -> Self:
        """Treat some labels, such as "could not tell", as none: the worker declined.

        >>> votes = Annotations.from_matrix([["yes", "?"], ["no", "yes"]]).decline(["?"])
        >>> votes.classes.tolist(), votes.declined.tolist()
        (['no', 'yes'], [[0, 1]])
        """
        return replace(self, **freeze(judges.decline(self, list(labels))))

    # -- conversion --------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """Return a long frame ``task, worker, label`` (and ``weight``, ``time`` if known)."""
        return frames.to_frame(self)

    def to_matrix(self, missing: object = np.nan) -> pd.DataFrame:
        """Return a wide frame, one row per task, one column per worker; repeats are refused."""
        return wide.to_matrix(self, missing)

    def to_snorkel(self) -> Ints:
        """Return a Snorkel label matrix: class numbers, -1 where a worker abstains."""
        return wide.to_snorkel(self)

    def to_dict(self) -> dict[Hashable, dict[Hashable, Hashable]]:
        """Return ``{task: {worker: label}}``; repeats are refused."""
        return wide.to_dict(self)


def _equal(a: Array | None, b: Array | None) -> bool:
    """Return whether two optional columns are equal."""
    if a is None or b is None:
        return a is b
    return a.equals(b) if isinstance(a, pd.DataFrame) else np.array_equal(a, b)
