"""``crowdwise report``: what it writes, and what it says."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from crowdwise.cli import main
from crowdwise.simulate import confused_crowd, one_coin_confusion


@pytest.fixture
def files(tmp_path):
    """Votes, truth and features of a small crowd, one worker of whom does not look."""
    accuracy = [0.9, 0.8, 0.8, 0.7, 0.5]
    crowd = confused_crowd(one_coin_confusion(accuracy, 2), 90, 4, prior=[0.8, 0.2], random_state=1)
    votes = crowd.annotations.to_frame()
    votes["task"] = [f"q{k}" for k in votes["task"]]
    votes["worker"] = [f"w{k}" for k in votes["worker"]]
    votes["label"] = np.array(["no", "yes"])[votes["label"]]
    votes.to_csv(tmp_path / "votes.csv", index=False)
    truth = {"task": [f"q{k}" for k in range(90)], "label": np.array(["no", "yes"])[crowd.truth]}
    pd.DataFrame(truth).to_csv(tmp_path / "truth.csv", index=False)
    X = np.random.RandomState(0).random_sample((90, 3)) + crowd.truth[:, None]
    np.savez(tmp_path / "X.npz", X=X, ids=np.array(truth["task"]))
    return tmp_path


def test_a_page_beside_the_votes(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    assert main(["report", "votes.csv"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "- " in err
    assert "report.html" in err.splitlines()[-1]
    text = (files / "report.html").read_text()
    assert "<h1><bdi>votes</bdi></h1>" in text
    assert "No truths are known" in text


def test_truth_features_method_and_title(files, capsys):
    target = files / "page.html"
    flags = ["--truth", files / "truth.csv", "--features", files / "X.npz", "--method", "ibcc"]
    flags += ["--title", "A & B", "-o", target, "--quiet"]
    assert main(["report", str(files / "votes.csv"), *map(str, flags)]) == 0
    assert capsys.readouterr().err == ""
    text = target.read_text()
    assert "A &amp; B" in text
    assert "Scores on 90 known truths" in text
    assert "by the features" in text
    assert "IBCC" in text


def test_numbers_for_machines(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    assert main(["report", "votes.csv", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["data"]["n_tasks"] == 90
    assert len(facts["tasks"]["name"]) == 90
    assert not (files / "report.html").exists()
    more = ["--method", "MajorityVote", "-o", "facts.json"]
    assert main(["report", "votes.csv", *more]) == 0
    assert json.loads((files / "facts.json").read_text())["title"] == "votes"


def test_from_standard_input(files, monkeypatch):
    class Piped:
        buffer = (files / "votes.csv").open("rb")

    monkeypatch.setattr(sys, "stdin", Piped())
    with Piped.buffer:
        assert main(["report", "-", "-o", str(files / "piped.html"), "--quiet"]) == 0
    assert "<bdi>Crowd labels</bdi>" in (files / "piped.html").read_text()


def test_a_dash_is_the_screen(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    assert main(["report", "votes.csv", "-o", "-", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert main(["report", "votes.csv", "-o", "-", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "votes"
    assert not (files / "-").exists()


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (["--method", "Nonsense"], 2, "no method 'Nonsense'"),
        (["--set", "max_iter=-3"], 2, "max_iter"),
        (["--truth", "missing.csv"], 1, "missing.csv"),
        (["--features", "missing.npz"], 1, "missing.npz"),
        (["-o", "no/such/folder/report.html"], 1, "cannot be written"),
    ],
)
def test_mistakes_are_reported_and_nothing_is_written(
    files, capsys, monkeypatch, flags, status, words
):
    monkeypatch.chdir(files)
    assert main(["report", "votes.csv", *flags]) == status
    err = capsys.readouterr().err
    assert words in err
    assert "bug" not in err
    assert not (files / "report.html").exists()
