"""How many labels a second the service takes, and how long a worker waits for the next task.

A PostgreSQL server (or SQLite) on this machine, one service process, clients in another. The
same rows inserted bare, one transaction each, are the yardstick.

python benchmarks/service.py --database postgresql://… --tasks 1e5 --labels 1e6 --seconds 30

On a machine that others use, ``chrt -r 10`` for this and the server keeps them out of the way.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import results_files
from sqlalchemy import text

from crowdwise.serve import Service, Settings
from crowdwise.serve.actions import AddLabels, AddTasks, ChangeProject
from crowdwise.serve.database import Database
from crowdwise.serve.events import count_events

CLASSES = ("yes", "no", "maybe")
BATCH = 5_000


def fill(address: str, n_tasks: int, n_labels: int) -> float:
    """Store a project of this size; returns the seconds it took."""
    start, rng = time.perf_counter(), np.random.default_rng(0)
    truth = rng.integers(0, 3, n_tasks)
    with Service(address) as service:
        settings = Settings(classes=CLASSES, max_labels=1_000, target=0.999_999)
        service.ask(ChangeProject("bench", settings))
        for first in range(0, n_tasks, BATCH):
            names = range(first, min(first + BATCH, n_tasks))
            service.ask(AddTasks("bench", [(f"t{i}", {"text": f"task {i}"}) for i in names]))
        per_worker = n_tasks // 2
        for worker in range(max(n_labels // per_worker, 1)):
            mine = rng.permutation(n_tasks)[:per_worker]
            right = rng.random(per_worker) < 0.75
            label = np.where(right, truth[mine], rng.integers(0, 3, per_worker))
            rows = [(f"t{t}", f"old{worker}", CLASSES[k]) for t, k in zip(mine, label, strict=True)]
            for at in range(0, len(rows), BATCH):
                service.ask(AddLabels("bench", rows[at : at + BATCH]))
    return time.perf_counter() - start


def insert_bare(address: str, seconds: float) -> float:
    """Rows a second that one connection inserts, a transaction each, with nothing else to do."""
    database, n = Database(address), 0
    with database.engine.connect() as connection:
        connection.execute(text("CREATE TABLE bare (task text, who text, label text)"))
        connection.commit()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            row = {"task": f"t{n}", "who": "ann", "label": "yes"}
            connection.execute(text("INSERT INTO bare VALUES (:task, :who, :label)"), row)
            connection.commit()
            n += 1
        connection.execute(text("DROP TABLE bare"))
        connection.commit()
    database.close()
    return n / seconds


def processor_seconds(pid: int) -> float:
    """What a process has used so far, its live model included (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    """One connection that is kept: httpx takes as long for a request as the service does."""

    def __init__(self, url: str) -> None:
        self.host, self.port = url.removeprefix("http://").split(":")

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(self.host, int(self.port))

    async def post(self, path: str, body: dict) -> dict:
        """The answer to a request, which has to be 200."""
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json"
        self.writer.write(f"{head}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        size = next(int(one.split(":")[1]) for one in lines if one.startswith("content-length"))
        found = json.loads(await self.reader.readexactly(size))
        assert lines[0].split()[1] == "200", found
        return found


async def load(url: str, n_workers: int, seconds: float) -> dict[str, list[float]]:
    """Workers who ask for a task, label it, and ask again; the seconds of each request."""
    times: dict[str, list[float]] = {"next": [], "label": []}
    end = time.perf_counter() + seconds

    async def work(name: str) -> None:
        client = Client(url)
        await client.open()
        while time.perf_counter() < end:
            start = time.perf_counter()
            found = await client.post("/api/next", {"worker": name})
            times["next"].append(time.perf_counter() - start)
            body = {"task": found["task"], "worker": name, "label": "yes"}
            start = time.perf_counter()
            await client.post("/api/labels", body)
            times["label"].append(time.perf_counter() - start)
        client.writer.close()

    await asyncio.gather(*(work(f"new{i}") for i in range(n_workers)))
    return times


def main() -> None:
    # A database that has a project is measured as it is, so that it can be filled beforehand.
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", required=True)
    parser.add_argument("--tasks", type=float, default=1e5)
    parser.add_argument("--labels", type=float, default=1e6)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args()
    database = Database(args.database)
    with database.reading() as connection:
        is_new = not count_events(connection)
    database.close()
    filled = fill(args.database, int(args.tasks), int(args.labels)) if is_new else float("nan")
    bare = insert_bare(args.database, 5.0)
    command = [sys.executable, "-m", "crowdwise", "serve", "--port", "0"]
    server = subprocess.Popen(
        [*command, "--database", args.database], stderr=subprocess.PIPE, text=True
    )
    try:
        start = time.perf_counter()
        url = next(line.split()[2] for line in server.stderr or () if "serving on" in line)
        ready = time.perf_counter() - start
        asyncio.run(load(url, args.clients, 5.0))
        used = processor_seconds(server.pid)
        times = asyncio.run(load(url, args.clients, args.seconds))
        used = processor_seconds(server.pid) - used
        state = httpx.get(f"{url}/api/state", timeout=60).json()
    finally:
        server.terminate()
        server.wait()
    rate = len(times["label"]) / args.seconds
    found = {
        "database": args.database.partition(":")[0],
        "tasks": int(args.tasks),
        "labels": state["n_labels"],
        "clients": args.clients,
        "labels_per_second": round(rate, 1),
        "bare_inserts_per_second": round(bare, 1),
        "ratio": round(rate / bare, 3),
        "processor_ms_per_label": round(1e3 * used / len(times["label"]), 2),
        "events_not_learned_at_the_end": state["n_events"] - state["n_events_learned"],
        "load_average": round(os.getloadavg()[0], 1),
        "scheduling": "real-time" if os.sched_getscheduler(0) else "normal",
        "seconds_to_fill": round(filled, 1) if is_new else "filled beforehand",
        "seconds_to_start": round(ready, 1),
    }
    for name, own in times.items():
        for level in (50, 99):
            found[f"{name}_p{level}_ms"] = round(1e3 * float(np.percentile(own, level)), 1)
    print(json.dumps(found, indent=1))
    rows = [[name.replace("_", " "), str(value)] for name, value in found.items()]
    about = results_files.provenance("python benchmarks/service.py --database postgresql://…")
    text = f"# The service under load\n\n{results_files.table(['what', 'measured'], rows)}"
    results_files.save("service", about, [found], text)


if __name__ == "__main__":
    main()
