"""Names that would steer a terminal, or run in a spreadsheet, do neither."""

import json
import os
import re
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdwise
from crowdwise import progress
from crowdwise.annotations.names import guard, is_number, unguard
from crowdwise.cli import main
from crowdwise.cli.tables import align
from crowdwise.errors import FileError
from crowdwise.io import as_annotations, read, write_annotations, write_labels
from crowdwise.io.features import read_features, write_features
from crowdwise.screen import printable

ESCAPES = {
    "clear": "\x1b[2J",
    "title": "\x1b]0;owned\x07",
    "eight bits": "\x9b2J",
    "backspace": "a\b",
    "return": "a\rb",
    "right to left": "\u202eabc",
    "isolate": "\u2066abc",
    "no width": "a\u200bb",
    "byte order": "\ufeffa",
    "tag": "\U000e0041",
    "separator": "a\u2028b",
    "half": "a\udc80",
    "filler": "\u3164",
}
SEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u3164]"
)


@pytest.mark.parametrize("name", ESCAPES.values(), ids=ESCAPES)
def test_promise_15_what_is_not_seen_is_written_out(name):
    shown = printable(name)
    assert shown.isprintable()
    assert not SEEN.search(shown)
    assert json.loads(f'"{shown}"') == name


def test_promise_15_other_text_stays_as_it_is():
    for text in ("Zoë", "名前", "a\tb\n", "👍", "نام", "1 000\u00a0€", "C:\\u"):
        assert printable(text) == text
    assert printable("a\nb\t", keep="") == "a\\u000ab\\u0009"


@pytest.fixture
def votes(tmp_path):
    """Votes whose tasks, workers and labels clear the screen."""
    evil = "\x1b[2J\u202e\x9b"
    rows = [
        (f"t{t}{evil}", f"w{w}{evil}", f"{'yn'[(t + w) % 2]}{evil}")
        for t in range(9)
        for w in range(3)
    ]
    path = tmp_path / f"votes{evil}.csv"
    pd.DataFrame(rows, columns=["task", "worker", "label"]).to_csv(path, index=False)
    return path


class Terminal:
    """What a terminal is sent."""

    encoding = "utf-8"

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text
        return len(text)

    def isatty(self):
        return True

    def flush(self):
        pass

    def fileno(self):
        raise OSError


