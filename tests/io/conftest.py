"""Small exports of every kind, and a way to compare what is read from them."""

from pathlib import Path

import pytest

import crowdwise as cw

EXPORTS = Path(__file__).parent / "exports"


@pytest.fixture
def export():
    """Read a small export by its name."""

    def read(name, format=None, **options):
        return cw.read(EXPORTS / name, format, **options)

    return read


@pytest.fixture
def exports():
    """The folder of small exports."""
    return EXPORTS


@pytest.fixture
def gold():
    """Known truths by task."""

    def by_task(annotations):
        pairs = zip(annotations.tasks.tolist(), annotations.gold, strict=True)
        return {task: annotations.classes[code] for task, code in pairs if code >= 0}

    return by_task
