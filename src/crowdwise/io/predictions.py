"""Consensus labels in the form that labeling tools import."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd


def to_label_studio(
    consensus: pd.DataFrame,
    from_name: str,
    to_name: str,
    export: Iterable[Mapping[str, Any]] | None = None,
    *,
    type: str = "choices",
    model_version: str = "crowdwise",
) -> list[dict[str, Any]]:
    """Consensus labels as predictions that Label Studio imports.

    Parameters
    ----------
    consensus : DataFrame
        Columns task, label and confidence, as from :func:`consensus_frame`.
    from_name, to_name : str
        Names of the control (``<Choices name=…>``) and of the object it labels.
    export : list of tasks, optional
        The JSON export the labels came from; its tasks keep their data. Without it a task
        has its name as ``data["task"]``.
    type : {"choices", "rating"}, default="choices"
        What kind of control it is.
    """
    known = None if export is None else {str(task.get("id")): task for task in export}
    tasks = []
    for name, label, confidence in _labeled(consensus):
        value = {"choices": [str(label)]} if type == "choices" else {type: label}
        region = {"from_name": from_name, "to_name": to_name, "type": type, "value": value}
        score = {"model_version": model_version, "score": confidence, "result": [region]}
        source = {"data": {"task": name}} if known is None else known.get(str(name))
        if source is not None:
            kept = {key: source[key] for key in ("id", "data") if key in source}
            tasks.append({**kept, "predictions": [score]})
    return tasks


def to_argilla(
    consensus: pd.DataFrame, question: str, agent: str = "crowdwise"
) -> list[dict[str, Any]]:
    """Consensus labels as Argilla suggestions, one flat record a task."""
    suggestion = f"{question}.suggestion"
    return [
        {
            "id": str(name),
            suggestion: label,
            f"{suggestion}.score": confidence,
            f"{suggestion}.agent": agent,
        }
        for name, label, confidence in _labeled(consensus)
    ]


def _labeled(consensus: pd.DataFrame) -> Iterator[tuple[Any, Any, float]]:
    """Task, label and confidence of the tasks that have a label, as plain values."""
    rows = consensus.loc[consensus["label"].notna(), ["task", "label", "confidence"]]
    yield from zip(*(rows[name].tolist() for name in rows), strict=True)
