"""Requests over a real socket: what is tried again, and what is never said."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from crowdwise.connect import ConnectError, LabelStudio, Link
from crowdwise.connect.link import wait_before
from crowdwise.errors import ParameterError

SECRET = "cw-very-secret"


@pytest.fixture
def server():
    """A server that gives the answers that are left, in order: (status, headers, body)."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            size = int(self.headers.get("Content-Length") or 0)
            found.asked.append((self.command, self.path, dict(self.headers), self.rfile.read(size)))
            status, headers, body = found.answers.pop(0)
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PATCH = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.asked, found.answers = [], []
    found.url = f"http://127.0.0.1:{found.server_port}"
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()


@pytest.fixture
def link(server):
    waits = []
    made = Link(server.url, lambda: {"Authorization": f"Bearer {SECRET}"}, sleep=waits.append)
    made.waits = waits
    return made


ODD = ["http://[::1", "http://host:x", "http://host:99999", "http://host?x=1", "http://host#x",
       "http://host a", "http://host\n", "http://\u0130.example"]  # fmt: skip


def ok(body=b'{"fine": true}'):
    return 200, {}, body


def test_asks_again_while_the_server_is_busy_or_does_not_answer(server, link):
    server.answers += [(503, {}, b""), (429, {"Retry-After": "7"}, b""), (0, {}, b""), ok()]
    assert link.ask("GET", "/x") == {"fine": True}
    assert len(server.asked) == 4
    assert link.waits[1] == 7


def test_what_may_have_been_done_is_not_asked_twice(server, link):
    server.answers += [(0, {}, b""), ok()]
    with pytest.raises(ConnectError, match="There was no response"):
        link.ask("POST", "/x", {})
    server.answers[:] = [(503, {}, b""), ok()]
    assert link.ask("POST", "/x", {}) == {"fine": True}  # a busy server has done nothing


def test_a_body_is_json_and_says_so(server, link):
    server.answers += [ok(), ok()]
    link.ask("POST", "/x", {"a": 1})
    link.ask("GET", "/x")
    (_, _, posted, body), (_, _, fetched, nothing) = server.asked
    assert (posted["Content-Type"], json.loads(body)) == ("application/json", {"a": 1})
    assert (fetched.get("Content-Type"), nothing) == (None, b"")


def test_gives_up_after_some_tries(server, link):
    server.answers += [(502, {}, b"")] * 9
    with pytest.raises(ConnectError, match="answered 502"):
        link.ask("GET", "/x")
    assert len(server.asked) == 5


def test_says_what_the_server_says(server, link):
    server.answers += [(404, {}, json.dumps({"detail": "No Project matches"}).encode())]
    with pytest.raises(ConnectError, match=r"(?s)answered 404.*No Project.*number") as caught:
        link.ask("GET", "/api/projects/9/?secret=1")
    assert caught.value.status == 404
    assert "secret=1" not in str(caught.value)


def test_a_token_goes_to_no_other_server_and_into_no_message(server, link):
    server.answers += [(302, {"Location": "http://elsewhere.example/"}, b"")]
    with pytest.raises(ConnectError, match=r"(?s)302.*redirects to: http://elsewhere") as caught:
        link.ask("GET", "/x")
    assert len(server.asked) == 1
    assert SECRET not in str(caught.value)


def test_an_answer_that_is_a_page_is_an_error(server, link):
    for body in (b"<html>sign in</html>", b"[" * 100_000):
        server.answers += [ok(body)]
        with pytest.raises(ConnectError, match="not JSON"):
            link.ask("GET", "/x")


@pytest.mark.parametrize(
    "url", ["label-studio:8080", "ftp://host", "http://ann:pass@host", "http://", *ODD]
)
def test_an_address_that_cannot_be_used_is_refused(url):
    with pytest.raises(ParameterError, match="http://HOST:PORT") as caught:
        Link(url)
    assert "pass" not in str(caught.value).replace("password", "")


def test_waits_grow_and_end():
    assert 0.5 <= wait_before(1, None) <= 1
    assert 4 <= wait_before(4, None) <= 8
    assert wait_before(30, None) <= 60
    assert wait_before(1, "999999") == 60


def test_an_access_token_that_ran_out_is_renewed(server):
    studio = LabelStudio(server.url, "a.b.c", 1)
    old, new = ok(b'{"access": "old"}'), ok(b'{"access": "new"}')
    server.answers += [old, (401, {}, b""), new, ok(b'{"id": 1}')]
    assert studio.show_project() == {"id": 1}
    sent = [headers.get("Authorization") for _, _, headers, _ in server.asked]
    assert sent == [None, "Bearer old", None, "Bearer new"]


def test_a_token_that_is_not_valid_is_reported_once(server):
    server.answers += [(401, {}, b'{"detail": "Token is invalid"}')]
    with pytest.raises(ConnectError, match=r"(?s)Token is invalid.*still valid"):
        LabelStudio(server.url, "a.b.c", 1).show_project()
    server.answers += [(401, {}, b"{}")]
    with pytest.raises(ConnectError, match="401"):
        LabelStudio(server.url, "0123abcd", 1).show_project()
    assert server.asked[-1][2]["Authorization"] == "Token 0123abcd"
