"""crowdwise compare: methods side by side, without truth and with it."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.cli import main
from crowdwise.cli.compare import USUAL


def table_of(text):
    return pd.read_csv(io.StringIO(text), index_col="method", keep_default_na=True)


def run(*words):
    assert main([str(word) for word in words]) == 0


def test_prints_csv_into_a_pipe(files, capsys):
    run("compare", files.votes)
    out, err = capsys.readouterr()
    table = table_of(out)
    assert tuple(table.index) == USUAL
    assert table.loc["MajorityVote", "changed"] == 0
    assert (table["held_out_low"] <= table["held_out"]).all()
    assert (table["held_out"] <= table["held_out_high"]).all()
    assert table["behind"].min() == 0
    assert np.isnan(table.loc["MajorityVote", "objective"])
    assert table.loc["DawidSkene", "objective"] < 0
    ours, theirs = (method.fit_predict(files.votes) for method in (MajorityVote(), DawidSkene()))
    assert table.loc["DawidSkene", "agreement_MajorityVote"] == pytest.approx(
        (ours == theirs).mean()
    )
    assert "accuracy" not in table
    assert "8 methods compared" in err


def test_scores_by_truth_from_a_file_or_a_column(files, capsys):
    run("compare", files.votes, "--truth", files.gold, "--methods", "MajorityVote", "--quiet")
    table = table_of(capsys.readouterr().out)
    right = MajorityVote().fit_predict(files.votes)
    truth = pd.read_csv(files.gold, index_col="task")["label"]
    assert table.loc["MajorityVote", "accuracy"] == pytest.approx(
        (right == truth[right.index]).mean()
    )
    assert table.loc["MajorityVote", "n_truths"] == 80
    for column in ("balanced_accuracy", "macro_f1", "minority_recall"):
        low, high = (table.loc["MajorityVote", f"{column}_{end}"] for end in ("low", "high"))
        assert low < table.loc["MajorityVote", column] < high
    both = files.folder / "both.csv"
    votes = pd.read_csv(files.votes)
    votes.assign(gold=votes["task"].map(truth)).to_csv(both, index=False)
    run("compare", both, "--methods", "MajorityVote", "--quiet")
    again = table_of(capsys.readouterr().out)
    assert again.loc["MajorityVote", "accuracy"] == table.loc["MajorityVote", "accuracy"]


def test_nothing_is_learned_from_the_truth(files, capsys):
    words = ["compare", files.votes, "--methods", "DawidSkene", "--quiet"]
    run(*words)
    without = table_of(capsys.readouterr().out)
    run(*words, "--truth", files.gold)
    known = table_of(capsys.readouterr().out)
    assert without["objective"].equals(known["objective"])


def test_learners_need_features(files, capsys):
    words = ["compare", files.votes, "--methods", "TwoStage,majority-vote", "--quiet", "--json"]
    run(*words)
    rows = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in rows] == ["TwoStage", "MajorityVote"]
    assert "needs features" in rows[0]["note"]
    assert rows[0]["held_out"] is None
    run(*words, "--features", files.features)
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["note"] == ""
    assert rows[0]["held_out"] < 0


def test_says_what_it_comes_to_on_a_terminal(files, capsys):
    words = ["compare", files.votes, "--table", "--methods", "MajorityVote,DawidSkene,KOS"]
    run(*words, "--truth", files.gold)
    out = capsys.readouterr().out
    assert out.splitlines()[0].split()[:3] == ["method", "changed", "confidence"]
    assert "same labels" in out
    assert "All methods agree on" in out
    assert "are measured on known truths" in out
    assert "nan" not in out
    run(*words, "--held-out", "0")
    out = capsys.readouterr().out
    assert re.search(r"They expect \d+% \(\w+\) to \d+% \(\w+\) of their labels", out)
    assert "None of this shows which is right" in out


def test_reports_how_stable_and_how_calibrated_answers_are(files, capsys):
    run("compare", files.votes, "--methods", "MajorityVote,BayesBag", "--truth", files.gold)
    table = table_of(capsys.readouterr().out)
    assert table["stability"].between(0.7, 1).all()
    assert (table["log_loss"] > 0).all()
    assert table["calibration_error"].between(0, 1).all()


@pytest.mark.parametrize("scored", [True, False])
def test_numbers_end_where_their_headings_do(files, capsys, scored):
    truth = ["--truth", files.gold] if scored else []
    run("compare", files.votes, "--table", "--methods", "MajorityVote,DawidSkene", *truth)
    lines = capsys.readouterr().out.splitlines()
    tables = {0: ("changed", "confidence", "held-out", "time")}
    if scored:
        tables[4] = ("accuracy", "minority recall", "log loss", "calibration")
    for start, names in tables.items():
        head, *rows = lines[start : start + 3]
        for name in names:
            end = head.index(name) + len(name)
            for row in rows:
                assert row[end - 1] in "0123456789%"
                assert row[end : end + 1] in ("", " ")


def test_a_method_that_cannot_is_a_note(files, capsys):
    path = files.folder / "three.csv"
    votes = pd.read_csv(files.votes)
    votes.loc[0, "label"] = "maybe"
    votes.to_csv(path, index=False)
    run("compare", path, "--methods", "KOS,MajorityVote", "--table")
    assert "KOS works with two classes" in capsys.readouterr().out


def test_every_step_is_reported_on_request(files, capsys):
    words = ["compare", files.votes, "--methods", "MajorityVote,Wawa"]
    run(*words)
    assert "fitting" not in capsys.readouterr().err
    run(*words, "--verbose")
    assert "fitting Wawa" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["a,ann,x\nb,ann,y\n", "a,ann,x\na,bob,x\n", "a,ann,x\n"])
def test_thin_data_is_no_error(files, content, capsys):
    path = files.folder / "thin.csv"
    path.write_text("task,worker,label\n" + content)
    run("compare", path)
    assert len(table_of(capsys.readouterr().out)) == len(USUAL)


def test_bad_input(files, fails, tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"")
    assert "empty" in fails("compare", empty)
    assert "folder" in fails("compare", files.folder / "nowhere.csv", "-o", tmp_path / "x.csv")
    assert "no method 'Wat'" in fails("compare", files.votes, "--methods", "Wat", status=2)
    assert "empty" in fails("compare", files.votes, "--truth", empty)
    assert "'2' is not a number from 0 to 1" in fails(
        "compare", files.votes, "--held-out", "2", status=2
    )
    assert "confidence" in fails("compare", files.votes, "--confidence", "2", status=2)
    other = tmp_path / "other.csv"
    other.write_text("task,label\nzzz,yes\n")
    assert "zzz" in fails("compare", files.votes, "--truth", other)
    three = files.folder / "three.csv"
    votes = pd.read_csv(files.votes)
    votes.loc[0, "label"] = "maybe"
    votes.to_csv(three, index=False)
    assert "No method could be fitted" in fails("compare", three, "--methods", "KOS", status=2)
