"""Round trips with a running Label Studio: nothing is lost, doubled, or changed that people made.

`make test-live` installs Label Studio in an environment of its own and runs this. The server
keeps its data in a temporary folder, listens on loopback, and is ended afterwards. A short
exchange is recorded for `make test`, without tokens.

python benchmarks/label_studio_live.py --server .venv-label-studio/bin/label-studio
"""

import argparse
import contextlib
import http.cookiejar
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import results_files

from crowdwise import read
from crowdwise.aggregate import IBCC
from crowdwise.connect import LabelStudio, Link, Overlap
from crowdwise.connect.label_studio_backend import Backend, make_server
from crowdwise.io.consensus import consensus_frame
from crowdwise.plan import Planner
from crowdwise.simulate import OneCoinWorker, simulate_crowd

PASSWORD = "only-on-loopback-7"
PEOPLE = [f"{name}@example.com" for name in ("lea", "ann", "bob", "cid", "dan")]
N_TASKS = 110  # more than a page
CONFIG = """<View><Text name="text" value="$text"/><Choices name="kind" toName="text">
<Choice value="cat"/><Choice value="dog"/></Choices></View>"""
RECORDED = Path(__file__).parents[1] / "tests" / "connect" / "label_studio_exchange.json"


@contextlib.contextmanager
def running(program: str) -> Iterator[str]:
    """A server with data of its own, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {
            "LABEL_STUDIO_BASE_DATA_DIR": folder,
            "ML_BLOCK_LOCAL_IP": "false",  # our backend is on this machine, as the next one
            "SSRF_PROTECTION_ENABLED": "false",
            "COLLECT_ANALYTICS": "False",
            "LATEST_VERSION_CHECK": "False",
        }
        command = [program, "start", "--no-browser", "--port", str(port)]
        command += ["--internal-host", "127.0.0.1", "--log-level", "ERROR"]
        command += ["--username", PEOPLE[0], "--password", PASSWORD]
        with (Path(folder) / "log").open("w") as log:
            server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: answers(url), 300)
            yield url
        finally:
            server.terminate()
            server.wait(30)


def answers(url: str) -> bool:
    with contextlib.suppress(URLError, ConnectionError):
        return build_opener().open(f"{url}/health", timeout=5).status == 200
    return False


def wait_until(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.2)


def sign_in(url: str, email: str, path: str) -> str:
    """Sign up or in as a person does, and make a personal access token."""
    jar = http.cookiejar.CookieJar()
    browser = build_opener(HTTPCookieProcessor(jar))
    form = {"email": email, "password": PASSWORD, "allow_newsletters": "false"}
    for target, data in ((path, None), (path, form), ("/api/token/", {})):
        headers = {"Referer": url, "Content-Type": "application/json"}
        body = None
        if data is not None:
            mark = next(one.value for one in jar if one.name == "csrftoken")
            headers["X-CSRFToken"] = mark
            body = json.dumps(data).encode()
        if data is form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode({"csrfmiddlewaretoken": mark, **form}).encode()
        answer = browser.open(Request(f"{url}{target}", body, headers))
    return str(json.load(answer)["token"])


def make_result(label: str) -> list[dict[str, object]]:
    value = {"choices": [label]}
    return [{"from_name": "kind", "to_name": "text", "type": "choices", "value": value}]


def make_project(people: dict[str, LabelStudio], n_tasks: int) -> list[int]:
    """A project with tasks, which every client is pointed to; returns the tasks' numbers."""
    lead = people[PEOPLE[0]]
    made = lead.ask("POST", "/api/projects/", {"title": "animals", "label_config": CONFIG})
    for studio in people.values():
        studio.project = made["id"]
    rows = [{"text": f"animal {i}"} for i in range(n_tasks)]
    lead.ask("POST", f"/api/projects/{made['id']}/import", rows)
    return [int(task["id"]) for task in lead.tasks()]


def annotate(studio: LabelStudio, task: int, label: str, **more: object) -> None:
    body = {"result": make_result(label), **more}
    studio.ask("POST", f"/api/tasks/{task}/annotations/", body)


def list_made_by_people(lead: LabelStudio) -> str:
    """All annotations and drafts, with the time of the last change."""
    tasks = list(lead.tasks())
    for task in tasks:
        for one in task["annotations"] + task["drafts"]:
            one.pop("created_ago", None)
    kept = [(task["id"], task["data"], task["annotations"], task["drafts"]) for task in tasks]
    return json.dumps(kept, sort_keys=True)


def count_predictions(lead: LabelStudio) -> int:
    return sum(len(task["predictions"]) for task in lead.tasks())