@pytest.mark.parametrize(
    "words",
    [
        ("aggregate", "{votes}"),
        ("aggregate", "{votes}", "--json"),
        ("aggregate", "{votes}", "--proba", "--verbose"),
        ("aggregate", "{votes}", "--method", "OrdinalMinimaxEntropy"),
        ("aggregate", "{votes}", "-o", "{votes}"),
        ("aggregate", "{votes}.gone"),
        ("aggregate", "{votes}", "--task", "\x1b[2J"),
        ("aggregate", "{votes}", "--classes", "\x1b[2J"),
        ("aggregate", "{votes}", "\x1b[2J"),
        ("aggregate", "{votes}", "--\x1b[2J"),
        ("aggregate", "{votes}.gone", "--debug"),
        ("\x1b[2J",),
        ("workers", "{votes}", "--min-labels", "1"),
        ("agreement", "{votes}", "--level", "ordinal"),
        ("compare", "{votes}", "--methods", "\x9b2J"),
        ("convert", "{votes}", "-"),
        ("convert", "{votes}", "-", "--to", "nested"),
        ("report", "{votes}", "--json"),
        ("report", "{votes}", "-o", "{folder}/page\x1b[2J.html"),
        ("predict", "{votes}", "{votes}"),
        ("simulate", "--tasks", "9", "-o", "{folder}/new\x1b[2J"),
    ],
    ids=lambda words: " ".join(words).replace("\x1b", "ESC"),
)
def test_promise_15_no_escape_reaches_a_terminal(words, votes, tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("crowdwise.progress.shown", nullcontext)  # bars return to a line's start
    main([word.format(votes=votes, folder=tmp_path) for word in words])
    assert terminal.text
    assert not SEEN.search(terminal.text)
    assert "2J" in terminal.text


def test_promise_15_bytes_do_not_go_to_a_terminal(votes, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for kind in ("parquet", "snorkel"):
        assert main(["convert", str(votes), "-", "--to", kind, "--quiet"]) == 2
    assert terminal.text == ""


def test_promise_15_tables_in_a_pipe_are_for_people_too(votes, capsys):
    assert main(["workers", str(votes), "--table", "--min-labels", "1"]) == 0
    assert not SEEN.search("".join(capsys.readouterr()))
    assert main(["aggregate", str(votes), "--quiet"]) == 0
    assert "\x1b[2J" in capsys.readouterr().out  # data goes into a pipe as it is
    assert align([["name", "label"], ["a\nb", "x\ty"]], right=set()).count("\n") == 1


def test_promise_15_errors_warnings_and_bars_are_printable(tmp_path):
    with pytest.raises(FileError) as caught:
        read(tmp_path / "gone\x1b[2J.csv")
    assert not SEEN.search(str(caught.value))
    terminal = Terminal()
    with progress.shown(terminal, delay=0), progress.bar("reading \x1b[2J\u202e", 3) as bar:
        bar.advance()
    assert "\\u001b[2J\\u202e" in terminal.text
    same = {"q\x1b[2J": {"a": 1}}
    with pytest.warns(UserWarning, match="left out") as warned:
        write_annotations(
            tmp_path / "x.csv",
            crowdwise.Annotations.from_frame(
                pd.DataFrame({"task": [*same], "worker": ["w"], "label": ["x"], "weight": [2.0]}),
                weight="weight",
            ),
            "wide",
        )
    assert not SEEN.search(str(warned[0].message))


FORMULAS = [
    "=1+1",
    '=HYPERLINK("x")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1+1",
    "a;=1+1",
    "a;'=1+1;\t@b",
    "a\n=1+1",
]
NAMES = [
    *FORMULAS,
    *(f"'{name}" for name in FORMULAS),
    "''=x",
    "'",
    "'ann",
    "=",
    "+",
    "-",
    "'-1",
    "x=1",
]


@pytest.mark.parametrize("name", NAMES)
def test_promise_15_no_formula_is_written_and_names_come_back(name, tmp_path):
    rows = [(name, "w", "a"), ("t", name, "a"), ("t", "w", name), ("t", "v", "b")]
    votes = as_annotations(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    for kind, ending in (("csv", "csv"), ("tsv", "tsv"), ("wide", "csv")):
        path = tmp_path / f"{kind}.{ending}"
        write_annotations(path, votes, kind)
        cells = pd.read_csv(path, sep="\t" if kind == "tsv" else ",", dtype=str, header=None)
        texts = [text for text in cells.stack() if isinstance(text, str)]
        assert not [t for t in texts if re.search(r"(^|[;\t\r\n])[=+@\t\r\n\uff1d-].", t)]
        back = read(path, "wide" if kind == "wide" else None)
        for names in ("tasks", "workers", "classes"):
            assert sorted(getattr(back, names)) == sorted(getattr(votes, names)), kind


@given(st.lists(st.text(alphabet="'=+-@;\t\r\n1a.e", max_size=6), max_size=5))
def test_promise_15_guarding_a_formula_loses_nothing(names):
    assert unguard([guard(name) for name in names]) == names
    assert all(not re.match("[=+@\t\r\n-].", g, re.S) or is_number(g) for g in map(guard, names))


def test_promise_15_titles_labels_and_features_are_guarded_too(tmp_path):
    frame = pd.DataFrame({"task": ["=a", 3], "p(=x)": 1.0, "=x": [0.5, -0.5], "note": ["-1", None]})
    write_labels(tmp_path / "labels.csv", frame)
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert lines == ["task,p(=x),'=x,note", "'=a,1.0,0.5,-1", "3,1.0,-0.5,"]
    write_features(tmp_path / "X.csv", np.ones((2, 1)), ["=a", "b"], ["f"])
    assert read_features(tmp_path / "X.csv").ids.tolist() == ["=a", "b"]
    (tmp_path / "votes.csv").write_text("task,worker,label\n'=a,ann,x\nb,ann,y\n")
    (tmp_path / "gold.csv").write_text("task,label\n'=a,x\n")
    votes = read(tmp_path / "votes.csv")
    assert votes.tasks.tolist() == ["=a", "b"]
    assert "apostrophes removed from names such as '=a'" in votes.notes
    assert crowdwise.io.gold.add_gold_file(votes, tmp_path / "gold.csv").gold.tolist() == [0, -1]


def test_promise_15_a_file_of_others_keeps_its_apostrophes(tmp_path):
    (tmp_path / "votes.csv").write_text("task,worker,label\n'=a,ann,x\n=a,ann,y\n'b,ann,x\n")
    assert read(tmp_path / "votes.csv").tasks.tolist() == ["'=a", "'b", "=a"]


def test_promise_15_the_page_guards_formulas_alike():
    script = (Path(crowdwise.__file__).parent / "report" / "page" / "report.js").read_text()
    pattern = re.search(r"const FORMULA = /(.*)/gs;", script)[1]
    for name in [*NAMES, "ann"]:
        assert re.sub(pattern, "'", name, flags=re.S) == guard(name)
    number = re.search(r"const NUMBER = /\^(.*)\$/;", script)[1]
    assert number == is_number.__self__.pattern


@pytest.mark.skipif(os.name != "posix", reason="file names of bytes")
def test_promise_15_a_file_name_that_is_no_text_can_be_named(tmp_path, capsys):
    path = os.fsdecode(bytes(tmp_path) + b"/votes\xff.csv")
    assert main(["aggregate", path]) == 1
    assert "votes\\udcff.csv" in capsys.readouterr().err


MIXED = np.array([1, 2, 2.5, 2**53 + 1], dtype=object)


@pytest.mark.parametrize("role", ["task", "worker", "label"])
def test_promise_15_whole_numbers_beside_others_stay_whole_in_a_wide_table(role, tmp_path):
    rows = [(f"t{i}", f"w{i % 2}", "x") for i in range(4)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"], dtype=object)
    frame[role] = pd.Series(MIXED, dtype=object)
    write_annotations(tmp_path / "wide.csv", as_annotations(frame), "wide")
    back = read(tmp_path / "wide.csv", "wide").to_frame()
    assert sorted(back[role]) == ["1", "2", "2.5", "9007199254740993"]


def test_promise_15_names_that_are_not_read_back_are_reported(tmp_path):
    same = pd.DataFrame({"task": ["1", "1.0", "2"], "worker": "w", "label": ["x", "y", "x"]})
    with pytest.warns(UserWarning, match=r"become the same text(.|\n)*'1' and '1.0'"):
        write_annotations(tmp_path / "votes.csv", as_annotations(same))
    spaced = as_annotations({"t": {" ann": "x", "bob": "y"}, "u": {" ann": "x"}})
    with pytest.warns(UserWarning, match=r"' ann' are read back without the spaces(.|\n)*fix: "):
        write_annotations(tmp_path / "wide.csv", spaced, "wide")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_annotations(tmp_path / "votes.csv", spaced)
        write_annotations(tmp_path / "votes.csv", as_annotations(same[::2]))
