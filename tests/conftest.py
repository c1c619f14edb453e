"""What several test files share: real crowds, where this machine has them."""

from functools import cache

import pytest
import real_crowds

cached = cache(real_crowds.load)


@pytest.fixture(scope="session")
def real_crowd():
    """Load a real crowd by name; the test is skipped on a machine without it."""

    def load(name, **options):
        if name not in real_crowds.names():
            pytest.skip(f"the real crowd {name!r} is not here: set CROWDWISE_DATA")
        return cached(name, **options)

    return load
