"""Requests that nobody honest sends."""

import socket
import time

import httpx
import pytest
from sqlalchemy import text

from crowdwise.errors import ParameterError
from crowdwise.serve import patience
from crowdwise.serve.access import Limiter
from crowdwise.serve.actions import AddTasks
from crowdwise.serve.draft import RefusedError
from crowdwise.serve.guard import MOST_BYTES
from crowdwise.serve.images import ImageFolder
from crowdwise.serve.keys import find_key, make_token
from crowdwise.serve.start import refuse_open_doors

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
INJECTED = "'; DROP TABLE event; --"
LABEL = {"task": "t0", "worker": "ann", "label": "cat"}


def test_promise_service_tokens_are_needed_beyond_this_machine(service):
    refuse_open_doors(service, "127.0.0.1")
    for host in ("0.0.0.0", "::", "192.168.1.7", "example.org"):
        with pytest.raises(ParameterError, match="there are no tokens"):
            refuse_open_doors(service, host)


def test_a_service_that_may_not_be_open_lets_nobody_in(service, serving):
    with serving(service, may_be_open=False) as url:
        assert httpx.get(f"{url}/api/state").status_code == 401


def test_promise_service_pages_of_other_sites_cannot_send_labels(client):
    def send(**headers):
        return client.post("/api/labels", json=LABEL, headers=headers).status_code

    assert send(Origin="https://evil.test") == 403
    assert send(Origin="null") == 403
    assert send(Host="evil.test:8000") == 403  # a name that was made to lead here
    plain = {"Content-Type": "text/plain"}  # what a form can send without asking
    assert client.post("/api/labels", content=b"{}", headers=plain).status_code == 415
    asked = client.options("/api/labels", headers={"Origin": str(client.base_url).rstrip("/")})
    assert "access-control-allow-origin" not in asked.headers
    assert send(Origin=str(client.base_url).rstrip("/")) == 200


def test_promise_service_bodies_are_limited_also_without_a_length(client):
    many = {"labels": [LABEL] * 10_001}
    assert client.post("/api/labels/batch", json=many).status_code == 422
    large = b" " * (MOST_BYTES + 1)
    kind = {"Content-Type": "application/json"}
    assert client.post("/api/labels", content=large, headers=kind).status_code == 413
    pieces = (b" " * 100_000 for _ in range(40))
    assert client.post("/api/labels", content=pieces, headers=kind).status_code == 413
    assert client.post("/api/labels", json=LABEL | {"label": "x" * 501}).status_code == 422


def test_nonsense_is_refused_in_words(client):
    kind = {"Content-Type": "application/json"}
    for body in (b"", b"[]", b"{", b'{"task": 1}', b'{"task":"t0","label":"cat","x":1}', b"\xff"):
        answer = client.post("/api/labels", content=body, headers=kind)
        assert answer.status_code in (400, 422), body
        assert "Traceback" not in answer.text
    deep = b"[" * 100_000
    assert client.post("/api/labels", content=deep, headers=kind).status_code in (400, 422)
    for name in ("", "a\x00b", "x" * 501, "\ud800"):
        body = f'{{"worker": {ascii(name)!s}}}'.replace("'", '"').replace("\\x00", "\\u0000")
        answer = client.post("/api/next", content=body.encode(), headers=kind)
        assert answer.status_code in (200, 422)
        assert name == "" or answer.status_code == 422, repr(name)


def test_numbers_beyond_a_database_are_refused(client):
    for after in (-1, 2**63, 10**30):
        assert client.get("/api/events", params={"after": after}).status_code == 422
    assert client.get("/api/events", params={"after": 2**63 - 1}).text == ""


@pytest.mark.parametrize(
    "name", ["\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645", "\u5199\u771f\u30001", "a\u00a0b"]
)
def test_spaces_and_joiners_of_other_scripts_are_part_of_a_name(service, client, name):
    assert client.patch("/api/project", json={"classes": ["cat", "dog", name]}).status_code == 200
    assert client.post("/api/tasks", json={"tasks": [{"task": name}]}).json()["stored"] == 1
    body = {"task": name, "worker": name, "label": name}
    assert client.post("/api/labels", json=body).json()["stored"] == 1
    assert service.board.annotations().to_dict()[name] == {name: name}


