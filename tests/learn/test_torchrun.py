"""Two processes of torchrun learn what one learns; a killed one goes on where it was."""

import os
import signal
import socket
import subprocess
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from torch import distributed

from crowdwise import load
from crowdwise.learn import (
    EM,
    LIA,
    MBEM,
    MLP,
    CrowdClassifier,
    MaxMIG,
    PerTask,
    SpeeLFC,
    checkpoints,
)
from crowdwise.nets import batches, loop
from crowdwise.nets.batches import as_data, count_parts
from crowdwise.nets.ensemble import Ensemble
from crowdwise.nets.features import as_features
from crowdwise.nets.loop import Alone, Single
from crowdwise.nets.mapped import MappedRows
from crowdwise.nets.training import Training
from crowdwise.simulate import label_by_crowd, one_coin_confusion

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not distributed.is_gloo_available(), reason="no gloo in this torch"),
]
SGD = {"epochs": 6, "batch_size": 50}


def crowd(n=300):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, n)
    X = rng.normal(size=(3, 6))[truth] + rng.normal(size=(n, 6))
    confusion = one_coin_confusion(rng.uniform(0.5, 0.95, 12), n_classes=3)
    return X.astype(np.float32), label_by_crowd(truth, confusion, per_task=3, random_state=0)


def learners():
    batches = Training(**SGD, batch_of="tasks", class_weight="balanced", n_restarts=2)
    stopped = Training(**SGD, patience=3, worker_dropout=0.1)
    em = EM(rounds=2, epochs=3, marginal_epochs=2)
    return {
        "search": SpeeLFC(random_state=0),
        "batches": SpeeLFC(truth=MLP((8,)), training=stopped, random_state=0),
        "tasks": CrowdClassifier(objective=PerTask(), training=batches, random_state=0),
        "em": LIA(objective=em, training=Training(epochs=3), random_state=0),
        "bootstrap": MBEM(random_state=0),
        "whole": MaxMIG(training=Training(epochs=2), random_state=0),
    }


HOME = str(Path(__file__).parent)
# One interpreter that has imported all, and forks two ranks for each script that it is given.
RANKS = f"""
import sys; sys.path.insert(0, {HOME!r})
from test_torchrun import *
for line in sys.stdin:
    os.chdir(line.strip())
    ranks = {{fork_rank(rank): rank for rank in (0, 1)}}
    ended = []
    while ranks:
        pid, status = os.wait()
        ended.append(os.waitstatus_to_exitcode(status))
        ranks.pop(pid)
        if ended[-1]:  # as torchrun does
            [os.kill(other, signal.SIGTERM) for other in ranks]
    print(*ended, flush=True)
"""


def fork_rank(rank):
    """The process of a rank, which runs ``script.py`` of this folder."""
    if pid := os.fork():
        return pid
    os.environ["RANK"], status = str(rank), 1
    with open("said.txt", "a") as said:  # noqa: PTH123
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
    try:
        exec(Path("script.py").read_text(), globals())
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