class Checks:
    """What was looked at, and what was found."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []

    def see(self, what: str, found: object, expected: object) -> None:
        holds = found == expected
        shown = f"{found}" if holds else f"{found}, expected {expected}"
        self.rows.append({"what": what, "found": shown, "holds": holds})
        sys.stderr.write(f"{'ok  ' if holds else 'FAIL'} {what}: {shown}\n")


def round_trips(people: dict[str, LabelStudio], checks: Checks, folder: Path) -> None:
    """Pull, push and order, twice."""
    lead = people[PEOPLE[0]]
    numbers = make_project(people, N_TASKS)
    crowd = simulate_crowd(
        N_TASKS, n_classes=2, per_task=2, workers=4 * [OneCoinWorker((0.7, 0.95))], random_state=0
    )
    rows = crowd.annotations.to_frame()
    who = {name: one.ask("GET", "/api/current-user/whoami")["id"] for name, one in people.items()}
    wanted = {}
    for task, worker, label in rows[["task", "worker", "label"]].itertuples(index=False):
        name = PEOPLE[1 + int(worker)]
        annotate(people[name], numbers[int(task)], ("cat", "dog")[int(label)])
        wanted.setdefault(numbers[int(task)], {})[who[name]] = ("cat", "dog")[int(label)]
    annotate(people[PEOPLE[1]], numbers[0], "cat", was_cancelled=True)
    draft = {"result": make_result("dog"), "lead_time": 1.0}
    people[PEOPLE[2]].ask("POST", f"/api/tasks/{numbers[1]}/drafts", draft)
    before = list_made_by_people(lead)

    first = None
    for number in (1, 2):
        target = folder / f"{number}.jsonl"
        checks.see(f"round {number}: tasks pulled", lead.pull(target), N_TASKS)
        votes = read(target)
        checks.see(f"round {number}: votes as people gave them", votes.to_dict() == wanted, True)
        consensus = consensus_frame(IBCC().fit(votes), votes)
        pushed = lead.push(consensus)
        first = pushed if first is None else first
        checks.see(f"round {number}: predictions new", pushed.new, N_TASKS if number == 1 else 0)
        checks.see(f"round {number}: model version is the same", pushed.version, first.version)
        checks.see(f"round {number}: predictions in all", count_predictions(lead), N_TASKS)
        lead.order(pushed.version)
    after = list_made_by_people(lead)
    checks.see("what people made is as it was", after == before, True)
    sure = consensus.set_index("task")["confidence"]
    page = {int(task["id"]): task["predictions"][0]["score"] for task in lead.tasks()}
    near = all(abs(page[task] - sure[task]) < 1e-6 for task in page)
    checks.see("scores are the confidence", near, True)
    resume(lead, folder, checks)
    lead._access = lead._access[:-4] + "AAAA"
    checks.see("an access token that ran out is renewed", lead.show_project()["id"], lead.project)


def resume(lead: LabelStudio, folder: Path, checks: Checks) -> None:
    """A pull that is cut off in the middle, and goes on."""
    asked, page = [], lead._page

    def break_off(after, condition):
        asked.append(after)
        if after:
            raise KeyboardInterrupt
        return page(after, condition)

    target = folder / "resumed.jsonl"
    lead._page = break_off
    with contextlib.suppress(KeyboardInterrupt):
        lead.pull(target)
    checks.see("an interrupted pull leaves no file", target.exists(), False)
    lead._page = lambda after, condition: asked.append(after) or page(after, condition)
    checks.see("the next one goes on", lead.pull(target), N_TASKS)
    checks.see("and asks for no page twice", asked[2:], asked[1:2])
    same = target.read_bytes() == (folder / "2.jsonl").read_bytes()
    checks.see("the file is as in one go", same, True)
    lead._page = page


def overlap(people: dict[str, LabelStudio], checks: Checks) -> None:
    """The ML backend opens doubtful tasks for one more person, and leaves done ones closed."""
    lead, ann, bob, cid, dan = people.values()
    numbers = make_project(people, 24)
    planner = Planner(IBCC(), target=0.96)
    backend = Backend(lead, Overlap(planner, ahead=3), pause=0.2)
    server = make_server(backend, port=0)
    backend.start()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    made = lead.ask("POST", "/api/ml/", {"project": lead.project, "url": url, "title": "crowdwise"})
    checks.see("Label Studio connects to the backend", made["state"], "CO")
    split = set(numbers[::6])
    for i, number in enumerate(numbers):
        truth, other = ("cat", "dog") if i % 2 else ("dog", "cat")
        wrong = None if number not in split else bob if i % 12 else ann
        for studio in (ann, bob):
            annotate(studio, number, other if studio is wrong else truth)
    wait_until(lambda: len(votes_of(backend)) == 48 and not backend._told, 120)
    time.sleep(3)  # nothing more is to come
    checks.see("open are as many doubtful tasks as should be", len(list_open(lead)), 3)
    checks.see("and no others", list_open(lead) <= split, True)
    got = cid.ask("GET", f"/api/projects/{lead.project}/next/")
    checks.see("the next person is given one of them", int(got["id"]) in split, True)
    annotate(cid, int(got["id"]), "cat")
    annotate(dan, int(got["id"]), "cat")
    wait_until(lambda: len(backend._tasks[int(got["id"])]["annotations"]) == 4)
    wait_until(lambda: not backend._told)
    overlap = lead.ask("GET", f"/api/tasks/{got['id']}/")["overlap"]
    checks.see("two labels later it asks for one more at most", overlap in (4, 5), True)
    checks.see("the backend heard of all labels", len(votes_of(backend)), 2 * 24 + 2)
    answer = backend.answer("POST", "/predict", {"tasks": [{"id": numbers[0]}]})
    checks.see("predictions show no label", answer["results"][0]["result"], [])
    server.shutdown()
    backend.close()


def votes_of(backend: Backend) -> list[dict[str, object]]:
    return [one for task in backend._tasks.values() for one in task["annotations"]]


def list_open(lead: LabelStudio) -> set[int]:
    return {int(task["id"]) for task in lead.tasks() if not task["is_labeled"]}


NEEDED = {
    "access", "annotations", "completed_by", "created_at", "data", "id", "is_labeled",
    "model_version", "overlap", "parsed_label_config", "predictions", "result", "score",
    "task_number", "tasks", "total_annotations", "was_cancelled",
}  # fmt: skip
WHOLE = {"data", "parsed_label_config", "result"}


def slim(answer: object) -> object:
    """What a client looks at, so that the record is small."""
    if isinstance(answer, list):
        return [slim(one) for one in answer]
    if not isinstance(answer, dict):
        return answer
    kept = answer.keys() & NEEDED
    return {name: answer[name] if name in WHOLE else slim(answer[name]) for name in sorted(kept)}


class Recorder(Link):
    """A link that keeps what was asked and answered."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.exchange: list[dict[str, object]] = []

    def ask(self, method, path, body=None, **more):
        answer = super().ask(method, path, body, **more)
        kept = json.loads(json.dumps({"method": method, "path": path, "body": body}))
        self.exchange.append({**kept, "answer": slim(answer)})
        return answer


