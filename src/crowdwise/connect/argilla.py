"""Argilla: responses read from its records, consensus sent back as scored suggestions.

Works on objects of the Argilla client (``pip install argilla``), imported only when needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.errors import MissingExtraError, explain
from crowdwise.io import read

AGENT = "crowdwise"


def read_records(records: Iterable[Any], question: str | None = None) -> Annotations:
    """Read annotations from submitted responses, such as those of ``dataset.records(...)``.

    Tasks are named by record id, workers by user id.
    """
    rows = [
        {
            "id": str(record.id),
            "fields": {},
            "responses": [
                {
                    "values": {one.question_name: {"value": one.value}},
                    "user_id": str(one.user_id),
                    "status": getattr(one.status, "value", one.status),
                }
                for one in record.responses
            ],
        }
        for record in records
    ]
    return read(rows, "argilla", question=question, repeats="last")


def suggest(
    records: Iterable[Any], consensus: pd.DataFrame, question: str, agent: str = AGENT
) -> list[Any]:
    """Return records with the consensus as their suggested answer, ready to be logged.

    ``dataset.records.log(suggest(dataset.records(...), consensus, "label"))`` sends them. A
    suggestion replaces an older one; responses are not changed. Records that already have the
    suggestion, and those without a label, are left out.

    Parameters
    ----------
    records : iterable of argilla.Record
    consensus : DataFrame
        Columns task (the record's id), label and confidence, which becomes the score.
    question : str
        The question to answer.
    agent : str
        The agent shown in Argilla as the author of the suggestion, such as a name and version.
    """
    suggestion = import_suggestion()
    rows = consensus[consensus["label"].notna()]
    columns = (rows[name].tolist() for name in ("task", "label", "confidence"))
    found = {str(task): (label, float(sure)) for task, label, sure in zip(*columns, strict=True)}
    changed = []
    for record in records:
        label, sure = found.get(str(record.id), (None, 0.0))
        if label is None:
            continue
        known = [one for one in record.suggestions if one.question_name == question]
        if any((one.value, one.score, one.agent) == (label, sure, agent) for one in known):
            continue
        record.suggestions.add(suggestion(question, label, score=sure, agent=agent, type="model"))
        changed.append(record)
    return changed


def import_suggestion() -> Any:
    """Import the client's ``Suggestion`` class."""
    try:
        from argilla import Suggestion
    except ImportError:
        raise MissingExtraError(
            explain("Suggestions need Argilla's client.", fix="pip install argilla")
        ) from None
    return Suggestion
