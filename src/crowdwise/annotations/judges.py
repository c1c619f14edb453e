"""Data beside the labels: scores, judges who declined, and facts about workers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations.columns import Columns
from crowdwise.annotations.names import as_names
from crowdwise.annotations.order import as_numbers
from crowdwise.errors import AnnotationError, ParameterError, explain, listing, plural
from crowdwise.typing import Array, Floats, Ints, Names


def decline(table: Columns, labels: Iterable[object]) -> dict[str, Any]:
    """Return columns in which some labels mean that the worker declined."""
    names = set(labels)
    unknown = [name for name in names if name not in set(table.classes.tolist())]
    if unknown:
        raise AnnotationError(
            explain(
                f"There is no label {unknown[0]!r} to treat as declining.",
                expected=f"some of {listing(table.classes.tolist())}",
                fix="check the spelling of the label",
            )
        )
    no_label = np.array([name in names for name in table.classes.tolist()], dtype=bool)
    return drop_labels(table, no_label)


def drop_labels(table: Columns, no_label: Array) -> dict[str, Any]:
    """Return columns without the classes in ``no_label``, which count as declined."""
    out = no_label[table.label]
    pairs = np.column_stack([table.task[out], table.worker[out]])
    before = np.concatenate([[0], np.cumsum(~out, dtype=np.int64)])
    place = np.cumsum(~no_label) - 1
    columns = {k: None if c is None else c[~out] for k, c in table.per_annotation().items()}
    columns["label"] = place[table.label[~out]].astype(table.label.dtype)
    if columns["soft"] is not None:
        columns["soft"] = columns["soft"][:, ~no_label]
    gold = table.gold
    if gold is not None:
        gold = np.where((gold < 0) | no_label[gold], -1, place[gold]).astype(gold.dtype)
    old = np.empty((0, 2), dtype=np.int32) if table.declined is None else table.declined
    declined = np.unique(np.concatenate([old, pairs]), axis=0).astype(np.int32)
    return {
        **columns,
        "classes": table.classes[~no_label],
        "indptr": before[table.indptr],
        "gold": gold,
        "declined": declined,
    }


def score(
    table: Columns,
    low: float | None,
    high: float | None,
    cut: float | None,
    classes: Names,
) -> dict[str, Any]:
    """Return columns in which numeric labels are scores, and labels the side of a cut."""
    number = np.array([parse(name) for name in table.classes.tolist()])
    if not np.isfinite(number).any():
        raise AnnotationError(
            explain(
                "No label is a number, so none can be a score.",
                found=listing(table.classes.tolist()),
                expected="labels such as 0 to 9, or 0.85",
                fix="read the scores from a column of their own: score=",
            )
        )
    low = float(np.nanmin(number)) if low is None else low
    high = float(np.nanmax(number)) if high is None else high
    outside = (number < low) | (number > high)
    if outside.any():
        raise AnnotationError(
            explain(
                f"{plural(int(outside.sum()), 'score')} outside of {low:g} to {high:g}.",
                first=f"{number[outside][0]:g}",
                fix="correct the range, or these scores",
            )
        )
    at = (low + high) / 2 if cut is None else float(cut)
    names = as_names(classes)
    if len(names) != 2:
        raise ParameterError(
            explain(
                f"There are {len(names)} class names for one cut.",
                expected="two",
                fix="give a name for below and one for above the cut",
            )
        )
    kept = drop_labels(table, ~np.isfinite(number))
    value: Floats = number[np.isfinite(number)][kept["label"]]
    side: Ints = (value >= at).astype(np.int8)
    truth = kept["gold"]
    if truth is not None:
        above = number[np.isfinite(number)] >= at
        truth = np.where(truth < 0, -1, above[truth]).astype(np.int32)
    return {**kept, "score": value, "label": side, "classes": names, "soft": None, "gold": truth}


def parse(name: object) -> float:
    """Convert a label to a number; NaN if it is not one, such as an unparsable output."""
    found = as_numbers(np.array([name], dtype=object))
    return float("nan") if found is None or isinstance(name, bool) else float(found[0])


def describe_workers(table: Columns, about: object) -> pd.DataFrame:
    """Return a frame of facts with one row per worker, in the order of the workers."""
    frame = pd.DataFrame(about)
    frame = frame.set_index("worker") if "worker" in frame else frame
    repeated = frame.index[frame.index.duplicated()]
    if len(repeated):
        raise AnnotationError(
            explain(
                f"Worker {repeated[0]!r} is described twice.",
                expected="one row per worker",
                fix="keep one of the rows",
            )
        )
    index = pd.Index(table.workers, name="worker", tupleize_cols=False)
    if len(frame) and not index.isin(frame.index).any():
        as_text = frame.set_axis(frame.index.map(str))
        if not index.map(str).isin(as_text.index).any():
            raise AnnotationError(
                explain(
                    "None of the workers is described.",
                    first=f"{table.workers[0]!r}, while the description has {frame.index[0]!r}",
                    expected="a column 'worker', or an index, with the names of the workers",
                    fix="index the table by the names in annotations.workers",
                )
            )
        return as_text.reindex(index.map(str)).set_axis(index)
    return frame.reindex(index)
