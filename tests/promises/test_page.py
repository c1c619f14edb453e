"""The page of promises and the tests that hold them name each other."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "promises.md").read_text(encoding="utf-8")
PROMISED = set(re.findall(r"`(test_\w+)`", PAGE))


@pytest.fixture(scope="module")
def tests():
    """The names of all tests, those of classes too."""
    found = set()
    for path in TESTS.rglob("test_*.py"):
        found |= set(re.findall(r"^ *def (test_\w+)", path.read_text(encoding="utf-8"), re.M))
    return found


def test_every_test_on_the_page_exists(tests):
    assert PROMISED
    assert sorted(PROMISED - tests) == []


def test_every_promise_that_is_tested_is_on_the_page(tests):
    promises = {name for name in tests if name.startswith("test_promise_")}
    assert sorted(promises - PROMISED) == []


def test_every_promise_names_a_test():
    promises = re.split(r"^- ", PAGE, flags=re.M)[1:]
    bare = [text for text in promises if not re.search(r"`test_\w+`", text)]
    assert bare == []
