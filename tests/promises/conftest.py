"""What all promises share."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def quick(quick_default):
    """Commands and reports fit the default method again and again."""
