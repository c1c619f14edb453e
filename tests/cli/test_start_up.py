"""How long it takes to begin: processor time, so that a busy machine does not matter."""

import resource
import subprocess
import sys

import pytest

TRIES = 5


def seconds(*words):
    """Least processor time of a few runs of Python, starting it included."""
    found = []
    for _ in range(TRIES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


@pytest.mark.parametrize("words", [["-c", "import crowdwise"]], ids=["import"])
def test_importing_takes_less_than_a_third_of_a_second(words):
    assert seconds(*words) < 0.3


@pytest.mark.parametrize("words", [["--help"], ["--version"]], ids=["help", "version"])
def test_help_takes_less_than_half_a_second(words):
    assert seconds("-m", "crowdwise", *words) < 0.5


def test_compatibility_needs_no_torch():
    code = (
        "import sys, crowdwise.compat.crowdkit, crowdwise.compat.cleanlab, "
        "crowdwise.compat.snorkel; assert 'torch' not in sys.modules, 'torch'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
