"""crowdwise plan: labels to ask for next, and tasks that are done."""

import io

import numpy as np
import pandas as pd
import pytest

from crowdwise import Annotations, read
from crowdwise.aggregate import IBCC
from crowdwise.cli import main
from crowdwise.cli.plan import summarize
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


def test_a_cheap_judge_is_asked_first(files, capsys):
    flags = ("--budget", 2, "--available", "w0, judge=0.1", *QUICK)
    assert run("plan", files.votes, *flags) == 0
    plan = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert (plan["worker"] == "judge").sum() > 5
    assert set(plan.loc[plan["worker"] == "judge", "cost"]) == {0.1}
    assert plan["cost"].sum() <= 2
    for price in ("-1", "much", "inf"):
        assert run("plan", files.votes, "--budget", 2, "--available", f"w0,judge={price}") == 2
        assert "the cost of judge" in capsys.readouterr().err


def test_workers_have_the_prices_of_their_table(files, capsys):
    table = files.folder / "prices.csv"
    table.write_text("worker;price\nw0;0,5\nw1;0,25\nw2;$3\n")
    flags = ("--budget", 3, "--workers", table, "--cost", 2, *QUICK)
    assert run("plan", files.votes, *flags, "--available", "w0,w1=0.3,w3") == 2
    assert "price" not in capsys.readouterr().out
    table.write_text("worker;price\nw0;0,5\nw1;0,25\n")
    assert run("plan", files.votes, *flags, "--available", "w0,w1=0.3,w3") == 0
    plan = pd.read_csv(io.StringIO(capsys.readouterr().out))
    costs = dict(zip(plan["worker"], plan["cost"], strict=True))
    assert costs.items() <= {"w0": 0.5, "w1": 0.3, "w3": 2.0}.items()
    assert {"w0", "w1"} & costs.keys()
    assert run("plan", files.votes, *flags) == 0
    assert "named with --available" in capsys.readouterr().err


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
    assert "0 of 80 tasks done. No data can show that 100.0% are right" in err
    assert "… and 60 more" in out
    assert run("plan", files.votes, "--target", 0.8, *QUICK) == 0
    err = capsys.readouterr().err
    assert (
        "for 80.0%, give the truths of 24 tasks drawn at random (--gold-file); 0 are known" in err
    )


def test_says_where_tasks_are_too_few_to_promise_anything(files, capsys):
    assert run("plan", files.votes, "--target", 0.99, *QUICK) == 0
    said = "Nothing can be promised: 80 tasks are too few to show that 99.0% of their labels"
    assert said in capsys.readouterr().err


def test_known_truths_are_used(files, capsys):
    flags = ("--target", 0.6, "--gold-file", files.gold, *QUICK)
    assert run("plan", files.votes, *flags) == 0
    assert "by 80 known truths" in capsys.readouterr().err
    assert run("plan", files.votes, "--target", 0.95, *flags[2:]) == 0
    assert "80 tasks are too few to show that 95.0% of their labels" in capsys.readouterr().err


def test_says_where_truths_show_that_the_target_is_missed():
    votes = Annotations.from_matrix(np.tile(np.arange(200)[:, None] % 2, 4))  # half are wrong
    planner = Planner(IBCC(), target=0.9).look(votes, gold=dict.fromkeys(range(60), 0))
    said = summarize(planner)
    assert said.startswith("60 of 200 tasks done, those with known truths: these do not show")


def test_a_single_task_is_no_tasks():
    votes = Annotations.from_matrix(np.zeros((2, 2), dtype=int))
    assert "the truths of 1 task drawn" in summarize(Planner(IBCC(), target=0.0).look(votes))


@pytest.mark.parametrize("flag", ["--budget", "--cost"])
def test_money_is_not_negative(files, capsys, flag):
    assert run("plan", files.votes, "--budget", 5, flag, -1) == 2
    assert f"argument {flag}: '-1' is not a number of 0 or more" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--target", "--checks"])
def test_shares_are_from_0_to_1(files, capsys, flag):
    for value in ("2", "nan"):
        assert run("plan", files.votes, "--budget", 3, flag, value) == 2
        assert f"argument {flag}: '{value}' is not a number from 0 to 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("ann,bob,ann=3", "--available names ann twice"),
        (" ,", "--available names no worker"),
        ("ann=nan", "the cost of ann, 'nan' is not a number of 0 or more"),
    ],
)
def test_promise_20_workers_who_are_available_are_named_once(files, capsys, names, said):
    assert run("plan", files.votes, "--budget", 3, "--available", names, *QUICK) == 2
    assert said in capsys.readouterr().err


def test_promise_20_a_plan_beyond_memory_says_so(files, capsys):
    assert run("plan", files.votes, "--budget", 1e14, *QUICK) == 2
    assert "The plan would need about" in capsys.readouterr().err