@pytest.fixture(scope="module")
def ranks():
    """Run code in two processes that see this file; what they said, and how the first ended."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    words, env = [sys.executable, "-c", RANKS], {**os.environ, **address}
    with subprocess.Popen(words, env=env, **pipes) as process:

        def run(folder, code):
            (folder / "script.py").write_text(code)
            process.stdin.write(f"{folder}\n")
            process.stdin.flush()
            first = int(process.stdout.readline().split()[0])
            return first, (folder / "said.txt").read_text()

        yield run
        process.stdin.close()


def answers(model, X):
    return {"p": model.posterior_, "c": model.confusion_, "x": model.predict_proba(X)}


def test_two_processes_learn_what_one_learns(ranks, tmp_path):
    ended, said = ranks(
        tmp_path,
        "X, votes = crowd()\n"
        "for name, model in learners().items():\n"
        "    found = answers(model.fit(X, votes), X)\n"
        "    np.savez(f'{name}-{os.environ[\"RANK\"]}.npz', **found)\n",
    )
    assert ended == 0, said
    assert "InformationGain is not a sum over annotations: all 2 processes" in said
    X, votes = crowd()
    for name, model in learners().items():
        expected = answers(model.fit(X, votes), X)
        for rank in (0, 1):
            found = np.load(tmp_path / f"{name}-{rank}.npz")
            for key, value in expected.items():
                assert_allclose(found[key], value, atol=1e-5, err_msg=f"{name} {key} {rank}")


def test_at_the_optimum_threads_and_processes_change_no_bit(ranks, tmp_path, monkeypatch):
    code = (
        "from crowdwise.nets import batches\n"
        "batches.LEAST_TASKS = 32\n"
        "X, votes = crowd()\n"
        "found = answers(SpeeLFC(penalty=1e-4, prior=0.03, random_state=0).fit(X, votes), X)\n"
        "np.savez(os.environ['RANK'], **found)\n"
    )
    ended, said = ranks(tmp_path, code)
    assert ended == 0, said
    monkeypatch.setattr(batches, "LEAST_TASKS", 32)
    monkeypatch.setattr(loop, "WORTH_SHARING", 0)  # all threads at work
    X, votes = crowd()
    known = torch.get_num_threads()
    for n_threads in (1, 2, 3):
        torch.set_num_threads(n_threads)
        try:
            model = SpeeLFC(penalty=1e-4, prior=0.03, random_state=0).fit(X, votes)
        finally:
            torch.set_num_threads(known)
        for rank in (0, 1):
            found = np.load(tmp_path / f"{rank}.npz")
            for key, value in answers(model, X).items():
                rtol = 1e-12 if key == "c" else 0.0  # matrices are counted afterward
                assert_allclose(found[key], value, rtol, err_msg=f"{key} {n_threads}")


@pytest.mark.parametrize("worth", [0, 10**9], ids=["large", "small"])
def test_batches_change_no_bit_in_two_processes(worth, ranks, tmp_path, monkeypatch):
    names = ["batches", "tasks", "em"]
    code = (
        f"from crowdwise.nets import batches\nbatches.WORTH = {worth}\nX, votes = crowd()\n"
        f"for name in {names}:\n"
        "    found = learners()[name].fit(X, votes)\n"
        "    np.save(f'{name}-{os.environ[\"RANK\"]}.npy', found.predict_proba(X))\n"
    )
    ended, said = ranks(tmp_path, code)
    assert ended == 0, said
    monkeypatch.setattr(batches, "WORTH", worth)
    X, votes = crowd()
    for name in names:
        expected = learners()[name].fit(X, votes).predict_proba(X)
        for rank in (0, 1):
            found = np.load(tmp_path / f"{name}-{rank}.npy")
            assert_allclose(found, expected, rtol=0, err_msg=f"{name} {rank}")


def test_a_network_that_normalizes_batches_is_not_divided(caplog):
    X, votes = crowd(60)
    layers = torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3)
    data = as_data(as_features(X), votes, None, torch.device("cpu"))
    net = CrowdClassifier(truth=torch.nn.Sequential(*layers))._member(data)
    assert not loop.divide(replace(data, ranks=Alone(0, 2)), net).divides
    assert "BatchNorm is not a sum over annotations" in caplog.text
    assert loop.divide(data, CrowdClassifier()._member(data)).divides


def test_parts_depend_on_the_data_alone():
    X, votes = crowd()
    data = as_data(as_features(X), votes, None, torch.device("cpu"))
    assert [count_parts(n, 10) for n in (0, 100, 8191, 8192, 20_000, 10**6)] == [1, 1, 1, 2, 4, 8]
    assert count_parts(1000, 8192) == 4  # wide features
    assert count_parts(10**7, 300) == 64  # as much as fits into memory at once
    for n_parts in (1, 4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batches, "LEAST_TASKS", 300 // n_parts)
            whole = [part.task.tolist() for part in data.fixed_parts()]
            assert len(whole) == n_parts
            for size in (2, 4, 8):
                each = [
                    list(replace(data, ranks=Alone(r, size)).fixed_parts()) for r in range(size)
                ]
                cut = [part.task.tolist() for own in each for part in own if len(part.task)]
                assert cut == whole
                leaders = [part.leads for own in each for part in own]
                assert sum(leaders) == 1
                assert all(own[-1].ends and not any(p.ends for p in own[:-1]) for own in each)


KILL = """
from crowdwise.nets.ensemble import Ensemble
from crowdwise.nets.loop import Single
steps, first = [0], not os.path.exists("kept")
def counted(step):
    def one(*args):
        steps[0] += 1
        if first and steps[0] == 60 and os.environ["RANK"] == "1":
            os.kill(os.getpid(), 9)
        return step(*args)
    return one
