"""A small project in a database of its own, and clients that talk to it over a real socket."""

import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("fastapi", reason='no FastAPI: pip install "crowdwise[serve]"')

import httpx
import uvicorn

from crowdwise.serve import Service, Settings
from crowdwise.serve.actions import AddTasks, ChangeProject, IssueToken
from crowdwise.serve.app import create_app
from crowdwise.serve.keys import Role
from crowdwise.serve.start import Address, configure

TASKS = [(f"t{i}", {"text": f"sentence {i}"}) for i in range(6)]


@pytest.fixture(scope="session")
def begin():
    """Settings and tasks of a small project."""

    def ask(service, tasks=TASKS, **settings):
        service.ask(ChangeProject("lead", Settings(classes=("cat", "dog"), **settings)))
        service.ask(AddTasks("lead", tasks))
        return service

    return ask


@pytest.fixture(scope="session")
def wait_for():
    """Wait until something holds."""

    def wait(condition, seconds=20.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it never came about"
            time.sleep(0.01)

    return wait


@pytest.fixture
def address(tmp_path):
    return f"sqlite:///{tmp_path}/votes.db"


@pytest.fixture
def service(address, begin):
    with Service(address) as made:
        yield begin(made)


@pytest.fixture(scope="session")
def serving():
    """Serve an application on a free port of this machine, in a thread."""

    @contextmanager
    def serve(service, **options):
        server = uvicorn.Server(configure(create_app(service, **options), Address(port=0)))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:  # or a test that fails would never end
            server.should_exit = True
            thread.join()

    return serve


@pytest.fixture
def url(service, serving):
    with serving(service) as found:
        yield found


@pytest.fixture
def connect(url):
    """A client with a token, or without."""
    with ExitStack() as stack:

        def open_client(token=""):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            return stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=30))

        yield open_client


@pytest.fixture
def client(connect):
    return connect()


@pytest.fixture
def people(service, connect):
    """Clients with tokens: an admin, a lead, and the workers ann and bob."""
    roles = {"root": Role.ADMIN, "lea": Role.LEAD, "ann": Role.WORKER, "bob": Role.WORKER}
    return {
        name: connect(service.ask(IssueToken("test", name, role))["token"])
        for name, role in roles.items()
    }
