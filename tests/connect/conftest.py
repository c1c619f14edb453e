"""What tests of connections share."""

import time

import pytest


@pytest.fixture(scope="session")
def wait_for():
    """Wait until something holds."""

    def wait(condition, seconds=20.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it never came about"
            time.sleep(0.01)

    return wait