for kind in (Single, Ensemble):
    kind.__call__ = counted(kind.__call__)
X, votes = crowd()
with checkpoints("kept", every=0):
    found = answers(learners()[NAME].fit(X, votes), X)
if os.environ["RANK"] == "0":
    np.savez("found.npz", steps=steps, **found)
"""


@pytest.mark.parametrize("name", ["search", "batches"])
def test_a_killed_process_goes_on_where_it_was(name, ranks, tmp_path, monkeypatch):
    steps = [0]

    def counted(step):
        def one(*args):
            steps[0] += 1
            return step(*args)

        return one

    for kind in (Single, Ensemble):
        monkeypatch.setattr(kind, "__call__", counted(kind.__call__))
    X, votes = crowd()
    expected = answers(learners()[name].fit(X, votes), X)
    code = KILL.replace("NAME", repr(name))
    assert ranks(tmp_path, code)[0] == -signal.SIGKILL
    assert ranks(tmp_path, code)[0] == 0
    found = np.load(tmp_path / "found.npz")
    assert found["steps"] <= steps[0] - 40
    for key, value in expected.items():
        assert_allclose(found[key], value, atol=1e-5)
    assert not any((tmp_path / "kept").iterdir())


@pytest.fixture
def power(monkeypatch):
    """Numbers the steps of training, which may end for lack of power."""
    power = SimpleNamespace(steps=0, ends_at=None)

    def counted(step):
        def one(*args):
            power.steps += 1
            if power.steps == power.ends_at:
                raise OSError("the power is gone")
            return step(*args)

        return one

    for kind in (Single, Ensemble):
        monkeypatch.setattr(kind, "__call__", counted(kind.__call__))
    return power


FALLING = Training(epochs=20, batch_size=50, schedule="cosine")


@pytest.mark.parametrize("name", ["search", "batches", "falling"])
def test_a_process_alone_goes_on_where_it_was(name, tmp_path, power):
    X, votes = crowd(100)
    falling = SpeeLFC(penalty=0.1, prior=1.0, training=FALLING, random_state=0)

    def fit():
        power.steps = 0
        return answers((learners() | {"falling": falling})[name].fit(X, votes), X)

    expected, n_steps = fit(), power.steps
    with checkpoints(tmp_path, every=0):
        power.ends_at = 40
        with pytest.raises(OSError, match="the power is gone"):
            fit()
        power.ends_at = None
        found = fit()
    assert power.steps <= n_steps - 25
    for key, value in expected.items():
        assert_allclose(found[key], value, atol=1e-5)
    assert not any(tmp_path.iterdir())


OTHER = """
from crowdwise.nets.ranks import RankError
rank = int(os.environ["RANK"])
X, votes = crowd(60)
X[7, 2] += rank * (CASE == "features")
votes = crowd(60 + rank)[1] if CASE == "tasks" else votes
X = X[:, :, None] if CASE == "shape" and rank else X
weight = np.ones(votes.n_annotations, dtype=np.float32)
weight[9] += rank * (CASE == "weights")
votes = replace(votes, weight=weight)
penalty = 0.1 if CASE == "parameters" and rank else 0.2
settings = Training(epochs=2, verbose=not rank)  # these may differ
if CASE == "tasks":
    X = crowd(60 + rank)[0]
