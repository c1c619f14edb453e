"""The command line as a process of its own: pipes, streams, signals, start-up."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

COMMAND = [sys.executable, "-m", "crowdwise"]


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(20_000), 3)
    label = np.where(rng.random(len(task)) < 0.7, task % 2, rng.integers(0, 2, len(task)))
    frame = pd.DataFrame({"task": task, "worker": rng.integers(0, 50, len(task)), "label": label})
    path = tmp_path_factory.mktemp("cli") / "votes.csv"
    frame.to_csv(path, index=False)
    return path


def run(*words, **options):
    words = [str(word) for word in words]
    return subprocess.run([*COMMAND, *words], capture_output=True, check=False, **options)


def test_data_and_words_go_to_their_own_streams(votes):
    done = run("aggregate", votes, "--method", "MajorityVote")
    assert done.returncode == 0
    assert done.stdout.startswith(b"task,label,confidence")
    assert done.stdout.count(b"\n") == 20_001
    assert b"20,000 tasks labeled by MajorityVote" in done.stderr


def test_commands_work_in_a_pipe(votes):
    done = run("agreement", "-", "--resamples", "0", input=votes.read_bytes())
    assert done.returncode == 0
    assert b"Fleiss' kappa" in done.stdout


def test_a_reader_that_leaves_early_is_no_error(votes):
    words = [*COMMAND, "aggregate", str(votes), "--method", "MajorityVote", "--quiet"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"task,label")
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 0
    assert err == b""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
def test_a_full_disk_is_reported():
    # So little is printed that only flushing it can fail.
    with Path("/dev/full").open("wb") as full:
        words = [*COMMAND, "methods", "MajorityVote"]
        buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False, env=buffered)
    assert done.returncode == 1
    assert done.stderr.startswith(b"crowdwise: reading or writing failed: No space left on device")
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("late", ["crowdwise.cli", "crowdwise.cli.aggregate"])
def test_ctrl_c_is_heard_while_python_imports(late, votes):
    code = (
        "import runpy, sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {late!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Slow())\n"
        f"sys.argv = ['crowdwise', 'aggregate', {str(votes)!r}]\n"
        "runpy.run_module('crowdwise', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 130
    assert done.stderr == b"crowdwise: stopped.\n"


def test_statuses():
    assert run("--version").returncode == 0
    assert run("aggregate", "nowhere.csv").returncode == 1
    assert run("--wat").returncode == 2


def test_help_is_quick_and_loads_nothing():
    code = (
        "import sys, time; from crowdwise.cli import main; assert main(['--help']) == 0;"
        "heavy = {'numpy', 'pandas', 'scipy', 'sklearn'} & set(sys.modules);"
        "assert not heavy, heavy; assert time.process_time() < 1"  # idle or busy: a tenth
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
