"""SageMaker Ground Truth: the two functions of a custom labeling job, for AWS Lambda.

``handle_task`` goes before the annotation of each task, ``consolidate`` after: it gets the
answers of a batch and returns one label for each task. A module of yours names them::

    from crowdwise.connect.ground_truth import consolidate, handle_task
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import urlsplit

from crowdwise.aggregate import IBCC, MajorityVote
from crowdwise.base import Aggregator
from crowdwise.errors import FormatError, MissingExtraError, explain
from crowdwise.io import read
from crowdwise.io.consensus import consensus_frame
from crowdwise.typing import Json

FEW = 20  # answers below which workers cannot be distinguished
Event = Json


def handle_task(event: Event, _: object = None) -> Event:
    """Before annotation: pass the task on to the workers' page, as ``task.input.taskObject``.

    >>> handle_task({"dataObject": {"source": "Buy now!"}})
    {'taskInput': {'taskObject': 'Buy now!'}, 'isHumanAnnotationRequired': 'true'}
    """
    given = event.get("dataObject") or {}
    shown = given.get("source-ref", given.get("source"))
    if shown is None:
        raise FormatError(
            explain(
                "The task has nothing to show.",
                found=", ".join(given) or "nothing",
                expected="source or source-ref in a line of the manifest",
                fix="write the manifest with one of them",
            )
        )
    return {"taskInput": {"taskObject": shown}, "isHumanAnnotationRequired": "true"}


def consolidate(
    event: Event,
    _: object = None,
    *,
    fetch: Callable[[str], bytes] | None = None,
    model: Aggregator | None = None,
    question: str | None = None,
) -> list[Event]:
    """After annotation: one label for each task, with its confidence.

    Parameters
    ----------
    event : dict
        What Lambda hands over, with a context beside: ``payload.s3Uri`` is where the answers are.
    fetch : callable, optional
        Reads an ``s3://`` address; by default boto3 does, which Lambda has.
    model : Aggregator, optional
        What infers the labels, by default IBCC. A batch holds few tasks: below 20 answers it is
        majority vote, and all labels together belong in ``crowdwise report`` afterwards.
    question : str, optional
        The name of the form's field, where there are several.
    """
    name = event["labelAttributeName"]
    requests = json.loads((fetch or fetch_from_s3)(event["payload"]["s3Uri"]))
    votes = read(requests, "ground_truth", question=question, repeats="last")
    if model is None:
        model = IBCC() if votes.n_annotations >= FEW and votes.n_classes > 1 else MajorityVote()
    frame = consensus_frame(model.fit(votes), votes)
    rows = zip(*(frame[key].tolist() for key in ("task", "label", "confidence")), strict=True)
    found = {str(task): (label, sure) for task, label, sure in rows}
    answers = []
    for request in requests:
        task = str(request["datasetObjectId"])
        if task in found:
            label, sure = found[task]
            facts = {
                "class-name": str(label),
                "confidence": round(float(sure), 6),
                "human-annotated": "yes",
                "creation-date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"),
                "type": "crowdwise/consolidation",
            }
            content = {name: str(label), f"{name}-metadata": facts}
            answers.append(
                {"datasetObjectId": task, "consolidatedAnnotation": {"content": content}}
            )
    return answers


def fetch_from_s3(address: str) -> bytes:
    """Read the bytes at an ``s3://bucket/key`` address."""
    try:
        import boto3
    except ImportError:
        raise MissingExtraError(
            explain("Reading from S3 needs boto3, which Lambda has.", fix="pip install boto3")
        ) from None
    parts = urlsplit(address)
    answer = boto3.client("s3").get_object(Bucket=parts.netloc, Key=parts.path.lstrip("/"))
    return bytes(answer["Body"].read())
