"""crowdwise plan: labels to ask for next, and tasks that are done."""

import io

import pandas as pd
import pytest

from crowdwise import read
from crowdwise.aggregate import IBCC
from crowdwise.cli import main
from crowdwise.plan import Planner

QUICK = ("--method", "IBCC")


def run(*words):
    return main([str(word) for word in words])


def test_lists_the_next_labels_as_python_does(files, capsys):
    target = files.folder / "next.csv"
    assert run("plan", files.votes, "--budget", 7, "-o", target, *QUICK) == 0
    expected = Planner(IBCC()).next(read(files.votes), 7)
    found = pd.read_csv(target)
    assert found["task"].tolist() == expected["task"].tolist()
    assert found["gain"].tolist() == pytest.approx(expected["gain"].tolist(), abs=1e-5)
    assert "of 80 tasks" in capsys.readouterr().err


def test_names_workers_who_are_there(files, capsys):
    assert run("plan", files.votes, "--budget", 4, "--available", "w0,new", *QUICK) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "task,worker,gain,cost"
    assert {row.split(",")[1] for row in rows[1:]} <= {"w0", "new"}


def test_says_which_tasks_are_done(files, capsys):
    assert run("plan", files.votes, "--target", 0.7, *QUICK) == 0
    out, err = capsys.readouterr()
    table = pd.read_csv(io.StringIO(out))
    done = Planner(IBCC(), target=0.7).look(read(files.votes)).done()
    assert table.loc[table["done"], "task"].tolist() == sorted(
        done.tasks.index, key=table["task"].tolist().index
    )
    assert f"{len(done.tasks)} of 80 tasks done" in err


def test_says_where_nothing_can_be_promised(files, capsys):
    assert run("plan", files.votes, "--target", 1, "--table", *QUICK) == 0
    out, err = capsys.readouterr()
    assert "none of 80 tasks is done by its labels" in err
    assert "… and 60 more" in out


def test_known_truths_are_used(files, capsys):
    flags = ("--target", 0.6, "--gold-file", files.gold, *QUICK)
    assert run("plan", files.votes, *flags) == 0
    assert "by 80 known truths" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--budget", "--cost"])
def test_money_is_not_negative(files, capsys, flag):
    assert run("plan", files.votes, "--budget", 5, flag, -1) == 2
    assert f"{flag} -1.0 cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--target", "--checks"])
def test_shares_are_from_0_to_1(files, capsys, flag):
    for value in ("2", "nan"):
        assert run("plan", files.votes, "--budget", 3, flag, value) == 2
        assert f"{flag} {float(value)} cannot be used" in capsys.readouterr().err
