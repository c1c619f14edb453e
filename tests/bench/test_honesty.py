"""What was seen before is said wherever it matters, and nothing is compared that cannot be."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

import crowdbench
from crowdbench.page import NOT_BLIND, page
from crowdbench.results import Results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
SIGNS = ("▲", "▼", " = |", "cannot tell |")


@pytest.fixture(scope="module")
def measured():
    spec = importlib.util.spec_from_file_location("measured", ROOT / "docs" / "measured.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seen(name):
    """Rows and columns of a table, run or not, whose settings were fixed after seeing tests."""
    table = crowdbench.table(name)
    return {(row, column) for row, column in table.cells() if table.not_blind(row, column)}


def parts(text):
    """The lines of every column's part of a page."""
    pieces = re.split(r"^\*\*(.+?)\*\*.*$", text, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


SEEN = [name for name in crowdbench.names() if seen(name)]


def test_the_tables_that_were_seen_say_so():
    assert set(SEEN) >= {
        "iced-table2",
        "iced-figure2",
        "iced-difficulty",
        "imbalance-sweep",
        "labelme",
        "speelfc-table2",
        "neucrowd-table2",
        "neucrowd-table3",
        "lia-table2",
    }
    for name in ("iced-table2", "iced-figure2", "iced-difficulty", "imbalance-sweep"):
        table = crowdbench.table(name)
        network = [row for row in table.rows if "network prior" in row]
        column = next(c for c in table.columns if "Gisette" not in c)
        assert network
        assert all(table.not_blind(row, column) for row in network)


@pytest.mark.parametrize("name", crowdbench.names())
def test_every_mark_is_on_the_page(name):
    """In each column exactly the rows that are not blind have the mark, and its reason."""
    text, marked = (RESULTS / f"{name}.md").read_text(), seen(name)
    table = crowdbench.table(name)
    for column, lines in parts(text).items():
        if column not in table.columns:
            continue
        for row in table.rows:
            here = f"\n| {row} {NOT_BLIND} |" in lines
            assert f"\n| {row} |" not in lines or (row, column) not in marked, (row, column)
            assert not here or (row, column) in marked, (row, column)
            if here:
                assert table.not_blind(row, column) in text
    ran = {(line["row"], line["column"]) for line in stored(name)["summary"]}
    for line in stored(name)["summary"]:
        place = line["row"], line["column"]
        assert bool(line.get("not_blind")) == (place in marked)
    for pair in re.findall(r"^\| (.+?) \| (.+?) \| .* ± ", text, flags=re.MULTILINE):
        for row, column in marked & ran:
            if pair[1] == column and " - " in pair[0]:
                shown = pair[0].split(" - ")
                assert row not in shown, (row, column)


def stored(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def test_every_mark_is_on_the_page_of_the_gpu():
    """It has its own file, with rows of another table."""
    lines = parts((RESULTS / "speelfc-table2-h200.md").read_text())["MGC"]
    shown = {row for row, column in seen("speelfc-table2") if f"| {row}" in lines}
    assert shown
    assert all(f"\n| {row} {NOT_BLIND} |" in lines for row in shown)


def shared_metrics(name, column):
    """What every row of a column is measured by."""
    by_row = {}
    for line in stored(name)["summary"]:
        if line["column"] == column and line["mean"] is not None:
            by_row.setdefault(line["row"], []).append(line["metric"])
    own = list(by_row.values())
    return [metric for metric in (own[0] if own else ()) if all(metric in one for one in own)]


@pytest.mark.parametrize("name", SEEN)
def test_every_mark_is_where_docs_show_the_row(name, measured):
    """In the table of best learners, and in tables of one column."""
    lines = [one for one in measured.best_learners().splitlines() if f"/{name}.md)" in one]
    several = len({line["column"] for line in stored(name)["summary"]}) > measured.MOST_COLUMNS
    for row, column in seen(name):
        for line in lines:
            if several or f": {column} |" in line:
                assert not re.search(rf"(\| |, ){re.escape(row)} \.?\d", line), line
        for metric in shared_metrics(name, column)[:1]:
            assert f"| {row} |" not in measured.column(name, column, [metric])
    assert NOT_BLIND in measured.best_learners().split("\n\n")[-1]


def test_a_single_run_is_not_among_the_best(measured, monkeypatch):
    line = {"metric": "accuracy", "column": "one", "mean": 0.8, "error": 0.0}
    lines = [{**line, "row": "sure"}, {**line, "row": "lucky", "mean": 0.9, "error": None}]
    monkeypatch.setattr(measured, "lines_of", lambda name: lines)
    assert measured.learner_scores("a-table") == {"one": {"sure": 0.8}}


def test_every_mark_is_on_the_pages_of_methods(measured):
    found = measured.bench_results("ICED", ["ICED"], [])
    for table in found.split("From [")[:-1]:
        assert table
    for line in found.splitlines():
        for name in ("ICED (network prior)", "network prior, final"):
            if "Gisette" not in line:
                assert f"| {name} |" not in line
    assert f"{NOT_BLIND} Not blind: " in found


def test_pages_of_today_are_made_from_the_runs():
    """A page that was written before a row was marked would not show it."""
    for name in SEEN:
        results = Results(crowdbench.table(name), RESULTS)
        text = page(results.table, results.summary(), [], {}, results.about())
        for row, column in seen(name):
            if any(run[:2] == (row, column) for run in results.runs):
                assert f"| {row} {NOT_BLIND} |" in text


@pytest.mark.parametrize("name", crowdbench.names())
def test_stand_ins_are_not_compared(name):
    table = crowdbench.table(name)
    text = parts((RESULTS / f"{name}.md").read_text())
    for column, chosen in table.columns.items():
        if chosen.stand_in:
            assert not any(sign in text.get(column, "") for sign in SIGNS), column
            marks = [one["mark"] for one in stored(name)["summary"] if one["column"] == column]
            assert not any(marks)
    published = {column for row in table.rows.values() for column in row.published}
    simulated = [column for column in published if "stand-in" in column]
    assert all(table.columns[column].stand_in for column in simulated)


def test_no_page_claims_more_than_the_tables():
    for file in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        words = " ".join(file.read_text().split())
        assert "No setting was chosen" not in words, file.name
        assert "60,000 groups per epoch, as in the paper" not in words, file.name
        assert "learns the noise" not in words, file.name
