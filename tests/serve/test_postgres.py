"""A real PostgreSQL server, started for these tests on a free port."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from crowdwise.serve import Service
from crowdwise.serve.actions import AddLabels, TakeTask
from crowdwise.serve.database import UnavailableError


def find_programs():
    """The folder with initdb and pg_ctl, as Debian or others have it."""
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = shutil.which("initdb") or (known[-1] if known else None)
    return None if found is None else Path(found).parent


class Server:
    """A PostgreSQL server in a folder of its own. It refuses to run as root."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.user = None
        if os.geteuid() == 0:
            self.user = "postgres"
            os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
        self.run("initdb", "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8")
        self.start()

    def run(self, program, *words):
        command = [str(self.programs / program), "-D", str(self.folder / "data"), *words]
        subprocess.run(command, check=True, capture_output=True, user=self.user, cwd="/")

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder}"
        log = str(self.folder / "log")
        self.run("pg_ctl", "-w", "-l", log, "-o", options, "start")

    def stop(self):
        self.run("pg_ctl", "-w", "-m", "immediate", "stop")

    def new_database(self, name):
        base = f"postgresql://tester@127.0.0.1:{self.port}"
        words = ["psql", f"{base}/postgres", "-qc", f"CREATE DATABASE {name}"]
        subprocess.run(words, check=True, capture_output=True)
        return f"{base}/{name}"


@pytest.fixture(scope="module")
def server():
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    if os.geteuid() == 0 and "postgres" not in {one.pw_name for one in pwd.getpwall()}:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    with tempfile.TemporaryDirectory(prefix="crowdwise-pg-") as folder:
        found = Server(programs, Path(folder))
        yield found
        found.stop()


def test_promise_service_two_services_on_one_postgresql_agree(server, begin, wait_for):
    url = server.new_database("two")
    with Service(url) as one, Service(url) as two:
        tasks = [(f"n{i}", {}) for i in range(30)]
        begin(one, tasks=tasks, min_labels=3, max_labels=3)

        def work(service, worker):
            while (task := service.ask(TakeTask(worker))["task"]) is not None:
                label = "dog" if int(task[1:]) % 3 else "cat"
                service.ask(AddLabels(worker, [(task, worker, label)], offered_only=True))

        crowd = [threading.Thread(target=work, args=((one, two)[i % 2], f"w{i}")) for i in range(6)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        wait_for(lambda: one.board.seq == two.board.seq)
        votes = one.board.annotations()
        assert votes.n_repeats == 0
        assert votes.redundancy.tolist() == [3] * 30  # nobody got a label too many
        assert two.board.annotations().to_dict() == votes.to_dict()
        for service in (one, two):
            wait_for(lambda service=service: service.observer.standing.seq == service.board.seq)
        first, second = (each.observer.standing.posterior for each in (one, two))
        np.testing.assert_allclose(first, second, atol=1e-3)


def test_promise_service_a_server_that_restarts_loses_nothing(server, begin):
    with Service(server.new_database("restart")) as service:
        begin(service)
        assert service.ask(AddLabels("ann", [("t0", "ann", "cat")])) == {"stored": 1, "known": 0}
        server.stop()
        with pytest.raises(UnavailableError, match="nothing was stored"):
            service.ask(AddLabels("ann", [("t1", "ann", "cat")]))
        server.start()
        rows = [("t0", "ann", "cat"), ("t1", "ann", "cat")]
        assert service.ask(AddLabels("ann", rows)) == {"stored": 1, "known": 1}
        assert service.board.annotations().n_annotations == 2


def test_the_longest_names_fit(server, begin):
    longest = ["".join(chr(0x20000 + 7 * (i + k)) for i in range(250)) for k in range(2)]
    with Service(server.new_database("longest")) as service:
        begin(service, tasks=[(longest[0], {})])
        assert service.ask(AddLabels("lead", [(*longest, "cat")])) == {"stored": 1, "known": 0}
