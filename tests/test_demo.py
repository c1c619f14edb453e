"""The demo: what it writes, what it finds, and what it does without torch."""

import io
import json
import re
import runpy
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pandas as pd
import pytest

from crowdwise import demo as module
from crowdwise.cli import main
from crowdwise.demo import demo
from crowdwise.errors import MissingExtraError

pytestmark = pytest.mark.usefixtures("quick_default")
EXAMPLE = Path(__file__).parent.parent / "examples" / "demo.py"


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


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """The example, run where there is no torch: its folder, and what it printed and said."""
    folder = tmp_path_factory.mktemp("tour")
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(module, "train_classifiers", _missing)
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert end.value.code == 0
    return folder / "demo", out.getvalue(), err.getvalue()


def test_the_files_it_leaves_are_a_start_for_the_other_commands(tour):
    folder, out, _ = tour
    assert re.search(r"annotated clips +MajorityVote +0\.\d{3}", out)
    assert "Open demo/report.html" in out
    flags = ["--truth", f"{folder}/truth.csv", "--features", f"{folder}/features.csv"]
    target = ["-o", f"{folder}/again.json", "--quiet", "--method", "MajorityVote"]
    assert main(["report", f"{folder}/votes.csv", *flags, *target]) == 0


def test_without_torch_it_says_so_and_goes_on(tour):
    folder, out, err = tour
    assert 'pip install "crowdwise[torch]"' in err
    assert all(name in out for name in module.AGGREGATORS)
    assert "AutoClassifier" not in out
    assert "by the features" in (folder / "report.html").read_text()


def test_numbers_for_machines(tmp_path, capsys, monkeypatch):
    table = pd.DataFrame({"labels of": ["annotated clips"], "accuracy": [0.75]})
    monkeypatch.setattr(module, "demo", lambda *_, **__: table)
    assert main(["demo", "-o", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["accuracy"] == 0.75


def test_a_file_in_the_way_is_named(tmp_path, capsys):
    (tmp_path / "taken").write_text("precious")
    assert main(["demo", "-o", str(tmp_path / "taken")]) == 1
    assert f"The folder {tmp_path / 'taken'} cannot be created" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text() == "precious"


def _missing(*_):
    raise MissingExtraError.of("crowdwise.learn", "PyTorch", "torch")
