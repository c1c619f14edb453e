"""``crowdwise simulate``: a folder that the other commands read."""

import json

import numpy as np
import pandas as pd
import pytest

from crowdwise.cli import main


def said(capsys, *words):
    status = main(["simulate", *map(str, words)])
    output = capsys.readouterr()
    return status, output.out, output.err


def test_writes_a_crowd_to_order(capsys, tmp_path):
    status, out, err = said(
        capsys, "-o", tmp_path / "crowd", "--tasks", 60, "--workers", 7, "--spammers", 2,
        "--adversaries", 1, "--colluders", 1, "--drifters", 1, "--classes", 3,
        "--prior", ".7,.2,.1", "--redundancy", 4, "--accuracy", ".9,.9",
    )  # fmt: skip
    assert status == 0
    names = ["votes.csv", "truth.csv", "features.csv", "workers.csv"]
    assert out.splitlines() == [str(tmp_path / "crowd" / name) for name in names]
    assert err.startswith("simulated: 240 annotations of 60 tasks by 7 workers, 3 classes")
    workers = pd.read_csv(tmp_path / "crowd" / "workers.csv")
    assert workers["kind"].tolist() == [
        *("one-coin", "one-coin", "spammer", "spammer", "adversary", "colluder", "drifter"),
    ]
    assert workers["accuracy"][0] == 0.9


def test_what_it_writes_the_other_commands_read(capsys, tmp_path):
    assert said(capsys, "classroom", "-o", tmp_path, "--quiet")[0] == 0
    files = [str(tmp_path / name) for name in ("votes.csv", "truth.csv")]
    assert main(["workers", files[0], "--gold-file", files[1], "--quiet", "--json"]) == 0
    table = {row["worker"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(table) == 9
    assert main(["aggregate", files[0], "-o", str(tmp_path / "labels.csv")]) == 0
    found = pd.read_csv(tmp_path / "labels.csv", index_col="task")["label"]
    truth = pd.read_csv(files[1], index_col="task")["label"]
    assert (found == truth).mean() > 0.85


def test_a_summary_for_machines(capsys, tmp_path):
    status, out, err = said(capsys, "class", "-o", tmp_path, "--json", "--quiet", "--seed", 2)
    facts = json.loads(out)
    assert (status, err) == (0, "")
    assert (facts["name"], facts["tasks"], facts["workers"]) == ("stand_in_class", 472, 5)
    assert facts["fleiss_kappa"] == pytest.approx(0.4, abs=0.002)
    assert facts["tasks_of_class"] == {"0": 152, "1": 320}
    assert facts["kinds"] == {"confused": 5}
    assert facts["files"][0] == str(tmp_path / "votes.csv")
    assert "stand-in" in facts["warnings"][0]
    assert facts["seed"] == 2


def test_warnings_are_reported(capsys, tmp_path):
    assert (
        "results on it say nothing about the real one" in said(capsys, "class", "-o", tmp_path)[2]
    )


def test_features_as_arrays(capsys, tmp_path):
    assert said(capsys, "-o", tmp_path, "--npz", "--n-features", 3, "--tasks", 9)[0] == 0
    assert np.load(tmp_path / "features.npz")["X"].shape == (9, 3)


def test_a_seed_repeats_it(capsys, tmp_path):
    flags = ("--tasks", 40, "--difficulty", 0.5, "--abstention", 0.2)
    for name, seed in (("one", 5), ("same", 5), ("other", 6)):
        said(capsys, "-o", tmp_path / name, "--seed", seed, *flags)
    one, same, other = (
        (tmp_path / name / "votes.csv").read_text() for name in ("one", "same", "other")
    )
    assert one == same
    assert one != other
    assert len(one.splitlines()) < 190


def test_never_overwrites_without_saying_so(capsys, tmp_path):
    assert said(capsys, "-o", tmp_path, "--tasks", 9)[0] == 0
    before = (tmp_path / "votes.csv").read_text()
    status, out, err = said(capsys, "-o", tmp_path, "--tasks", 9, "--seed", 1)
    assert (status, out) == (1, "")
    assert "already holds votes.csv, truth.csv, features.csv, workers.csv." in err
    assert (tmp_path / "votes.csv").read_text() == before
    status, _, err = said(capsys, "-o", tmp_path, "--tasks", 9, "--seed", 1, "--force")
    assert status == 0
    assert "replaced votes.csv" in err
    assert (tmp_path / "votes.csv").read_text() != before


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["nope"], 2, "expected: classroom, syn1, syn2"),
        (["syn1", "--tasks", "9"], 2, "--tasks cannot be combined with 'syn1'"),
        (["syn1", "--n-features", "9"], 2, "--n-features cannot be combined"),
        (["--prior", "a,b"], 2, "not a list of numbers"),
        (["--prior", ".5,.4"], 2, "sum to 1"),
        (["--spammers", "11"], 2, "at least one good worker"),
        (["--spammers", "-1"], 2, "0 or more"),
        (["--redundancy", "12"], 2, "12 labels from 11 workers"),
        (["--redundancy", "0"], 2, "--redundancy: '0' is not"),
        (["--classes", "1"], 2, "2 or more"),
        (["--tasks", "0"], 2, "1 or more"),
        (["--accuracy", "0.9"], 2, "a pair"),
        (["--difficulty", "-1"], 2, "0 or more"),
        (["--seed", "-1"], 2, "whole number"),
        (["--seed", "4294967296"], 2, "whole number"),
    ],
)
def test_mistakes_get_one_clear_error(words, status, told, capsys, tmp_path):
    found, out, err = said(capsys, *words, "-o", tmp_path / "crowd")
    assert (found, out) == (status, "")
    assert told in err
    assert "bug" not in err
    assert not (tmp_path / "crowd").exists()


def test_needs_a_folder(capsys):
    status, _, err = said(capsys, "classroom")
    assert status == 2
    assert "-o" in err


@pytest.mark.parametrize("flag", ["--tasks", "--workers", "--classes", "--redundancy"])
def test_counts_are_refused_in_the_words_of_the_command(flag, tmp_path, fails):
    assert f"{flag}: '0' is not" in fails(
        "simulate", "-o", str(tmp_path / "s"), flag, "0", status=2
    )
