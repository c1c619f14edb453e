"""Truths in memory, aligned with tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pandas as pd

from crowdwise.annotations.frames import as_narwhals, take_series
from crowdwise.annotations.names import as_names, locate
from crowdwise.errors import AnnotationError, explain, listing, plural
from crowdwise.io.recognize import SYNONYMS, normalize_name, recognize_columns
from crowdwise.typing import Array, GoldLike, Ints, Names


def align_truths(
    truth: GoldLike, tasks: Names, whose: str = "of the annotations"
) -> tuple[Ints, pd.Series]:
    """Return the positions of tasks with a known truth, and the truths by task.

    Accepts what :func:`collect_truths` does. Truths of other tasks are ignored, unless there
    are no others; in errors, ``whose`` says whose tasks these are. Whole numbers in an unnamed
    index may be row numbers, and are refused if only some of them are tasks.
    """
    given = _as_series(truth)
    refuse_row_numbers(given.index, tasks, "the truths", whose)
    known = _keep_known(given)
    place = locate(names := as_names(tasks), known.index)
    if len(known) and (place < 0).all():
        raise explain_no_shared_task(
            f"No truth is for a task {whose}.", as_names(known.index), names
        )
    return place[place >= 0], known[place >= 0]


def refuse_row_numbers(
    index: pd.Index, tasks: Names, what: str, whose: str = "of the annotations"
) -> None:
    """Refuse what may be row numbers: only some are tasks, or one starts at 0, the other at 1."""
    loose = [_may_number_rows(names) for names in (index, tasks)]
    if not any(loose):
        return
    own, other = _distinct(index), _distinct(tasks)
    shared = own.isin(other)
    in_part = not shared.all() and not other.isin(own).all()
    pairs = ((own, other), (other, own))
    shifted = any(
        rows and counts_from(one, 0) and counts_from(two, 1)
        for rows, (one, two) in zip(loose, pairs, strict=True)
    )
    if shared.any() and (in_part or shifted):
        raise AnnotationError(
            explain(
                f"The numbers in the index of {what} may be tasks or rows: "
                f"{int(shared.sum()):,} of {len(own):,} are a task {whose}.",
                found=f"numbers such as {listing(own, 3)}",
                expected=f"tasks such as {listing(other, 3)}",
                fix="index by task; if the numbers are tasks, say so: .rename_axis('task')",
            )
        )


def _may_number_rows(names: Names) -> bool:
    """Return whether this is an index of whole numbers whose name does not say tasks."""
    named = not isinstance(names, pd.Index) or normalize_name(names.name) in SYNONYMS["task"]
    return not named and _distinct(names).dtype.kind in "iu"


def _distinct(names: Names) -> pd.Index:
    return pd.Index(as_names(names)).infer_objects().unique()


def counts_from(names: pd.Index, start: int) -> bool:
    """Return whether distinct names are the whole numbers from ``start``, in any order."""
    whole = len(names) > 0 and names.dtype.kind in "iu"
    return whole and names.min() == start and names.max() == start + len(names) - 1


def explain_no_shared_task(fact: str, named: Array, tasks: Array) -> AnnotationError:
    found = f"{plural(len(named), 'truth')}, for {listing(named, 3)}" if len(named) else "no truths"
    return AnnotationError(
        explain(
            fact,
            found=found,
            expected=f"tasks such as {listing(tasks, 3)}",
            fix="check that both use the same ids, and the same type (numbers or text)",
        )
    )


def collect_truths(truth: GoldLike) -> pd.Series:
    """Return truths as a series by task, each task once; gold comes before label."""
    return _keep_known(_as_series(truth))


def _as_series(truth: GoldLike) -> pd.Series:
    """Return truths by task; the index has a name if it must be tasks, not row numbers."""
    if isinstance(truth, Mapping):
        truth = pd.Series(truth)
        rows = truth.index.nlevels > 1 or counts_from(truth.index, 0)
        return truth if rows else truth.rename_axis(index="task")
    return truth if isinstance(truth, pd.Series) else _take_columns(truth)


def _keep_known(truth: pd.Series) -> pd.Series:
    known = truth.dropna()
    return known[~find_repeats(known.index, known)] if known.index.has_duplicates else known


def find_repeats(tasks: Names, labels: Names, where: str = "The table of truths") -> Array:
    """Find rows that repeat a truth; a task with two different ones is refused."""
    columns = {"task": pd.Index(tasks).tolist(), "label": pd.Series(labels).tolist()}
    pairs = pd.DataFrame(columns, dtype=object)
    distinct = pairs.drop_duplicates()
    twice = distinct[distinct["task"].duplicated()]
    if len(twice):
        task = twice["task"].iloc[0]
        found = distinct["label"][[own == task for own in distinct["task"]]]
        raise AnnotationError(
            explain(
                f"{where} has two different truths for {plural(twice['task'].nunique(), 'task')}.",
                first=f"task={task!r}: {' and '.join(map(repr, found))}",
                expected="one truth per task",
                fix="keep one of them, or remove the truth of such a task",
            )
        )
    return pairs.duplicated().to_numpy()


def find_truth_columns(
    columns: Sequence[str],
    where: str,
    given: Mapping[str, str | None],
    take: Callable[[str], pd.Series],
) -> tuple[str, str]:
    """Find the columns of the task and its truth: gold, or label if gold is empty."""
    roles = recognize_columns(columns, given)
    label, gold = roles.get("label"), roles.get("gold")
    if gold and not given.get("label") and (label is None or take(gold).notna().any()):
        label = gold
    if "task" not in roles or label is None:
        raise AnnotationError.missing_column(
            "label" if "task" in roles else "task",
            where=where,
            found=columns,
            fix="give a table with the columns task and label",
        )
    return roles["task"], label


def _take_columns(table: object) -> pd.Series:
    frame = as_narwhals(table)
    if frame is None:
        raise AnnotationError(
            explain(
                f"A {type(table).__name__} does not say which task a truth is for.",
                expected="a mapping or series by task, or a frame with task and label",
                fix="give a series indexed by task, or a frame with a column of tasks",
            )
        )
    where = "The table of truths"
    take = partial(take_series, frame)
    task, label = find_truth_columns(frame.columns, where, {}, take)
    return pd.Series(take(label).array, index=pd.Index(take(task), name="task"))
