"""The demo: what it writes, what it finds, and what it does without torch."""

import re

import pandas as pd
import pytest

from crowdwise import demo as module
from crowdwise.cli import main
from crowdwise.demo import demo
from crowdwise.errors import MissingExtraError


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """Train for a moment only."""
    monkeypatch.setattr(module, "EPOCHS", 1)
    monkeypatch.setattr(module, "GROUPS", 500)


def test_it_labels_learns_embeds_and_reports(tmp_path):
    steps = []
    table = demo(tmp_path / "new" / "demo", say=steps.append)
    folder = tmp_path / "new" / "demo"
    assert {file.name for file in folder.iterdir()} == {
        "votes.csv", "truth.csv", "features.csv", "labels.csv", "report.html"
    }  # fmt: skip
    assert table["labels of"].tolist() == ["annotated clips"] * 4 + ["new clips"] * 4
    assert table["accuracy"].between(0.6, 1).all()
    assert (table["accuracy_low"] < table["accuracy"]).all()
    assert "by the embedding" in (folder / "report.html").read_text()
    assert any("AutoClassifier" in text for text in steps)
    labels = pd.read_csv(folder / "labels.csv", index_col="task")["label"]
    truth = pd.read_csv(folder / "truth.csv", index_col="task")["label"]
    assert (labels == truth[labels.index]).mean() > 0.9


def test_the_files_it_leaves_are_a_start_for_the_other_commands(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(module, "train_classifiers", _missing)
    assert main(["demo", "-o", str(tmp_path), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"annotated clips +MajorityVote +0\.\d{3}", out)
    assert f"Open {tmp_path}/report.html" in out
    flags = ["--truth", f"{tmp_path}/truth.csv", "--features", f"{tmp_path}/features.csv"]
    target = ["-o", f"{tmp_path}/again.json", "--quiet"]
    assert main(["report", f"{tmp_path}/votes.csv", *flags, *target]) == 0


def test_without_torch_it_says_so_and_goes_on(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(module, "train_classifiers", _missing)
    assert main(["demo", "-o", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert 'pip install "crowdwise[torch]"' in err
    assert out.count("annotated clips") == 4
    assert "by the features" in (tmp_path / "report.html").read_text()


def test_a_file_in_the_way_is_named(tmp_path, capsys):
    (tmp_path / "taken").write_text("precious")
    assert main(["demo", "-o", str(tmp_path / "taken")]) == 1
    assert f"The folder {tmp_path / 'taken'} cannot be created" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text() == "precious"


def _missing(*_):
    raise MissingExtraError.of("crowdwise.learn", "PyTorch", "torch")
