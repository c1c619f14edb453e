"""When things break: what was acknowledged is kept, what was not is not there, nothing twice."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import httpx
import pytest
from sqlalchemy import event, text

from crowdwise.serve import Service
from crowdwise.serve.actions import AddLabels, TakeTask
from crowdwise.serve.database import UnavailableError


@pytest.fixture
def process(tmp_path):
    """The command, started for real; returns the process and its address."""
    started = []

    def start(*words):
        command = [sys.executable, "-m", "crowdwise", "serve", "--port", "0", *words]
        one = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        started.append(one)
        for line in one.stderr:
            if "serving on" in line:
                return one, line.split()[2]
        raise AssertionError("the service did not start")

    yield start
    for one in started:
        one.kill()
        one.wait()
        one.stderr.close()


def test_promise_service_kill_at_any_moment_loses_no_acknowledged_label(process, tmp_path):
    rows = "\n".join(f"t{i},sentence {i}" for i in range(400))
    (tmp_path / "tasks.csv").write_text(f"task,text\n{rows}\n")
    words = ("--project", "tasks.csv", "--classes", "cat,dog", "--database", "sqlite:///kill.db")
    one, url = process(*words)
    acknowledged, unsure = [set() for _ in range(4)], [set() for _ in range(4)]

    def work(place):
        """Send labels until nobody answers."""
        worker = f"w{place}"
        with httpx.Client(base_url=url, timeout=5) as client:
            for i in range(400):
                body = {"task": f"t{i}", "worker": worker, "label": "dog"}
                unsure[place] = {(f"t{i}", worker)}
                try:
                    answer = client.post("/api/labels", json=body)
                except httpx.TransportError:
                    return
                assert answer.status_code == 200
                acknowledged[place].add((f"t{i}", worker))

    crowd = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in crowd:
        thread.start()
    while sum(map(len, acknowledged)) < 60:
        time.sleep(0.001)
    os.kill(one.pid, signal.SIGKILL)
    for thread in crowd:
        thread.join()
    told = set().union(*acknowledged)
    with Service(f"sqlite:///{tmp_path}/kill.db") as again:
        votes = again.board.annotations()
        frame = votes.to_frame()
        found = set(zip(frame["task"], frame["worker"], strict=True))
        assert len(found) == votes.n_annotations
        assert told <= found <= told | set().union(*unsure)
        retry = [(task, worker, "dog") for task, worker in sorted(told)]
        assert again.ask(AddLabels("lead", retry)) == {"stored": 0, "known": len(told)}


def test_promise_service_a_full_disk_gives_errors_and_no_doubles(service, client):
    engine = service.database.engine
    service.ask(AddLabels("lead", [("t0", "ann", "cat")]))

    @event.listens_for(engine, "checkout")
    def fill(connection, *_):  # as SQLite says it when there is no room for another page
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")

    rows = [{"task": f"t{i}", "worker": "x" * 400 + str(k), "label": "dog"}
            for i in range(6) for k in range(20)]  # fmt: skip
    full = client.post("/api/labels/batch", json={"labels": rows})
    assert full.status_code == 503
    assert "full" in full.json()["detail"]
    assert full.headers["retry-after"]
    assert client.get("/api/state").json()["n_labels"] == 1
    event.remove(engine, "checkout", fill)
    engine.dispose()
    for stored in (120, 0):
        answer = client.post("/api/labels/batch", json={"labels": rows}).json()
        assert answer == {"stored": stored, "known": 120 - stored}
    assert client.get("/api/state").json()["n_labels"] == 121


def test_promise_service_a_lost_connection_gives_errors_and_no_doubles(
    service, client, monkeypatch
):
    """Lost after the commit, before anyone was told: the worst moment."""
    label, key = {"task": "t0", "worker": "ann", "label": "cat"}, {"Idempotency-Key": "one"}
    dialect = service.database.engine.dialect

    def commit_and_lose(connection):
        connection.commit()
        raise sqlite3.OperationalError("the connection is gone")

    with monkeypatch.context() as patched:
        patched.setattr(dialect, "do_commit", commit_and_lose)
        lost = client.post("/api/labels", json=label, headers=key)
        assert lost.status_code == 503
        assert "send the request again" in lost.json()["detail"]
    answers = [client.post("/api/labels", json=label, headers=key).json() for _ in range(2)]
    assert answers == [{"stored": 1, "known": 0}] * 2
    assert client.post("/api/labels", json=label).json() == {"stored": 0, "known": 1}
    assert service.board.annotations().n_annotations == 1


def test_a_task_is_not_lost_with_a_lease_that_could_not_be_stored(service, monkeypatch):
    def lose(connection):
        connection.rollback()
        raise sqlite3.OperationalError("the connection is gone")

    with monkeypatch.context() as patched:
        patched.setattr(service.database.engine.dialect, "do_commit", lose)
        with pytest.raises(UnavailableError, match="connection is gone"):
            service.ask(TakeTask("ann"))
    taken = [service.ask(TakeTask(worker))["task"] for worker in ("bob", "cid", "ann")]
    assert taken == ["t0", "t0", "t1"]


def test_two_services_on_one_file_agree(service, address, wait_for):
    with Service(address) as other:
        for i in range(6):
            one, two = (service, other) if i % 2 else (other, service)
            task = one.ask(TakeTask("ann"))["task"]
            assert two.ask(TakeTask("ann"))["task"] == task == f"t{i}"
            two.ask(AddLabels("ann", [(task, "ann", "dog")]))
            assert one.ask(AddLabels("ann", [(task, "ann", "dog")])) == {"stored": 0, "known": 1}
        wait_for(lambda: other.board.seq == service.board.seq)
        assert other.board.annotations().to_dict() == service.board.annotations().to_dict()


def test_no_change_of_the_settings_is_lost_to_another(service, address, serving):
    with Service(address) as other, serving(service) as one, serving(other) as two:
        for url, change in (
            (one, {"title": "Animals"}),
            (two, {"cost": 7.0}),
            (one, {"lease": 9.0}),
        ):
            assert httpx.patch(f"{url}/api/project", json=change).status_code == 200
        settings = service.board.settings
        assert (settings.title, settings.cost, settings.lease) == ("Animals", 7.0, 9.0)


def test_a_newer_database_is_refused(service, address):
    with service.database.exclusive() as connection:
        connection.execute(text("UPDATE crowdwise_schema SET version = 99"))
    with pytest.raises(ValueError, match="version 99"):
        Service(address)
