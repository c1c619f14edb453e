"""Bad input: one clear message, the right status, and what was there before stays."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.cli import main

GOOD = "task,worker,label\na,ann,x\na,bob,x\nb,ann,y\nb,bob,x\n"
READERS = ("aggregate", "workers", "agreement")


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.csv"
    path.write_text(GOOD)
    return path


def fails(words, capsys, status=1):
    """The message of a command that must fail, without a traceback."""
    assert main([str(word) for word in words]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert "this is a bug" not in err
    last = err[err.rindex("crowdwise: ") :]
    assert last.count("\n") <= 5
    return last


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("header.csv", b"task,worker,label\n"),
        ("junk.csv", bytes(range(256)) * 40),
        ("junk.json", b"{]"),
        ("junk.parquet", b"PAR1 no, it is not"),
        ("columns.csv", b"when,weather\n2024,rain\n2025,sun\n"),
        ("no_labels.csv", b"task,worker,label\na,ann,\nb,bob,\n"),
    ],
)
def test_a_bad_file_is_named(command, name, content, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(content)
    message = fails([command, path], capsys)
    assert message.startswith("crowdwise: ")
    assert "expected:" in message or "fix:" in message


@pytest.mark.parametrize("command", READERS)
def test_a_missing_file_is_named(command, tmp_path, capsys):
    assert "nowhere.csv" in fails([command, tmp_path / "nowhere.csv"], capsys)


@pytest.mark.parametrize("command", READERS)
def test_an_empty_folder_is_named(command, tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "folder" in fails([command, folder], capsys)


@pytest.mark.parametrize("command", READERS)
def test_an_unknown_column_is_named(command, good, capsys):
    message = fails([command, good, "--label", "color"], capsys)
    assert "color" in message
    assert "label" in message


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    "content",
    ["a,ann,x\nb,ann,y\n", "a,ann,x\na,bob,x\n", "a,ann,x\n"],
    ids=["one worker", "one class", "one annotation"],
)
def test_thin_data_is_no_error(command, content, tmp_path, capsys):
    path = tmp_path / "thin.csv"
    path.write_text("task,worker,label\n" + content)
    assert main([command, str(path)]) == 0
    assert capsys.readouterr().out.count("\n") >= 2


def test_an_unknown_method_gets_a_hint(good, capsys):
    message = fails(["aggregate", good, "--method", "DavidSkene"], capsys, status=2)
    assert "no method 'DavidSkene'" in message
    assert "expected: DawidSkene" in message
    assert "MajorityVote" in fails(["methods", "qqq"], capsys, status=2)


def test_an_unknown_parameter_is_named(good, capsys):
    message = fails(["aggregate", good, "--set", "smoothnes=1"], capsys, status=2)
    assert "BayesBag has no parameter 'smoothnes'" in message
    assert "smoothing" in message


@pytest.mark.parametrize("value", ["max_iter=0", "max_iter=many", "tol=-1", "class_prior=[1]"])
def test_a_refused_value_is_named(good, capsys, value):
    words = ["aggregate", good, "--method", "DawidSkene", "--set", value]
    message = fails(words, capsys, status=2)
    assert value.partition("=")[0] in message
    assert "Got" in message or "expected" in message


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["aggregate"], "annotations"),
        (["aggregate", "x.csv", "--set", "max_iter"], "name=value"),
        (["aggregate", "x.csv", "--set", "=3"], "name=value"),
        (["aggregate", "x.csv", "--seed", "one"], "--seed"),
        (["agreement", "x.csv", "--level", "cardinal"], "cardinal"),
        (["agregate", "x.csv"], "agregate"),
        (["workers", "x.csv", "--wat"], "--wat"),
        (["--wat"], "--wat"),
    ],
)
def test_wrong_usage_has_status_two(words, what, capsys):
    message = fails(words, capsys, status=2)
    assert what in message
    assert "--help" in message


def test_two_classes_only(tmp_path, capsys):
    path = tmp_path / "three.csv"
    path.write_text(GOOD + "c,ann,z\n")
    assert "two classes" in fails(["aggregate", path, "--method", "KOS"], capsys)


def test_text_has_no_intervals(good, capsys):
    message = fails(["agreement", good, "--level", "interval"], capsys, status=2)
    assert "ordinal" in message


@pytest.mark.parametrize("flags", [["--confidence", "2"], ["--resamples", "-1"]])
def test_impossible_intervals(good, flags, capsys):
    assert "is not a" in fails(["agreement", good, *flags], capsys, status=2)


def test_gold_for_other_tasks(good, tmp_path, capsys):
    gold = tmp_path / "gold.csv"
    gold.write_text("task,label\nzzz,x\n")
    assert "zzz" in fails(["aggregate", good, "--gold-file", gold], capsys)


class TestOutput:
    @pytest.mark.parametrize("command", READERS)
    def test_folder_that_is_not_there(self, command, good, tmp_path, capsys):
        target = tmp_path / "no" / "labels.csv"
        assert str(target) in fails([command, good, "-o", target], capsys)

    def test_folder_in_the_way(self, good, tmp_path, capsys):
        assert "folder" in fails(["aggregate", good, "-o", tmp_path], capsys)

    def test_unknown_kind(self, good, tmp_path, capsys):
        message = fails(["aggregate", good, "-o", tmp_path / "labels.xyz"], capsys, status=2)
        assert ".xyz" in message
        assert "parquet" in message

    @pytest.mark.parametrize("command", READERS)
    def test_a_failure_half_way_leaves_the_old_file(
        self, command, good, tmp_path, capsys, monkeypatch
    ):
        target = tmp_path / "out.csv"
        target.write_text("precious\n")

        def fail(_, file):
            file.write("half of")
            raise OSError(28, "No space left on device")

        monkeypatch.setitem(__import__("crowdwise.io.write").io.write.TABLES, "csv", fail)
        assert "No space left" in fails([command, good, "-o", target], capsys)
        assert target.read_text() == "precious\n"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["good.csv", "out.csv"]

    def test_bad_input_leaves_the_old_file(self, tmp_path, capsys):
        target = tmp_path / "out.csv"
        target.write_text("precious\n")
        fails(["aggregate", tmp_path / "nowhere.csv", "-o", target], capsys)
        assert target.read_text() == "precious\n"


class TestTheUnforeseen:
    def raising(self, monkeypatch, error):
        def broken(*_, **__):
            raise error

        monkeypatch.setattr("crowdwise.io.consensus.consensus_frame", broken)

    def test_a_bug_is_owned_up_to(self, good, monkeypatch, capsys):
        self.raising(monkeypatch, ZeroDivisionError("by nought"))
        assert main(["aggregate", str(good)]) == 1
        err = capsys.readouterr().err
        assert "crowdwise: this is a bug: ZeroDivisionError: by nought" in err
        assert "in broken" in err
        assert "please report" in err
        assert "Traceback" not in err

    def test_debug_shows_where(self, good, monkeypatch, capsys):
        self.raising(monkeypatch, ZeroDivisionError("by nought"))
        assert main(["aggregate", str(good), "--debug"]) == 1
        assert "Traceback" in capsys.readouterr().err
        assert main(["aggregate", "nowhere.csv", "--debug"]) == 1
        assert "Traceback" in capsys.readouterr().err

    def test_ctrl_c(self, good, monkeypatch, capsys):
        self.raising(monkeypatch, KeyboardInterrupt())
        assert main(["aggregate", str(good)]) == 130
        assert capsys.readouterr().err.endswith("crowdwise: stopped.\n")

    @pytest.mark.parametrize(
        ("error", "words"),
        [
            (MemoryError(), "not enough memory"),
            (OSError(5, "Input/output error"), "Input/output error"),
            (UnicodeEncodeError("ascii", "é", 0, 1, "no"), "cannot show 'é'"),
        ],
    )
    def test_the_machine_gives_up(self, good, monkeypatch, capsys, error, words):
        self.raising(monkeypatch, error)
        assert words in fails(["aggregate", good], capsys)


def test_one_task_with_thousands_of_labels(tmp_path, capsys):
    path = tmp_path / "one_task.csv"
    frame = pd.DataFrame({"task": 1, "worker": np.arange(3000), "label": np.arange(3000) % 2})
    frame.to_csv(path, index=False)
    for command in READERS:
        assert main([command, str(path), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["aggregate", "votes.csv", "--methd", "IBCC"], "did you mean --method? See crowdwise agg"),
        (["aggregate", "votes.csv", "more.csv"], "see crowdwise aggregate --help"),
        (["--verson"], "did you mean --version? See crowdwise --help"),
        (["aggregat", "votes.csv"], "did you mean aggregate? See crowdwise --help"),
        (["agreement", "votes.csv", "--level", "ordnal"], "did you mean ordinal? See crowdwise ag"),
        (["agreement", "votes.csv", "--level", "Qxz"], "see crowdwise agreement --help"),
    ],
)
def test_a_misspelled_word_gets_a_suggestion(words, meant, capsys):
    assert f"fix:      {meant}" in fails(words, capsys, status=2)
