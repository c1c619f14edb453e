"""JSON for machines, from every command that prints a table."""

import json

import pytest

from crowdwise import aggregate, learn
from crowdwise.cli import main


def rows_of(capsys, *words):
    assert main([str(word) for word in words]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("command", "key", "n_rows"),
    [("aggregate", "task", 80), ("workers", "worker", 4), ("agreement", "measure", None)],
)
def test_tables(files, capsys, command, key, n_rows):
    rows = rows_of(capsys, command, files.votes, "--json")
    assert n_rows is None or len(rows) == n_rows
    assert all(key in row for row in rows)


def test_a_file_goes_before_the_screen(files, capsys):
    target = files.folder / "labels.csv"
    assert main(["aggregate", str(files.votes), "--json", "-o", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert target.read_text().startswith("task,label")


def test_methods(capsys):
    rows = rows_of(capsys, "methods", "--json")
    assert [row["name"] for row in rows] == sorted(aggregate.__all__, key=str.casefold)
    rows = rows_of(capsys, "methods", "--kind", "learn", "--json")
    assert [row["name"] for row in rows] == sorted(learn.LEARNERS, key=str.casefold)
    assert all(row["about"].endswith(".") for row in rows)
    assert rows_of(capsys, "methods", "SpeeLFC", "--json")[0]["name"] == "SpeeLFC"


def test_datasets(capsys):
    rows = rows_of(capsys, "datasets", "list", "--json")
    assert {"name", "license", "bytes"} <= set(rows[0])


def test_gold_may_be_a_file(files, capsys):
    one = rows_of(capsys, "aggregate", files.votes, "--json", "--gold", files.gold)
    other = rows_of(capsys, "aggregate", files.votes, "--json", "--gold-file", files.gold)
    assert one == other
    assert one != rows_of(capsys, "aggregate", files.votes, "--json")