@pytest.mark.parametrize("name", ["a\u202eb", "a\u200bb", "a\nb", "\U00024000" * 251])
def test_names_that_mislead_or_fit_no_index_are_refused(client, name):
    answer = client.post("/api/tasks", json={"tasks": [{"task": name}]})
    assert answer.status_code == 422
    assert "printable" in answer.json()["detail"]


def test_names_are_never_code(service, client):
    service.ask(AddTasks("lead", [(INJECTED, {})]))
    body = {"task": INJECTED, "worker": INJECTED, "label": "cat"}
    assert client.post("/api/labels", json=body).json() == {"stored": 1, "known": 0}
    assert client.get("/api/task", params={"task": INJECTED}).json()["labels"] == {INJECTED: "cat"}
    assert client.get("/api/tasks", params={"sort": "task; DROP TABLE event"}).status_code == 422
    with service.database.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM event")).scalar() == service.board.seq


def test_promise_service_pictures_come_from_their_folder_only(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.png").write_bytes(PNG)
    (folder / "b.png").write_bytes(b"<svg onload='alert(1)'/>")
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    images = ImageFolder(folder)
    assert images.read("a.png") == (PNG, "image/png")
    outside = ("../secret.png", str(tmp_path / "secret.png"), "link.png", "a.png/../../secret.png")
    for name in (*outside, "b.png", "", ".", "a\0.png", "/etc/passwd", "x" * 5000):
        with pytest.raises(RefusedError, match="no such picture"):
            images.read(name)


def test_static_files_are_only_ours(client):
    assert client.get("/static/serve.css").status_code == 200
    for path in ("/static/..%2f..%2faccess.py", "/static/../access.py", "/static/routes.py"):
        assert client.get(path).status_code == 404


def test_every_answer_forbids_what_pages_do_not_need(client):
    for path in ("/", "/label", "/docs", "/api/state", "/api/nothing", "/static/label.js"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in headers


def test_tokens_are_compared_whole_and_kept_as_digests(service, people):
    token, number, digest = make_token()
    assert number in token
    assert digest not in token
    keys = service.board.keys
    assert find_key(keys, token) is None
    good = people["ann"].headers["authorization"].partition(" ")[2]
    assert find_key(keys, good).name == "ann"
    for wrong in (good[:-1], good + "0", good.replace("cw_", "xx_"), "", "cw__", good.upper()):
        assert find_key(keys, wrong) is None
    with service.database.reading() as connection:
        stored = connection.execute(text("SELECT * FROM event")).all()
    assert good.rpartition("_")[2] not in repr(stored)


def test_a_worker_who_asks_too_often_has_to_wait(people):
    codes = [people["ann"].get("/api/project").status_code for _ in range(90)]
    assert codes.count(429) > 0
    assert codes[:50] == [200] * 50
    assert people["bob"].get("/api/project").status_code == 200


def test_requests_are_limited_by_a_steady_clock():
    now = [0.0]
    limiter = Limiter(lambda: now[0])
    for _ in range(3):
        limiter.spend("ann", 2.0, 3.0)
    with pytest.raises(RefusedError, match="too many"):
        limiter.spend("ann", 2.0, 3.0)
    now[0] = 0.5
    limiter.spend("ann", 2.0, 3.0)


def test_promise_service_who_guesses_tokens_is_slowed_down_and_keeps_nobody_out(connect, people):
    guesser = connect("cw_000000000000_guess")
    codes = [guesser.get("/api/project").status_code for _ in range(110)]
    assert set(codes) == {401, 429}
    assert people["ann"].get("/api/project").status_code == 200  # from the same address


BODY = (
    b"POST /api/labels HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 50\r\n\r\n{"
)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", BODY])
def test_promise_service_who_never_ends_a_request_is_disconnected(
    service, serving, sent, monkeypatch
):
    monkeypatch.setattr(patience, "PATIENCE", 0.3)
    with serving(service) as url:
        place = httpx.URL(url)
        with socket.create_connection((place.host, place.port), timeout=10) as idle:
            idle.sendall(sent)
            assert idle.recv(1 << 16) == b""  # closed, instead of a timeout
        with httpx.Client(base_url=url) as client:
            for _ in range(3):  # on one connection, which outlives the deadline
                assert client.get("/api/state").status_code == 200
                time.sleep(0.2)


def test_a_client_that_sends_half_a_body_blocks_nobody(url, client):
    port = int(url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as half:
        head = b"POST /api/labels HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        half.sendall(head + b"Content-Length: 100\r\n\r\n{")
        assert client.get("/api/health").status_code == 200  # within the client's patience
