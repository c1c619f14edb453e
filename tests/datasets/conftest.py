"""A server on loopback that behaves, or misbehaves, as a test wants."""

import hashlib
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from crowdwise.datasets import download
from crowdwise.datasets.registry import RemoteFile


@contextmanager
def serving(handler):
    """Serve on 127.0.0.1 until the block ends; yields the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # a client that hangs up is what some tests want
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Shelf:
    """Files to serve by path, what is wrong with each, and who asked for what."""

    address: str = ""
    contents: dict = field(default_factory=dict)
    faults: dict = field(default_factory=dict)
    requests: list = field(default_factory=list)
    closing: Event = field(default_factory=Event)

    def put(self, path, content, *faults):
        """Serve ``content``; each request meets the next fault, then all is well."""
        self.contents["/" + path] = content
        self.faults["/" + path] = list(faults)
        digest = hashlib.sha256(content).hexdigest()
        url = f"{self.address}/{path}"
        return RemoteFile(url, len(content), digest, "for tests", "nobody")


def handler_for(shelf):
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            shelf.requests.append((self.path, self.headers.get("Range")))
            if self.path not in shelf.contents:
                return self.send_error(404)
            faults = shelf.faults[self.path]
            return answer(self, shelf, faults.pop(0) if faults else None)

    return Handler


def answer(request, shelf, fault):
    """Send a file from where it was asked for, or do what the fault says."""
    content, start = shelf.contents[request.path], 0
    if isinstance(fault, int):
        return request.send_error(fault)
    if fault == "unresponsive":
        shelf.closing.wait(10)
        return None
    if fault == "other":
        content = content[::-1]
    if fault == "short":
        content = content[: len(content) // 2]
    if fault == "endless":
        content = content * 50
    asked = request.headers.get("Range")
    if asked and fault != "no ranges":
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            return request.send_error(416)
        request.send_response(206)
        request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    else:
        request.send_response(200)
    request.send_header("Content-Length", str(len(content) - start))
    request.end_headers()
    stop = start + (len(content) - start) // 3 if fault in ("drops", "stalls") else None
    request.wfile.write(content[start:stop])
    if fault == "stalls":
        request.wfile.flush()
        shelf.closing.wait(10)
    return None


@pytest.fixture
def shelf(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "PATIENCE", 0.01)
    stock = Shelf()
    with serving(handler_for(stock)) as stock.address:
        yield stock
        stock.closing.set()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no mirror."""
    monkeypatch.setenv("CROWDWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CROWDWISE_MIRROR", raising=False)
    return tmp_path / "cache" / "datasets"


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    """The publishers' bytes on loopback, as the mirror, with a cache of their own."""
    place = os.environ.get("CROWDWISE_UPSTREAM")
    if not place or not Path(place, "INDEX.json").exists():
        pytest.skip("the publishers' files are not here: set CROWDWISE_UPSTREAM")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with pytest.MonkeyPatch.context() as patch, serving(partial(Quiet, directory=place)) as url:
        patch.setenv("no_proxy", "127.0.0.1")
        patch.setenv("CROWDWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("CROWDWISE_MIRROR", url)
        yield Path(place)
