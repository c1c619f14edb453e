"""Label Studio, replayed from an exchange with a running one (`make test-live` records it)."""

import json
import re
import socket
import threading
from pathlib import Path

import httpx
import pandas as pd
import pytest

from crowdwise import read
from crowdwise.aggregate import IBCC
from crowdwise.connect import ConnectError, LabelStudio, Overlap
from crowdwise.connect.label_studio import PAGE, name_version
from crowdwise.connect.label_studio_backend import Backend, make_server
from crowdwise.errors import FormatError, ParameterError
from crowdwise.io.consensus import consensus_frame
from crowdwise.plan import Planner

RECORDED = json.loads((Path(__file__).parent / "label_studio_exchange.json").read_text())
PROJECT = RECORDED["project"]


class Replay:
    """Answers as the server did, in its order; anything else that is asked is an error."""

    url = "http://label-studio.example"

    def __init__(self):
        self.left = list(RECORDED["exchange"])

    def ask(self, method, path, body=None, **_):
        wanted = self.left.pop(0)
        assert (method, path) == (wanted["method"], wanted["path"])
        if "token" not in path:
            assert rounded(body) == rounded(wanted["body"])
        return wanted["answer"]


def rounded(body):
    """As it would be sent, but for the last digits."""
    return json.loads(json.dumps(body), parse_float=lambda text: round(float(text), 5))


