"""From one format to another on the command line."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.cli import main

EXPORTS = Path(__file__).parents[1] / "io" / "exports"


def test_an_export_becomes_a_table(tmp_path, capsys):
    target = tmp_path / "votes.csv"
    source = EXPORTS / "label_studio.json"
    assert main(["convert", str(source), str(target), "--question", "animal"]) == 0
    assert target.read_text().splitlines()[0] == "task,worker,label,time,gold"
    told = capsys.readouterr().err
    assert "3 annotations of 2 tasks by 2 workers" in told
    assert "label from question 'animal'" in told
    assert "3 annotations written" in told


def test_goes_to_the_screen_in_any_kind(capsys):
    assert main(["convert", str(EXPORTS / "long.csv"), "-", "--to", "nested"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "q1": {"ann": "yes"},
        "q2": {"ann": "no"},
    }


def test_writes_a_snorkel_matrix(tmp_path):
    assert main(["convert", str(EXPORTS / "wide.csv"), str(tmp_path / "L.npy"), "--quiet"]) == 0
    assert np.load(tmp_path / "L.npy").tolist() == [[1, 0, -1], [-1, 0, 1], [1, -1, 0]]


def test_reads_standard_input(tmp_path, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(b"task,worker,label\n1,2,3\n"))
    monkeypatch.setattr("sys.stdin", stream)
    assert main(["convert", "-", str(tmp_path / "votes.json")]) == 0
    assert cw.read(tmp_path / "votes.json").n_annotations == 1


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["label_studio.json", "votes.csv"], 1, "2 questions"),
        (["nothing.csv", "votes.csv"], 1, "no file"),
        (["long.csv", "votes.xlsx"], 2, "'.xlsx'"),
        (["long.csv", "no/such/folder/votes.csv"], 1, "cannot be written"),
    ],
)
def test_mistakes_get_one_clear_error(words, status, told, tmp_path, capsys):
    assert main(["convert", str(EXPORTS / words[0]), str(tmp_path / words[1])]) == status
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
