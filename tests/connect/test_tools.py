"""Argilla, Prodigy and Ground Truth: their objects in, their objects out."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from crowdwise.aggregate import IBCC
from crowdwise.connect import Overlap, argilla, ground_truth, prodigy
from crowdwise.errors import FormatError, MissingExtraError
from crowdwise.io.consensus import consensus_frame
from crowdwise.plan import Planner

ARN = "arn:aws:sagemaker:us-west-2:111122223333:labeling-job/animals"


class Suggestion:
    """Argilla's, as far as it is used, where its client is not installed."""

    def __init__(self, question_name, value, score=None, agent=None, type=None):
        self.question_name, self.value, self.score = question_name, value, score
        self.agent, self.type = agent, type


class Suggestions(list):
    def add(self, one):
        self[:] = [known for known in self if known.question_name != one.question_name] + [one]


def make_records():
    """Records with responses, of the real client where it is installed."""
    labels = {"r1": ("cat", "cat"), "r2": ("cat", "dog"), "r3": ("dog", "dog")}
    users = ["00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"]
    import argilla as client

    if not hasattr(client, "Record"):
        return [
            SimpleNamespace(
                id=name,
                suggestions=Suggestions(),
                responses=[
                    SimpleNamespace(question_name="kind", value=label, user_id=user, status=status)
                    for user, label, status in (
                        *(
                            (user, label, "submitted")
                            for user, label in zip(users, own, strict=True)
                        ),
                        ("c", "cat", "draft"),
                    )
                ],
            )
            for name, own in labels.items()
        ]
    return [
        client.Record(
            id=name,
            fields={"text": name},
            responses=[
                client.Response("kind", label, user_id=user, status="submitted")
                for user, label in zip(users, own, strict=True)
            ],
        )
        for name, own in labels.items()
    ]


@pytest.fixture
def client(monkeypatch):
    """A module of that name, unless the real one is there."""
    try:
        import argilla  # noqa: F401
    except ImportError:
        module = ModuleType("argilla")
        module.Suggestion = Suggestion
        monkeypatch.setitem(sys.modules, "argilla", module)


@pytest.mark.usefixtures("client")
def test_argilla_gets_suggestions_with_score_and_agent_once():
    records = make_records()
    votes = argilla.read_records(records)
    assert {task: len(own) for task, own in votes.to_dict().items()} == {"r1": 2, "r2": 2, "r3": 2}
    consensus = consensus_frame(IBCC().fit(votes), votes)
    changed = argilla.suggest(records, consensus, "kind", agent="crowdwise 1")
    assert [record.id for record in changed] == ["r1", "r2", "r3"]
    one = next(iter(changed[0].suggestions))
    assert (one.value, one.agent, one.type) == ("cat", "crowdwise 1", "model")
    assert one.score == pytest.approx(consensus["confidence"][0])
    assert argilla.suggest(records, consensus, "kind", agent="crowdwise 1") == []
    newer = argilla.suggest(records, consensus, "kind", agent="crowdwise 2")
    assert [len(list(record.suggestions)) for record in newer] == [1, 1, 1]
    assert len(list(records[0].responses)) >= 2


def test_argilla_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "argilla", None)
    with pytest.raises(MissingExtraError, match="pip install argilla"):
        argilla.import_suggestion()


class Prodigy:
    """What Prodigy's controller has, with a data set in memory."""

    dataset = "animals"

    def __init__(self, *names):
        self.session_ids, self.examples = list(names), []
        self.db = SimpleNamespace(get_dataset_examples=lambda _: self.examples)

    def label(self, task, session, label):
        self.examples.append(
            {"_input_hash": task, "_session_id": session, "accept": [label], "answer": "accept"}
        )


def test_prodigy_routes_doubtful_tasks_to_one_session_more():
    crowd = Prodigy("ann", "bob", "cid", "dan")
    route = prodigy.make_task_router(Overlap(Planner(IBCC(), target=0.97), ahead=1), every=1)
    first = {task: route(crowd, "ann", {"_input_hash": task}) for task in range(12)}
    assert {len(own) for own in first.values()} == {2}
    assert len({tuple(sorted(own)) for own in first.values()}) > 1  # not always the same people
    assert route(crowd, "bob", {"_input_hash": 3}) == first[3]
    for task, (one, other) in first.items():
        crowd.label(task, one, "cat" if task % 2 else "dog")
        crowd.label(task, other, "dog" if task == 5 or task % 2 == 0 else "cat")
    again = {task: route(crowd, "ann", {"_input_hash": task}) for task in range(12)}
    assert [task for task, own in again.items() if own] == [5]
    assert not set(again[5]) & set(first[5])  # nobody labels a task twice
    crowd.label(5, again[5][0], "cat")
    last = next(name for name in crowd.session_ids if name not in {*first[5], *again[5]})
    assert route(crowd, last, {"_input_hash": 5}) in ([last], [])


def test_prodigy_is_not_looked_at_for_every_task():
    crowd, looked = Prodigy("ann", "bob"), []
    crowd.db.get_dataset_examples = lambda _: looked.append(1) or crowd.examples
    route = prodigy.make_task_router(every=5)
    crowd.label(1, "ann", "cat")
    assert route(crowd, "bob", {"_input_hash": 1}) == ["bob"]
    assert route(crowd, "ann", {"_input_hash": 1}) == ["bob"]


def make_request(n_tasks=12):
    """What Ground Truth writes for the function after annotation."""

    def answer(worker, label):
        content = json.dumps({"kind": {"label": label}})
        return {"workerId": worker, "annotationData": {"content": content, "s3Uri": "s3://b/a"}}

    return [
        {
            "datasetObjectId": str(i),
            "dataObject": {"content": f"animal {i}"},
            "annotations": [answer(f"w{j}", "cat" if i % 3 else "dog") for j in range(3)],
        }
        for i in range(n_tasks)
    ]


def make_event():
    return {
        "version": "2018-10-16",
        "labelingJobArn": ARN,
        "labelAttributeName": "kind-label",
        "payload": {"s3Uri": "s3://bucket/requests/1.json"},
    }


@pytest.mark.parametrize("n_tasks", [2, 12])
def test_ground_truth_gets_one_label_for_each_task(n_tasks):
    asked = []

    def fetch(address):
        asked.append(address)
        return json.dumps(make_request(n_tasks)).encode()

    found = ground_truth.consolidate(make_event(), None, fetch=fetch)
    assert asked == ["s3://bucket/requests/1.json"]
    assert [one["datasetObjectId"] for one in found] == [str(i) for i in range(n_tasks)]
    content = [one["consolidatedAnnotation"]["content"] for one in found]
    assert [one["kind-label"] for one in content[:2]] == ["dog", "cat"]
    facts = content[0]["kind-label-metadata"]
    assert 0.5 < facts["confidence"] <= 1
    assert (facts["class-name"], facts["human-annotated"]) == ("dog", "yes")
    json.dumps(found)


def test_ground_truth_tasks_are_passed_on():
    event = {
        "version": "2018-10-16",
        "labelingJobArn": ARN,
        "dataObject": {"source-ref": "s3://a/b"},
    }
    found = ground_truth.handle_task(event)
    assert found == {"taskInput": {"taskObject": "s3://a/b"}, "isHumanAnnotationRequired": "true"}
    with pytest.raises(FormatError, match="source or source-ref"):
        ground_truth.handle_task({"dataObject": {"text": "x"}})


def test_boto3_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MissingExtraError, match="pip install boto3"):
        ground_truth.fetch_from_s3("s3://a/b")