class Server:
    """A project in memory, as far as the client can tell."""

    url = "http://label-studio.example"
    config = {"kind": {"type": "Choices", "to_name": ["text"], "labels": ["cat", "dog"]}}

    def __init__(self, votes, controls=config, xml="<View/>"):
        self.controls, self.xml, self.asked, self.lose = controls, xml, [], 0
        self.tasks = [
            {
                "id": number,
                "annotations": [
                    {
                        "id": 10 * number + i,
                        "completed_by": {"id": who, "email": f"{who}@example.com"},
                        "result": answer("kind", label),
                    }
                    for i, (who, label) in enumerate(given.items())
                ],
                "predictions": [],
                "total_annotations": len(given),
                "overlap": 1,
                "is_labeled": bool(given),
            }
            for number, given in votes.items()
        ]

    def ask(self, method, path, body=None, **_):
        self.asked.append((method, path.partition("?")[0]))
        if path.startswith("/api/projects/") and path.endswith("/import/predictions"):
            for one in body[: len(body) // 2 if self.lose else None]:
                self.find(one["task"])["predictions"].append(one)
            if self.lose:
                self.lose -= 1
                raise ConnectError("There was no response.")
            return None
        if path.startswith("/api/projects/"):
            parsed = {"parsed_label_config": self.controls, "label_config": self.xml}
            return {**parsed, "task_number": len(self.tasks)}
        if path.startswith("/api/tasks?"):
            after = int(path.partition("%22value%22%3A%20")[2].partition("%7D")[0])
            return {"tasks": [task for task in self.tasks if task["id"] > after][:PAGE]}
        task = self.find(int(path.rstrip("/").rpartition("/")[2]))
        return json.loads(json.dumps(task)) if method == "GET" else task.update(body)

    def find(self, number):
        return next(task for task in self.tasks if task["id"] == number)


def answer(name, label):
    value = {"choices": [label]}
    return [{"from_name": name, "to_name": "text", "type": "choices", "value": value}]


def connect(server, **more):
    return LabelStudio(server.url, "0123", 1, link=server, **more)


def votes_of(n_tasks, split=()):
    """Two labels each: alike, or in split tasks one of them wrong, by either."""
    found = {}
    for i in range(1, n_tasks + 1):
        truth, other = ("cat", "dog") if i % 2 else ("dog", "cat")
        wrong = None if i not in split else "bob" if i % 4 > 1 else "ann"
        found[i] = {who: other if who == wrong else truth for who in ("ann", "bob")}
    return found


def test_promise_connect_a_second_round_trip_changes_nothing(tmp_path):
    replay = Replay()
    studio = LabelStudio(replay.url, "a.b.c", PROJECT, link=replay)
    found = []
    for _ in range(2):
        assert studio.pull(tmp_path / "votes.jsonl") == 3
        votes = read(tmp_path / "votes.jsonl")
        found.append(studio.push(consensus_frame(IBCC().fit(votes), votes)))
    assert [(one.new, one.known) for one in found] == [(3, 0), (0, 3)]
    assert found[0].version == found[1].version
    first, _, third = votes.to_dict().values()
    assert list(first.values()) == ["cat", "cat"]
    assert list(third.values()) == ["cat", "dog"]
    assert "@" not in (tmp_path / "votes.jsonl").read_text()  # people are numbers
    studio.order(found[0].version)
    numbers = [int(task) for task in votes.tasks]
    for changed in (2, 0):
        tasks = list(studio.tasks())
        assert studio.set_overlap(tasks, {numbers[0]: False, numbers[2]: True}) == changed
    assert not replay.left


def test_the_recorded_exchange_has_no_token():
    text = json.dumps(RECORDED)
    assert "eyJ" not in text
    assert '"refresh": "a.b.c"' in text


def test_pages_go_on_after_the_last_number(tmp_path):
    server = Server(votes_of(2 * PAGE + 7))
    assert connect(server).pull(tmp_path / "votes.jsonl") == 2 * PAGE + 7
    assert server.asked.count(("GET", "/api/tasks")) == 3


@pytest.mark.parametrize("stopped_by", [KeyboardInterrupt, ConnectError])
def test_an_interrupted_pull_goes_on_where_it_stopped(stopped_by, tmp_path):
    server, target = Server(votes_of(PAGE + 5)), tmp_path / "votes.jsonl"
    studio = connect(server)
    pages = studio._page

    def stop(after, condition):
        if after:
            raise stopped_by("no answer")
        return pages(after, condition)

    studio._page = stop
    with pytest.raises(stopped_by, match="no answer"):
        studio.pull(target)
    assert not target.exists()
    part = next(tmp_path.iterdir())
    part.write_bytes(part.read_bytes() + b'{"id": 9999, "cut off in the mid')
    server.asked.clear()
    studio._page = pages
    assert studio.pull(target) == PAGE + 5
    assert server.asked.count(("GET", "/api/tasks")) == 1
    assert [json.loads(line)["id"] for line in target.read_text().splitlines()] == list(
        range(1, PAGE + 6)
    )
    assert list(tmp_path.iterdir()) == [target]


def test_what_arrived_before_the_connection_broke_is_not_sent_again():
    server = Server(votes_of(6))
    server.lose = 1
    labels = pd.DataFrame({"task": range(1, 7), "label": "cat", "confidence": 0.9})
    assert connect(server).push(labels) == (name_version(labels), 6, 0)
    assert [len(task["predictions"]) for task in server.tasks] == [1] * 6


def test_the_version_follows_from_the_labels():
    labels = pd.DataFrame({"task": [1, 2], "label": ["cat", "dog"], "confidence": [0.9, 0.8]})
    assert name_version(labels) == name_version(labels[::-1])
    assert name_version(labels) != name_version(labels.assign(confidence=0.7))


def test_labels_that_the_interface_lacks_are_refused():
    labels = pd.DataFrame({"task": [1], "label": ["eel"], "confidence": [0.9]})
    with pytest.raises(FormatError, match=r"'kind' does not have.*\n.*eel"):
        connect(Server(votes_of(1))).push(labels)


def test_one_question_of_several_has_to_be_named():
    controls = {**Server.config, "mood": {**Server.config["kind"], "type": "Rating"}}
    server = Server(votes_of(1), controls)
    with pytest.raises(ParameterError, match="2 questions answered by a class"):
        connect(server).find_control()
    assert connect(server, question="mood").find_control().kind == "rating"


STARS = {"stars": {"type": "Rating", "to_name": ["text"], "labels": []}}
FOUR_STARS = '<View><Rating name="stars" toName="text" maxRating="4"/></View>'


@pytest.mark.parametrize("given", [[3, 4], [3.0, 4.0], ["3", "4"], ["3.0", "4.0"]])
def test_a_rating_is_pushed_once_as_a_whole_number(given):
    server = Server(votes_of(2), STARS, FOUR_STARS)
    labels = pd.DataFrame({"task": [1, 2], "label": given, "confidence": 0.9})
    version = name_version(labels.assign(label=[3, 4]))
    assert connect(server).push(labels) == (version, 2, 0)
    assert connect(server).push(labels) == (version, 0, 2)
    sent = [task["predictions"][0]["result"][0]["value"] for task in server.tasks]
    assert json.dumps(sent) == '[{"rating": 3}, {"rating": 4}]'


@pytest.mark.parametrize(
    ("xml", "label", "expected"),
    [
        (FOUR_STARS, 5, "whole numbers from 0 to 4"),
        (FOUR_STARS.replace('maxRating="4"', ""), 6, "whole numbers from 0 to 5"),
        (FOUR_STARS, 2.5, "whole numbers from 0 to 4"),
        (FOUR_STARS, "good", "whole numbers from 0 to 4"),
        ("<View", -1, "whole numbers from 0\n"),
    ],
)
def test_promise_connect_a_rating_that_is_none_is_refused(xml, label, expected):
    server = Server(votes_of(2), STARS, xml)
    labels = pd.DataFrame({"task": [1, 2], "label": [3, label], "confidence": 0.9})
    with pytest.raises(FormatError, match=f"1 label cannot be a rating(.|\n)*{expected}"):
        connect(server).push(labels)
    assert all(method == "GET" for method, _ in server.asked)


def test_choices_that_each_task_brings_are_not_known():
    each = {"kind": {**Server.config["kind"], "labels": [], "dynamic_labels": True}}
    server = Server(votes_of(1), each)
    labels = pd.DataFrame({"task": [1], "label": ["eel"], "confidence": [0.9]})
    assert connect(server).push(labels).new == 1


def test_doubtful_tasks_are_opened_and_others_closed():
    server = Server(votes_of(12, split={3, 6, 9}) | {13: {}})
    backend = Backend(connect(server), Overlap(Planner(IBCC(), target=0.96), ahead=2))
    backend.control = backend.studio.find_control()
    backend.read_all()
    backend.think()
    opened = {task["id"] for task in server.tasks if not task["is_labeled"]}
    assert opened - {13} < {3, 6, 9}
    assert len(opened - {13}) == 2
    assert {server.find(i)["overlap"] for i in opened - {13}} == {3}
    assert server.find(1)["overlap"] == 2
    assert server.find(13)["overlap"] == 1  # nobody has labeled it
    server.asked.clear()
    backend.think()
    assert not server.asked  # all is as it should be


def test_a_webhook_makes_the_backend_look_again(wait_for):
    server = Server(votes_of(8, split={2}))
    backend = Backend(connect(server), Overlap(Planner(IBCC(), target=0.96)), pause=0.01)
    backend.start()
    assert not server.find(2)["is_labeled"]
    before = backend.version
    for who in ("cid", "dan"):
        server.find(2)["annotations"].append(
            {"id": who, "completed_by": who, "result": answer("kind", "dog")}
        )
    server.find(2)["total_annotations"] = 4
    body = {"action": "ANNOTATION_CREATED", "project": {"id": 1}, "task": {"id": 2}}
    assert backend.answer("POST", "/webhook", body) == {"status": "noticed"}
    wait_for(lambda: server.find(2)["is_labeled"])
    assert backend.version != before
    backend.close()


def test_the_backend_answers_as_label_studio_asks():
    server = Server(votes_of(8, split={2}))
    backend = Backend(connect(server), Overlap(Planner(IBCC())))
    backend.start()
    assert backend.answer("GET", "/health", None)["status"] == "UP"
    assert backend.answer("POST", "/setup", {"schema": ""}) == {"model_version": backend.version}
    asked = {"tasks": [{"id": 1}, {"id": 99}]}
    first, unknown = backend.answer("POST", "/predict", asked)["results"]
    assert first["result"] == []  # or annotators would agree with it
    assert first["score"] > 0.5 > unknown["score"] == 0
    backend.shown = True
    shown = backend.answer("POST", "/predict", asked)["results"]
    assert [one["result"] for one in shown] == [answer("kind", "cat"), []]
    other = {"action": "ANNOTATION_CREATED", "project": {"id": 7}}
    assert backend.answer("POST", "/webhook", other) == {"status": "ignored"}
    assert backend.answer("GET", "/secrets", None) is None
    backend.close()


def test_a_ground_truth_counts_for_what_it_is():
    server = Server(votes_of(8, split={2}))
    server.find(2)["annotations"].append(
        {"id": 7, "completed_by": "lea", "result": answer("kind", "dog"), "ground_truth": True}
    )
    server.find(2)["total_annotations"] = 3
    backend = Backend(connect(server), Overlap(Planner(IBCC(), target=0.96)))
    backend.control = backend.studio.find_control()
    backend.read_all()
    backend.think()
    assert backend.consensus[2] == ("dog", 1)


@pytest.mark.parametrize(
    "answer",
    [
        *(None, [], 5, "text", {"tasks": 5}, {"tasks": [5]}, {"tasks": [{}]}),
        {"tasks": [{"id": "1; x", "total_annotations": 1}]},
        {"tasks": [{"id": float("inf"), "total_annotations": 1}]},
        {"tasks": [{"id": 1, "total_annotations": 1, "annotations": "abc"}]},
        {"tasks": [{"id": 1, "total_annotations": 1, "predictions": [None]}]},
        {"tasks": [{"id": 1, "total_annotations": 1}] * PAGE},  # which would never end
    ],
    ids=lambda answer: str(answer)[:60],
)
def test_promise_connect_an_answer_of_something_else_is_one_clear_error(answer):
    server = Server({})
    studio = connect(server)
    server.ask = lambda *_, **__: answer
    with pytest.raises(ConnectError, match="not what Label Studio sends"):
        list(studio.tasks())


@pytest.mark.parametrize("answer", [None, [], {"parsed_label_config": {"kind": 5}}])
def test_promise_connect_a_project_that_is_none_is_one_clear_error(answer):
    studio = connect(Server({}))
    studio.link.ask = lambda *_, **__: answer
    with pytest.raises(ConnectError, match="not what Label Studio sends"):
        studio.find_control()
    with pytest.raises(ConnectError, match="an access token"):
        LabelStudio("http://host", "a.b.c", 1, link=studio.link).show_project()


@pytest.mark.parametrize(
    ("task", "sure", "said"),
    [
        (["x", 2], [0.5, 0.5], "task 'x'"),
        ([1.5, 2], [0.5, 0.5], "task 1.5"),
        ([-1, 2], [0.5, 0.5], "task -1"),
        ([1, 1], [0.5, 0.5], "every task once"),
        ([1, 2], [0.5, 7.0], "confidence 7.0"),
        ([1, 2], [None, 0.5], "confidence nan"),
        ([1, 2], ["high", 0.5], "confidence 'high'"),
    ],
)
def test_promise_connect_labels_that_cannot_be_pushed_are_refused(task, sure, said):
    server = Server(votes_of(2))
    labels = pd.DataFrame({"task": task, "label": "cat", "confidence": sure})
    with pytest.raises(FormatError, match=re.escape(said)):
        connect(server).push(labels)
    with pytest.raises(FormatError, match="no column confidence"):
        connect(server).push(labels[["task", "label"]])
    assert not server.asked


def test_promise_connect_a_webhook_reaches_no_other_task(url):
    for task in ("../../users/1", [1], {"a": 1}, 1.5, True):
        told = {"action": "ANNOTATION_CREATED", "task": {"id": task}}
        assert httpx.post(f"{url}/webhook", json=told).status_code == 400
    for body in (b"[" * 100_000, b'{"tasks": [{"id": Infinity}]}'):
        assert httpx.post(f"{url}/predict", content=body).status_code == 400
    server = Server(votes_of(3))
    backend = Backend(connect(server))
    server.tasks[1]["project"] = 7  # of others
    backend.read_some({1, 2, 3})
    assert sorted(backend._tasks) == [1, 3]


@pytest.fixture
def url():
    backend = Backend(connect(Server(votes_of(4))))
    server = make_server(backend, port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_backend_refuses_what_label_studio_does_not_send(url):
    assert httpx.get(f"{url}/health").json()["status"] == "UP"
    assert httpx.get(f"{url}/secrets").status_code == 404
    assert httpx.post(f"{url}/predict", content=b"{").status_code == 400
    assert httpx.post(f"{url}/predict", json={"tasks": [{"id": [1]}]}).status_code == 400
    assert httpx.post(f"{url}/predict", json=[]).json()["results"] == []
    assert httpx.post(f"{url}/predict", content=iter([b"{}"])).status_code == 411
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 5) as raw:
        raw.sendall(b"POST /predict HTTP/1.0\r\nContent-Length: 1000000000000\r\n\r\n")
        assert b" 413 " in raw.recv(100)