def record(people: dict[str, LabelStudio]) -> None:
    """A short exchange, for tests without a server."""
    lead, ann, bob, *_ = people.values()
    numbers = make_project(people, 3)
    for studio, labels in ((ann, ("cat", "dog", "cat")), (bob, ("cat", "dog", "dog"))):
        for number, label in zip(numbers, labels, strict=True):
            annotate(studio, number, label)
    recorder = Recorder(lead.link.url, lead._headers)
    studio = LabelStudio(lead.link.url, lead._token, lead.project, link=recorder)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "votes.jsonl"
        for _ in range(2):
            studio.pull(target)
            votes = read(target)
            pushed = studio.push(consensus_frame(IBCC().fit(votes), votes))
        studio.order(pushed.version)
        studio.set_overlap(list(studio.tasks()), {numbers[0]: False, numbers[2]: True})
        studio.set_overlap(list(studio.tasks()), {numbers[0]: False, numbers[2]: True})
    text = json.dumps({"project": lead.project, "exchange": recorder.exchange})
    text = re.sub(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "a.b.c", text)
    RECORDED.write_text(text + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True, help="the program label-studio")
    program, checks = parser.parse_args().server, Checks()
    with running(program) as url, tempfile.TemporaryDirectory() as folder:
        people = {}
        for email in PEOPLE:
            path = "/user/login/" if email == PEOPLE[0] else "/user/signup/"
            people[email] = LabelStudio(url, sign_in(url, email, path), 0)
        version = people[PEOPLE[0]].ask("GET", "/api/version")["release"]
        checks.see("Label Studio", version, version)
        round_trips(people, checks, Path(folder))
        overlap(people, checks)
        record(people)
    about = results_files.provenance("make test-live")
    rows = [[str(row["what"]), str(row["found"]), "yes" if row["holds"] else "no"]
            for row in checks.rows]  # fmt: skip
    text = f"# A running Label Studio\n\n{results_files.table(['what', 'found', 'holds'], rows)}"
    results_files.save("label-studio-live", about, checks.rows, text)
    sys.exit(not all(row["holds"] for row in checks.rows))


if __name__ == "__main__":
    main()
