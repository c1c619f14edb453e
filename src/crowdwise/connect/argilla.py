"""Argilla: responses out of its records, consensus back as suggestions with score and agent.

Works on the objects of its client (``pip install argilla``), which is imported when it is needed.
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
    """Annotations from the submitted responses of records, such as ``dataset.records(...)``.

    Tasks have the records' ids, workers the ids of users.
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
    """Records with the consensus as their suggestion for a question, to be logged.

    ``dataset.records.log(suggest(dataset.records(...), consensus, "label"))`` sends them. A
    suggestion replaces an older one; responses stay as they are. Records that have the same
    suggestion already, and those without a label, are left out.

    Parameters
    ----------
    records : iterable of argilla.Record
    consensus : DataFrame
        Columns task (the record's id), label and confidence, which becomes the score.
    question : str
        The question that it answers.
    agent : str
        Who Argilla says made the suggestion, such as a name with a version.
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
    """The client's class of suggestions."""
    try:
        from argilla import Suggestion
    except ImportError:
        raise MissingExtraError(
            explain("Suggestions need Argilla's client.", fix="pip install argilla")
        ) from None
    return Suggestion
