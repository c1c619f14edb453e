"""Consensus labels, as a table and in the form that labeling tools import."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.errors import FormatError, explain, listing, plural
from crowdwise.inference.posteriors import as_frame
from crowdwise.io.document import Record
from crowdwise.io.values import Cell
from crowdwise.typing import Array, Floats, Names


def consensus_frame(
    model: Any, annotations: Annotations, *, probabilities: bool = False
) -> pd.DataFrame:
    """Return one row per task: label, the model's confidence, and number of annotations.

    Tasks that the model was fitted on keep the result of ``fit``, including gold; others are
    predicted. With ``probabilities``, there is a column ``proba_<class>`` for every class.
    """
    if np.array_equal(model.tasks_, annotations.tasks):
        labels, posterior = model.labels_, model.posterior_
    else:
        labels, posterior = model.predict(annotations), model.predict_proba(annotations).to_numpy()
    frame = pd.DataFrame(
        {
            "task": annotations.tasks,
            "label": labels.to_numpy(),
            "confidence": posterior.max(axis=1),
            "votes": annotations.redundancy,
        }
    )
    if probabilities:
        proba = as_frame(posterior, annotations.tasks, model.classes_)
        frame = frame.join(proba.add_prefix("proba_").reset_index(drop=True))
    return frame


def labels_frame(
    proba: Floats, classes: Array, tasks: Names | None = None, *, probabilities: bool = False
) -> pd.DataFrame:
    """Return one row per task, numbered if unnamed: most probable label and probability.

    With ``probabilities``, there is a column ``proba_<class>`` for every class.
    """
    frame = pd.DataFrame(
        {
            "task": np.arange(len(proba)) if tasks is None else tasks,
            "label": classes[proba.argmax(axis=1)],
            "confidence": proba.max(axis=1),
        }
    )
    if probabilities:
        frame = frame.join(pd.DataFrame(proba, columns=[f"proba_{name}" for name in classes]))
    return frame


def to_label_studio(
    consensus: pd.DataFrame,
    from_name: str,
    to_name: str,
    export: Iterable[Record] | None = None,
    *,
    type: str = "choices",
    model_version: str = "crowdwise",
) -> list[Record]:
    """Convert consensus labels to predictions that Label Studio imports.

    Parameters
    ----------
    consensus : DataFrame
        Columns task, label and confidence, as from :func:`consensus_frame`.
    from_name, to_name : str
        Names of the control (``<Choices name=…>``) and of the object that it labels.
    export : list of tasks, optional
        The JSON export that the labels came from; its tasks keep their data. Without it, each
        task has its name as ``data["task"]``.
    type : {"choices", "rating"}, default="choices"
        The kind of control. Ratings are whole numbers.
    model_version : str, default="crowdwise"
        The name that Label Studio shows for these predictions.
    """
    known = None if export is None else {str(task.get("id")): task for task in export}
    tasks: list[Record] = []
    if type == "rating":
        labeled = consensus[consensus["label"].notna()]
        consensus = labeled.assign(label=as_ratings(labeled["label"]))
    for name, label, confidence in _list_labeled(consensus):
        value = {"choices": [str(label)]} if type == "choices" else {type: label}
        region = {"from_name": from_name, "to_name": to_name, "type": type, "value": value}
        score = {"model_version": model_version, "score": confidence, "result": [region]}
        source = {"data": {"task": name}} if known is None else known.get(str(name))
        if source is not None:
            kept = {key: source[key] for key in ("id", "data") if key in source}
            tasks.append({**kept, "predictions": [score]})
    return tasks


def as_ratings(labels: pd.Series, most: int | None = None) -> pd.Series:
    """Return labels as whole numbers from 0 to ``most``, as Label Studio rates; refuse others."""
    numbers = pd.to_numeric(labels, errors="coerce").astype("float64")
    bad = ~numbers.between(0, 2**53 if most is None else most) | (numbers != numbers.round())
    if bad.any():
        upper = "" if most is None else f" to {most}"
        raise FormatError(
            explain(
                f"{plural(int(bad.sum()), 'label')} cannot be a rating.",
                found=listing(labels[bad].unique().tolist()),
                expected=f"whole numbers from 0{upper}",
                fix="pull the annotations of this question, and push the consensus of those",
            )
        )
    return numbers.astype("int64")


def to_argilla(consensus: pd.DataFrame, question: str, agent: str = "crowdwise") -> list[Record]:
    """Convert consensus labels to Argilla suggestions, one flat record per task."""
    suggestion = f"{question}.suggestion"
    return [
        {
            "id": str(name),
            suggestion: label,
            f"{suggestion}.score": confidence,
            f"{suggestion}.agent": agent,
        }
        for name, label, confidence in _list_labeled(consensus)
    ]


def _list_labeled(consensus: pd.DataFrame) -> Iterator[tuple[Cell, Cell, float]]:
    """Yield task, label and confidence of the tasks with a label, as plain values."""
    rows = consensus.loc[consensus["label"].notna(), ["task", "label", "confidence"]]
    yield from zip(*(rows[name].tolist() for name in rows), strict=True)
