"""The API: who may do what, what they get to see, and exports that can be read again."""

import io
import json
import re
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

import crowdwise
from crowdwise.io.write import TABLES, WRITERS
from crowdwise.serve.actions import AddLabels, AddTasks
from crowdwise.serve.audit import replay
from crowdwise.serve.database import Database

ROWS = [("t0", "ann", "cat"), ("t0", "bob", "dog"), ("t1", "ann", "dog"), ("t1", "bob", "dog")]


@pytest.fixture
def again(tmp_path):
    """An empty database for a log that is played back."""
    with closing(Database(f"sqlite:///{tmp_path}/again.db")) as database:
        yield database


def ok(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_label_by_hand(client):
    task = ok(client.post("/api/next", json={"worker": "ann"}))
    assert task["task"], task["content"] == ("t0", {"text": "sentence 0"})
    sent = {"worker": "ann", "task": "t0", "label": "dog"}
    assert ok(client.post("/api/labels", json=sent)) == {"stored": 1, "known": 0}
    assert ok(client.get("/api/me", params={"worker": "ann"})) == {
        "worker": "ann",
        "n_labels": 1,
        "labels": [{"task": "t0", "label": "dog"}],
    }
    assert ok(client.get("/api/task", params={"task": "t0"}))["labels"] == {"ann": "dog"}


def test_a_retry_with_its_key_gets_the_same_answer(client):
    batch = {"labels": [{"task": "t0", "worker": "ann", "label": "cat"}]}
    key = {"Idempotency-Key": "abc"}
    answers = [ok(client.post("/api/labels/batch", json=batch, headers=key)) for _ in range(3)]
    assert answers == [{"stored": 1, "known": 0}] * 3
    other = {"labels": [{"task": "t1", "worker": "ann", "label": "cat"}]}
    assert client.post("/api/labels/batch", json=other, headers=key).status_code == 422


def test_a_task_that_a_lead_adds_can_be_labeled(people):
    new = {"tasks": [{"task": "new", "text": "hello", "gold": "cat"}]}
    assert ok(people["lea"].post("/api/tasks", json=new)) == {"stored": 1, "known": 0}
    assert ok(people["lea"].post("/api/tasks", json=new)) == {"stored": 0, "known": 1}
    assert ok(people["lea"].get("/api/task", params={"task": "new"}))["gold"] == "cat"


def test_all_labels_in_every_format(service, client, tmp_path):
    service.ask(AddLabels("lead", ROWS))
    for kind in WRITERS:
        answer = client.get("/api/export/labels", params={"kind": kind})
        assert answer.status_code == 200
        ending = answer.headers["content-disposition"].rpartition(".")[2].strip('"')
        path = tmp_path / f"labels.{ending}"
        path.write_bytes(answer.content)
        if kind == "snorkel":  # names of neither tasks nor classes
            assert np.load(path)[:2].tolist() == [[0, 1], [1, 1]]
            continue
        found = crowdwise.read(path).to_dict()
        assert {task: own for task, own in found.items() if own} == {
            "t0": {"ann": "cat", "bob": "dog"},
            "t1": {"ann": "dog", "bob": "dog"},
        }, kind
    assert client.get("/api/export/labels", params={"kind": "../x"}).status_code == 422


def test_consensus_in_every_format(service, client, wait_for, tmp_path):
    service.ask(AddLabels("lead", ROWS))
    wait_for(lambda: service.observer.standing.seq == service.board.seq)
    for kind in TABLES:
        answer = client.get("/api/export/consensus", params={"kind": kind})
        path = tmp_path / f"labels.{kind}"
        path.write_bytes(answer.content)
        frame = read_table(path)
        assert frame["task"].tolist()[:2] == ["t0", "t1"]
        assert frame["label"].tolist()[1] == "dog", kind
    answer = client.get("/api/export/consensus", params={"kind": "label-studio"}).json()
    assert [one["data"]["task"] for one in answer] == ["t0", "t1"]
    answer = client.get("/api/export/consensus", params={"kind": "argilla"}).json()
    assert [one["label.suggestion"] for one in answer][1] == "dog"


def read_table(path):
    readers = {
        ".csv": pd.read_csv,
        ".tsv": lambda file: pd.read_csv(file, sep="\t"),
        ".json": pd.read_json,
        ".jsonl": lambda file: pd.read_json(file, lines=True),
        ".parquet": pd.read_parquet,
    }
    return readers[path.suffix](path)


def test_state_tasks_workers_model_and_forecast(service, client, wait_for):
    service.ask(AddLabels("lead", ROWS))
    wait_for(lambda: service.observer.plan.n_labels == 4)
    assert ok(client.get("/api/state"))["n_labels"] == 4
    first = ok(client.get("/api/tasks", params={"sort": "confidence", "limit": 1}))["tasks"][0]
    assert first["task"] == "t0"
    assert {row["worker"]: row["labels"] for row in ok(client.get("/api/workers"))} == {
        "ann": 2,
        "bob": 2,
    }
    model = ok(client.get("/api/model"))
    assert model["confusion"]["bob"][1][1] > model["confusion"]["ann"][1][1]
    assert ok(client.get("/api/forecast"))[0]["cost"] == 0


def test_the_description_names_every_route(client):
    paths = ok(client.get("/api/openapi.json"))["paths"]
    page = client.get("/docs").text
    assert {"/api/next", "/api/labels", "/api/export/labels", "/api/tokens"} <= set(paths)
    assert all(path in page for path in paths)


# -- roles -----------------------------------------------------------------------------

LEAD_ONLY = (
    *("state", "tasks", "task?task=t0", "workers", "model", "forecast", "dashboard", "report"),
    *("export/labels", "export/consensus"),
)


@pytest.mark.usefixtures("people")
def test_promise_service_without_a_token_nothing_is_shown(connect):
    stranger = connect()
    for path in (*LEAD_ONLY, "project", "me", "tokens", "events", "image?task=t0"):
        assert stranger.get(f"/api/{path}").status_code == 401
    for path in ("next", "labels", "labels/batch", "skip", "withdraw", "tasks", "tokens"):
        assert stranger.post(f"/api/{path}", json={}).status_code == 401


def test_promise_service_no_worker_sees_the_labels_of_others_or_the_truth(service, people):
    service.ask(AddLabels("lead", [("t0", "bob", "dog")]))
    service.ask(AddTasks("lead", [], [("t5", "cat")]))
    ann = people["ann"]
    for path in (*LEAD_ONLY, "tokens", "events"):
        assert ann.get(f"/api/{path}").status_code == 403, path
    assert ann.get("/api/me", params={"worker": "bob"}).status_code == 403
    assert ann.post("/api/next", json={"worker": "bob"}).status_code == 403
    seen = [ann.get("/api/project"), ann.get("/api/me"), ann.post("/api/next", json={})]
    assert all("bob" not in one.text and "gold" not in one.text for one in seen)


def test_promise_service_a_worker_labels_only_what_was_offered(people):
    ann = people["ann"]
    known = ann.post("/api/labels", json={"task": "t3", "label": "cat"})
    unknown = ann.post("/api/labels", json={"task": "no such", "label": "cat"})
    assert known.status_code == unknown.status_code == 404
    assert known.text.replace("t3", "") == unknown.text.replace("no such", "")
    task = ok(ann.post("/api/next", json={}))["task"]
    assert ok(ann.post("/api/labels", json={"task": task, "label": "cat"}))["stored"] == 1
    as_bob = {"task": task, "label": "cat", "worker": "bob"}
    assert ann.post("/api/labels", json=as_bob).status_code == 403


def test_tokens_are_made_and_revoked(people, connect):
    root = people["root"]
    made = ok(root.post("/api/tokens", json={"name": "cid", "role": "worker"}))
    cid = connect(made["token"])
    assert ok(cid.get("/api/project"))["you"] == "cid"
    assert people["lea"].post("/api/tokens", json={"name": "x"}).status_code == 403
    ok(root.delete(f"/api/tokens/{made['id']}"))
    assert cid.get("/api/project").status_code == 401
    admin = next(one["id"] for one in ok(root.get("/api/tokens")) if one["role"] == "admin")
    assert root.delete(f"/api/tokens/{admin}").status_code == 409


def test_the_first_token_is_an_admins(client):
    assert client.post("/api/tokens", json={"name": "ann", "role": "worker"}).status_code == 409
    assert "token" in ok(client.post("/api/tokens", json={"name": "root", "role": "admin"}))
    assert client.get("/api/state").status_code == 401


def test_settings_change_but_classes_stay(client):
    assert ok(client.patch("/api/project", json={"target": 0.9}))["target"] == 0.9
    more = ok(client.patch("/api/project", json={"classes": ["cat", "dog", "eel"]}))
    assert more["classes"] == ["cat", "dog", "eel"]
    answer = client.patch("/api/project", json={"classes": ["dog", "cat"]})
    assert answer.status_code == 409
    assert client.patch("/api/project", json={"target": 2.0}).status_code == 422


# -- the log ---------------------------------------------------------------------------


def test_promise_service_the_log_replays_to_the_same_state(service, people, again):
    ann, root = people["ann"], people["root"]
    service.ask(AddLabels("lead", ROWS[1:]))
    task = ok(ann.post("/api/next", json={}))["task"]
    ok(ann.post("/api/labels", json={"task": task, "label": "cat"}))
    ok(ann.post("/api/withdraw", json={"task": task}))
    ok(ann.post("/api/labels", json={"task": task, "label": "dog"}))
    log = root.get("/api/events").text
    events = [json.loads(line) for line in log.splitlines()]
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    assert all("digest" not in line for line in log.splitlines())
    assert [one["label"] for one in events if one["task"] == task and one["worker"] == "ann"] == [
        *("cat", "", "dog")
    ]
    board = replay(again, io.StringIO(log))
    assert board.annotations().to_dict() == service.board.annotations().to_dict()
    assert (board.seq, board.keys) == (service.board.seq, {})


def test_a_log_that_was_tampered_with_is_refused(service, client, again):
    service.ask(AddLabels("lead", ROWS))
    log = client.get("/api/events").text.splitlines(keepends=True)
    gap, swapped = log[:3] + log[4:], [*log[:2], log[3], log[2], *log[4:]]
    unknown = [*log[:-1], log[-1].replace('"t1"', '"t99"')]
    for lines in (gap, swapped, unknown, [*log[:2], "{", *log[3:]]):
        with pytest.raises(crowdwise.errors.FormatError, match=r"line \d|Event \d"):
            replay(again, lines)
    assert replay(again, log).seq == len(log)


FORGED = {
    "another type": lambda one: one | {"task": 5},
    "no time": lambda one: one | {"at": float("nan")},
    "a truth for a number": lambda one: one | {"turn": True},
    "a body that is none": lambda one: one | {"body": []},
    "a label twice": lambda one: one | {"seq": one["seq"] + 1, "turn": 1},
    "another turn": lambda one: one | {"turn": 7},
    "an unknown class": lambda one: one | {"label": "cow"},
    "no worker": lambda one: one | {"worker": ""},
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_promise_service_a_forged_log_is_refused(service, client, again, change):
    service.ask(AddLabels("lead", ROWS))
    log = client.get("/api/events").text.splitlines(keepends=True)
    forged = change(json.loads(log[-1]))
    kept = log if forged["seq"] > len(log) else log[:-1]
    with pytest.raises(crowdwise.errors.FormatError, match=r"(line|Event) \d(.|\n)*fix: "):
        replay(again, [*kept, json.dumps(forged)])
    for kind, other in {
        "task": {"turn": 1},
        "project": {"turn": 1, "body": {"classes": "dogcat"}},
        "gold": {"task": "t1", "label": "cow"},
    }.items():
        first = next((json.loads(line) for line in log if json.loads(line)["kind"] == kind), {})
        forged = json.loads(log[-1]) | first | {"kind": kind, "seq": len(log) + 1} | other
        with pytest.raises(crowdwise.errors.FormatError, match="contradicts"):
            replay(again, [*log, json.dumps(forged)])


def test_promise_service_a_log_grants_no_access(people, again):
    log = [json.loads(line) for line in people["root"].get("/api/events").text.splitlines()]
    tokens = [one for one in log if one["kind"] == "token"]
    for one in tokens:
        one["body"] = {"digest": "0" * 64}
    board = replay(again, map(json.dumps, log))
    assert tokens
    assert board.keys == {}


def test_the_reference_lists_what_each_route_takes(client):
    page = client.get("/docs").text
    given = set(re.findall(r"<dt><code>(\w+)</code></dt><dd>query", page))
    assert {"task", "sort", "start", "limit", "kind"} <= given
    assert "<dt><code>authorization" not in page  # of every route, and said once above