try:
    SpeeLFC(penalty=penalty, prior=1.0, training=settings, random_state=0).fit(X, votes)
except RankError as error:
    print(error)
"""


@pytest.mark.parametrize("case", ["tasks", "features", "shape", "weights", "parameters", "none"])
def test_processes_with_other_data_are_refused(case, ranks, tmp_path):
    ended, said = ranks(tmp_path, OTHER.replace("CASE", repr(case)))
    assert ended == 0, said
    what = "parameters" if case == "parameters" else "features, labels or gold"
    assert said.count(f"differ in {what}") == (0 if case == "none" else 2), said


def test_a_random_state_is_that_of_the_first(ranks, tmp_path):
    code = (
        "X, votes = crowd(60)\n"
        "own = np.random.RandomState(int(os.environ['RANK']))\n"
        "model = SpeeLFC(truth=MLP((8,)), training=Training(**SGD), random_state=own)\n"
        "np.save(os.environ['RANK'], model.fit(X, votes).predict_proba(X))\n"
    )
    ended, said = ranks(tmp_path, code)
    assert ended == 0, said
    assert_allclose(np.load(tmp_path / "0.npy"), np.load(tmp_path / "1.npy"), rtol=0)


@pytest.mark.parametrize("change", ["features", "mapped", "weights", "gold"])
def test_a_checkpoint_of_other_data_is_left_alone(change, tmp_path, power):
    X, votes = crowd(100)
    weight, other = np.ones(votes.n_annotations, dtype=np.float32), X.copy()
    weight[3] += change == "weights"
    other[0] += change in ("features", "mapped")
    gold = {votes.tasks[0]: 1} if change == "gold" else None
    if change == "mapped":
        X, other = MappedRows(X), MappedRows(other)
    votes, others = (replace(votes, weight=own) for own in (np.ones_like(weight), weight))

    def fit(X, votes, gold=None):
        power.steps = 0
        model = SpeeLFC(penalty=0.1, prior=1.0, random_state=0)
        return answers(model.fit(X, votes, gold=gold), X)

    expected = fit(X, votes)
    with checkpoints(tmp_path, every=0):
        power.ends_at = 12
        with pytest.raises(OSError, match="the power is gone"):
            fit(other, others, gold)
        power.ends_at = None
        found = fit(X, votes)
    for key, value in expected.items():
        assert_allclose(found[key], value, rtol=0, atol=0)


def test_a_checkpoint_needs_a_seed(tmp_path):
    X, votes = crowd(50)
    with checkpoints(tmp_path), pytest.raises(ValueError, match="random_state=0"):
        SpeeLFC().fit(X, votes)


def test_the_command_line_learns_in_two_processes_and_writes_once(tmp_path):
    X, votes = crowd(120)
    table = pd.DataFrame(X, columns=list("abcdef")).assign(task=votes.tasks)
    table.to_csv(tmp_path / "X.csv", index=False)
    votes.to_frame().to_csv(tmp_path / "votes.csv", index=False)
    (tmp_path / "script.py").write_text(
        "import atexit, sys\nfrom pathlib import Path\nfrom crowdwise.cli import main\n"
        "threads = lambda: [f.read_text() for f in Path('/proc/self/task').glob('*/comm')]\n"
        "atexit.register(lambda: print(*threads()))  # runs last\n"
        "asked = ['fit', 'votes.csv', '--features', 'X.csv', '--method', 'SpeeLFC']\n"
        "asked += ['--seed', '0', '--set', 'epochs=5', '-o', 'model.crowdwise']\n"
        "sys.exit(main(asked))\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", "script.py"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("SpeeLFC learned 3 classes") == 1
    assert "gloo" not in done.stdout  # such a thread may abort the process as it ends
    expected = SpeeLFC(training=Training(epochs=5), random_state=0).fit(X, votes)
    found = load(tmp_path / "model.crowdwise").predict_proba(X)
    assert_allclose(found, expected.predict_proba(X), atol=1e-5)
