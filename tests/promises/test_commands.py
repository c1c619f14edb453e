"""Promises of the commands: what is said, what is never lost, what is never shown or run."""

import argparse
import configparser
import logging
import os
import re
import signal
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crowdwise.aggregate import BayesBag, OrdinalMinimaxEntropy
from crowdwise.cli import COMMANDS, build_parser, main
from crowdwise.cli.files import READ, WRITTEN
from crowdwise.errors import ParameterError
from crowdwise.evaluate import agreement, cohen_kappa, cohen_kappa_matrix, fleiss_kappa, gwet_ac

ROOT = Path(__file__).parents[2]
WORDS = np.array(["poor", "fair", "good"])
ALPHABETIC = "Order taken: fair < good < poor."


@pytest.fixture
def ratings(tmp_path):
    """40 tasks rated by four workers who miss by a step at most."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    rows = [
        (f"t{task}", f"w{worker}", WORDS[np.clip(truth[task] + rng.choice([0, 0, 0, 1]), 0, 2)])
        for task in range(40)
        for worker in range(4)
    ]
    path = tmp_path / "ratings.csv"
    pd.DataFrame(rows, columns=["task", "worker", "label"]).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("aggregate", "--method", "OrdinalMinimaxEntropy"),
        ("workers", "--method", "OrdinalMinimaxEntropy"),
        ("compare", "--methods", "OrdinalMinimaxEntropy"),
        ("agreement", "--level", "ordinal"),
    ],
    ids=lambda words: words[0],
)
def test_promise_07_the_order_of_a_scale_is_reported(words, ratings, capsys):
    command, *flags = words
    assert main([command, str(ratings), *flags]) == 0
    shown = "".join(capsys.readouterr())
    assert ALPHABETIC in shown
    if command != "agreement":  # where every measure says it
        assert shown.count(ALPHABETIC) == 1
    assert main([command, str(ratings), *flags, "--classes", "poor,fair,good"]) == 0
    assert "Order taken: poor < fair < good." in "".join(capsys.readouterr())


def test_promise_07_the_order_of_a_scale_is_reported_in_python(ratings, caplog):
    frame = pd.read_csv(ratings)
    OrdinalMinimaxEntropy().fit(frame)
    assert caplog.record_tuples == [
        ("crowdwise", logging.WARNING, f"OrdinalMinimaxEntropy: {ALPHABETIC}")
    ]
    caplog.clear()
    cohen_kappa_matrix(frame, weights="linear")
    assert ALPHABETIC in caplog.text
    for measure in (fleiss_kappa, gwet_ac, cohen_kappa):
        assert measure(frame, weights="quadratic").note == ALPHABETIC
        assert measure(frame).note == ""


def test_promise_07_the_order_of_a_scale_in_a_bag_is_reported(ratings, caplog):
    BayesBag(OrdinalMinimaxEntropy(max_iter=2), n_bags=2).fit(pd.read_csv(ratings))
    assert caplog.text.count(ALPHABETIC) == 1


def test_promise_07_numbers_in_order_go_without_saying(caplog):
    labels = [[1, 1, 2], [3, 3, 2], [1, 1, 1], [2, 2, 10]] * 5
    OrdinalMinimaxEntropy().fit(labels)
    assert fleiss_kappa(labels, weights="linear").note == ""
    assert caplog.text == ""
    OrdinalMinimaxEntropy().fit(np.array(labels).astype(str).astype(object))
    assert "Order taken: 1 < 10 < 2 < 3." in caplog.text


@pytest.mark.parametrize(
    "weights",
    [
        [[1, 2, 0.5], [2, 1, 0.5], [0.5, 0.5, 1]],
        [[1, -1, 0], [-1, 1, 0], [0, 0, 1]],
        [[1, np.nan, 0], [np.nan, 1, 0], [0, 0, 1]],
        [[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]],
        [["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]],
        np.eye(2),
        np.eye(3) * 0.5,
    ],
)
def test_promise_22_weights_that_are_no_shares_of_agreement_are_refused(ratings, weights):
    frame = pd.read_csv(ratings)
    for measure in (fleiss_kappa, gwet_ac, cohen_kappa, cohen_kappa_matrix):
        with pytest.raises(ParameterError, match=r"cannot be used for 3 classes(.|\n)*fix: "):
            measure(frame, weights=weights)


@pytest.mark.parametrize(
    ("level", "weights"),
    [("ordinal", "linear"), ("interval", "quadratic"), ("ratio", "ratio")],
)
def test_promise_22_weighted_kappas_are_named(level, weights, tmp_path, capsys):
    labels = np.random.default_rng(0).choice([0, 1, 2, 9], size=(30, 3))
    table = agreement(labels, level=level, n_resamples=0)["value"]
    measures = {"Fleiss' kappa": fleiss_kappa, "Cohen's kappa": cohen_kappa, "Gwet's AC2": gwet_ac}
    for name, measure in measures.items():
        expected = measure(labels, weights=weights).value
        assert table[f"{name} ({weights} weights)"] == expected
    path = tmp_path / "wide.csv"
    pd.DataFrame(labels, columns=["a", "b", "c"]).rename_axis("task").to_csv(path)
    assert main(["agreement", str(path), "--level", level, "--resamples", "0"]) == 0
    assert f"Fleiss' kappa ({weights} weights)" in capsys.readouterr().out


def test_promise_22_ratio_is_its_own():
    labels = np.random.default_rng(0).choice([0, 1, 2, 9], size=(30, 3))
    assert "Fleiss' kappa" in agreement(labels, n_resamples=0).index
    values = [fleiss_kappa(labels, weights=w).value for w in ("linear", "quadratic", "ratio")]
    assert len(set(values)) == 3
    # 1 and 2 are a third apart relative to their sum, 1 and 9 four fifths.
    numbers = np.array([0.0, 1, 2, 9])
    gap = (numbers[:, None] - numbers) ** 2 / np.maximum((numbers[:, None] + numbers) ** 2, 1e-9)
    assert fleiss_kappa(labels, weights=1 - gap).value == pytest.approx(values[2])


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with a crowd, its features and its truths, as the current one."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 30)
    rows = [
        (t, w, "yes" if truth[t] ^ (rng.random() < 0.2) else "no")
        for t in range(30)
        for w in range(3)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    frame.to_csv(tmp_path / "votes.csv", index=False)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "votes.csv").write_bytes((tmp_path / "votes.csv").read_bytes())
    pd.DataFrame({"task": range(30), "label": np.where(truth, "yes", "no")}).to_csv(
        tmp_path / "truth.csv", index=False
    )
    pd.DataFrame({"task": range(30), "a": truth + 0.1, "b": rng.random(30)}).to_csv(
        tmp_path / "X.csv", index=False
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


NAMES_OF_ONE_FILE = {
    "itself": "votes.csv",
    "another path": "folder/../votes.csv",
    "a whole path": "{home}/votes.csv",
    "a link": "link.csv",
    "a link to a link": "second.csv",
    "a hard link": "hard.csv",
    "a link of a folder": "elsewhere/votes.csv",
    "descriptor": "/dev/fd/{fd}",
}
COMMANDS_THAT_WRITE = {
    "convert": ("convert", "votes.csv", "{out}"),
    "aggregate": ("aggregate", "votes.csv", "-o", "{out}"),
    "report": ("report", "votes.csv", "-o", "{out}"),
    "workers": ("workers", "votes.csv", "-o", "{out}"),
    "agreement": ("agreement", "votes.csv", "-o", "{out}"),
    "compare": ("compare", "X.csv", "--truth", "votes.csv", "-o", "{out}"),
    "fit": ("fit", "votes.csv", "--features", "X.csv", "-o", "{out}"),
    "embed": ("embed", "X.csv", "--features", "votes.csv", "-o", "e.csv", "--model", "{out}"),
    "predict": ("predict", "votes.csv", "X.csv", "-o", "{out}"),
}


def refused(home, words, capsys, what="is an input, and would be overwritten"):
    """Check that a command refuses at once, with no file changed and none added."""
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert main([str(word) for word in words]) == 2
    err = capsys.readouterr().err
    assert what in err
    assert "recognized" not in err  # nothing was read yet
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("command", "name"),
    [*(("convert", n) for n in NAMES_OF_ONE_FILE), *((c, "a link") for c in COMMANDS_THAT_WRITE)],
)
def test_promise_13_no_input_is_written_over(command, name, home, capsys):
    (home / "link.csv").symlink_to("votes.csv")
    (home / "second.csv").symlink_to("link.csv")
    (home / "hard.csv").hardlink_to("votes.csv")
    (home / "elsewhere").symlink_to(home)
    with (home / "votes.csv").open() as file:
        out = NAMES_OF_ONE_FILE[name].format(home=home, fd=file.fileno())
        refused(home, [word.format(out=out) for word in COMMANDS_THAT_WRITE[command]], capsys)


def test_promise_13_no_file_of_a_folder_that_is_read_is_written_over(home, capsys):
    (home / "link.csv").symlink_to("folder/votes.csv")
    (home / "folder" / "more.csv").symlink_to(home / "votes.csv")
    for out in ("folder/votes.csv", "link.csv", "votes.csv"):
        refused(home, ["convert", "folder", out], capsys)
    assert main(["convert", "folder", "folder/notes.html", "--to", "csv", "--quiet"]) == 0


def test_promise_13_no_result_is_added_to_a_folder_that_is_read(home, capsys):
    (home / "folder" / "more.csv").mkdir()
    (home / "folder" / "more.csv" / "ann.csv").write_bytes((home / "votes.csv").read_bytes())
    what = "would be read with the other files of"
    for out in ("new.csv", "more.csv/bob.json", "../folder/new.csv.gz"):
        refused(home, ["convert", "folder", f"folder/{out}", "--to", "csv"], capsys, what)
    refused(home, ["report", "folder", "-o", "folder/report.json"], capsys, what)
    assert main(["report", "folder", "-o", "folder/report.html", "--quiet"]) == 0


def test_promise_13_a_set_is_not_mixed_with_other_files(home, capsys):
    (home / "set").mkdir()
    (home / "set" / "votes.csv").symlink_to("elsewhere.csv")  # which is not there
    words = ["simulate", "--tasks", "9", "-o"]
    assert main([*words, "set"]) == 1
    assert "set already holds votes.csv" in capsys.readouterr().err
    assert (home / "set" / "votes.csv").is_symlink()
    (home / "folder" / "votes.csv").rename(home / "folder" / "bob.csv")
    assert main([*words, "folder"]) == 1
    assert "folder already holds bob.csv" in capsys.readouterr().err
    assert [path.name for path in (home / "folder").iterdir()] == ["bob.csv"]
    assert main(["aggregate", "folder", "-o", "labels.csv", "-q"]) == 0
    assert main(["simulate", "-o", "crowd", "--tasks", "9", "-q"]) == 0
    assert main(["aggregate", "crowd", "-o", "crowd/labels.csv", "-q"]) == 0  # known beside votes


def test_promise_13_the_usual_name_of_a_report_is_an_output_too(home, capsys):
    (home / "report.html").symlink_to("votes.csv")
    refused(home, ["report", "votes.csv"], capsys)


def test_promise_13_a_redirected_file_is_not_written_over(home):
    before = (home / "votes.csv").read_bytes()
    for words, mode in (
        (["convert", "-", "votes.csv"], "rb"),
        (["convert", "votes.csv", "-"], "ab"),
    ):
        with (home / "votes.csv").open(mode) as file:
            streams = {"stdin": file} if mode == "rb" else {"stdout": file}
            done = subprocess.run(
                [sys.executable, "-m", "crowdwise", *words],
                stderr=subprocess.PIPE,
                check=False,
                **streams,
            )
        assert (done.returncode, b"is an input" in done.stderr) == (2, True)
        assert (home / "votes.csv").read_bytes() == before


def test_promise_13_two_results_do_not_go_to_one_file(home, capsys):
    words = ["embed", "votes.csv", "--features", "X.csv", "-o", "new.csv", "--model", "./new.csv"]
    refused(home, words, capsys, "would be written twice")


def test_promise_13_a_token_is_not_written_over(home, capsys):
    (home / "token").write_text("secret")
    words = ["connect", "label-studio", "pull", "--url", "http://127.0.0.1:9", "--project", "1"]
    refused(home, [*words, "--token-file", "token", "-o", "./token"], capsys)
    assert (home / "token").read_text() == "secret"


def test_promise_13_the_tour_replaces_nothing_but_a_tour(home, capsys):
    before = (home / "votes.csv").read_bytes()
    assert main(["demo", "-o", str(home)]) == 1
    assert "contains votes.csv, truth.csv" in capsys.readouterr().err
    assert (home / "votes.csv").read_bytes() == before


def all_actions():
    """Every flag and argument of every command."""
    parser = build_parser(COMMANDS)
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return list(chain.from_iterable(command._actions for command in commands.choices.values()))


def test_promise_13_every_file_of_every_command_is_looked_at():
    named = {
        action.dest
        for action in all_actions()
        if action.metavar in ("FILE", "FOLDER")
        or action.dest in ("annotations", "model", "features")
    }
    assert named == {*READ, *WRITTEN} - {"gold", "prices"}  # a column or a file


def press(*_):
    """Press Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def interrupted(monkeypatch):
    """Press Ctrl-C just before a finished file is moved to its place."""
    monkeypatch.setattr(Path, "replace", press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "words",
    [
        ("aggregate", "votes.csv", "-o", "old"),
        ("report", "votes.csv", "-o", "old.html"),
        ("convert", "votes.csv", "old", "--to", "csv"),
        ("workers", "votes.csv", "-o", "old"),
        ("agreement", "votes.csv", "-o", "old"),
        ("compare", "votes.csv", "--methods", "MajorityVote", "-o", "old"),
        ("fit", "votes.csv", "--features", "X.csv", "--method", "TwoStage", "-o", "old"),
        ("embed", "votes.csv", "--features", "X.csv", "--set", "epochs=1", "-o", "old"),
        ("simulate", "-o", ".", "--force", "--tasks", "9"),
        ("simulate", "-o", "new", "--tasks", "9"),
    ],
    ids=lambda words: " ".join(words[:1] + words[-2:]),
)
@pytest.mark.usefixtures("interrupted")
def test_promise_14_an_interrupted_command_leaves_the_old_file(words, home, capsys):
    for name in ("old", "old.html"):
        (home / name).write_text("precious")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert main(list(words)) == 130
    assert capsys.readouterr().err.endswith("crowdwise: stopped.\n")
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


TRAINED = {
    "fit": ("fit", "votes.csv", "--features", "X.csv", "--method", "SpeeLFC", "-o", "model"),
    "embed": ("embed", "votes.csv", "--features", "X.csv", "-o", "e.csv", "--model", "model"),
    "compare": (
        "compare",
        "votes.csv",
        "--features",
        "X.csv",
        "--methods",
        "SpeeLFC",
        "-o",
        "model",
    ),
}


@pytest.fixture
def interrupt_training(monkeypatch):
    """Press Ctrl-C in the third epoch of a training."""
    from crowdwise.nets.loop import Loop

    usual, epochs = Loop.epoch, []

    def epoch(self, loss):
        epochs.append(self)
        if len(epochs) == 3:
            press()
        usual(self, loss)

    monkeypatch.setattr(Loop, "epoch", epoch)
    return epochs


@pytest.mark.parametrize("words", TRAINED.values(), ids=TRAINED)
def test_promise_14_an_interrupted_training_leaves_the_old_model(
    words, home, interrupt_training, capsys
):
    (home / "model").write_text("precious")
    assert main(list(words)) == 130
    assert (home / "model").read_text() == "precious"
    assert not (home / "e.csv").exists()
    assert len(interrupt_training) == 3
    assert "crowdwise: stopped." in capsys.readouterr().err


@pytest.mark.parametrize("words", [TRAINED["fit"], TRAINED["embed"]], ids=["fit", "embed"])
@pytest.mark.usefixtures("interrupt_training")
def test_promise_14_what_was_learned_is_kept_if_asked(words, home, capsys):
    import crowdwise

    (home / "model").write_text("old")
    assert main([*words, "--keep-partial"]) == 130
    assert "interrupted and only half trained" in capsys.readouterr().err
    model = crowdwise.load(home / "model")
    assert len(model.history_.loss) == 2


def test_promise_14_a_second_interrupt_stops_at_once(home, monkeypatch):
    from crowdwise.nets.loop import Loop

    monkeypatch.setattr(Loop, "epoch", press)
    monkeypatch.setattr(Loop, "best_member", press)
    assert main([*TRAINED["fit"], "--keep-partial"]) == 130
    assert not (home / "model").exists()


def test_promise_14_an_interrupted_download_leaves_nothing(tmp_path, monkeypatch):
    def receive(*args):
        args[-1].add(b"half of")
        press()

    monkeypatch.setenv("CROWDWISE_CACHE", str(tmp_path))
    monkeypatch.setattr("crowdwise.datasets.download._receive", receive)
    assert main(["datasets", "fetch", "wordsim"]) == 130
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


ENDLESS = ("--set", "max_iter=1000000000", "--set", "tol=0")
# Commands that work for long or without end, and what they say once they are at it.
WORKING = {
    "fit": ((*TRAINED["fit"], "--set", "epochs=1000000"), b"training"),
    "aggregate": (
        ("aggregate", "votes.csv", "--method", "OneCoin", *ENDLESS, "-o", "model"),
        b"step 9",
    ),
    "report": (
        ("report", "votes.csv", "--method", "OneCoin", *ENDLESS, "-o", "old.html"),
        b"step 9",
    ),
    "compare": (("compare", "votes.csv", "-o", "model"), b"step 1"),
}


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize(("words", "sign"), WORKING.values(), ids=WORKING)
def test_promise_14_ctrl_c_ends_a_process_at_work(words, sign, home):
    old = [home / name for name in ("model", "old.html")]
    for path in old:
        path.write_text("precious")
    with subprocess.Popen(
        [sys.executable, "-m", "crowdwise", *words, "--verbose"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        seen = b""
        while sign not in seen:
            seen += os.read(process.stderr.fileno(), 4096)
            assert process.poll() is None, seen
        process.send_signal(signal.SIGINT)
        seen += process.stderr.read()
        assert process.stdout.read() == b""
    assert process.returncode == 130
    assert b"Traceback" not in seen
    assert seen.endswith(b"crowdwise: stopped.\n")
    assert [path.read_text() for path in old] == ["precious", "precious"]
    assert not [path for path in home.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("command", "method", "other"),
    [
        ("aggregate", "SpeeLFC", "fit"),
        ("aggregate", "RLL", "embed"),
        ("report", "two-stage", "fit"),
        ("workers", "TwoStage", "fit"),
        ("fit", "DawidSkene", "aggregate"),
        ("fit", "RLL", "embed"),
        ("embed", "DawidSkene", "aggregate"),
    ],
)
def test_promise_20_a_method_of_another_command_names_it(command, method, other, capsys):
    assert main([command, "no such file", "--method", method]) == 2
    assert f"use crowdwise {other} --method" in capsys.readouterr().err
    assert main(["compare", "no such file", "--methods", "RLL"]) == 2
    assert "use crowdwise embed --method RLL" in capsys.readouterr().err


@pytest.mark.usefixtures("home")
def test_promise_20_fit_and_embed_choose_the_method_before_they_read(capsys):
    for command in ("fit", "embed"):
        words = [command, "gone.csv", "--features", "gone.csv", "-o", "x.csv", "--method", "Wat"]
        assert main(words) == 2
        assert "There is no method 'Wat'" in capsys.readouterr().err


TRAINING = ("--features", "gone.csv", "-o", "x.csv")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("fit", "SpeeLFC", "learning_rate=fast"), "a number of 0 or more, or a dict of numbers"),
        (("fit", "SpeeLFC", "n_restarts=many"), "a whole number of 1 or more"),
        (("fit", "SpeeLFC", "random_state=-1"), "None or a whole number"),
        (("fit", "LIA", "optimizer=best"), "adadelta, adam, adamw, amsgrad, radam, sgd"),
        (("embed", "RLL", "dropout=2"), "a number from 0 to 1"),
        (("embed", "RLL", "sizes=8"), "a list of numbers"),
        (("aggregate", "BayesBag", "base=5"), "None"),
        (("plan", "DawidSkene", "max_iter=True"), "a whole number of 1 or more"),
        (("report", "DawidSkene", "smoothing=['a']"), "a number above 0, or a list of numbers"),
        (("workers", "IBCC", "class_smoothing=1e+300"), "a number above 0"),
    ],
    ids=lambda words: words[-1] if isinstance(words, tuple) else "",
)
def test_promise_20_a_setting_is_refused_in_words_before_any_work(words, expected, capsys):
    command, method, setting = words
    files = TRAINING if command in ("fit", "embed") else ()
    assert main([command, "gone.csv", *files, "--method", method, "--set", setting]) == 2
    said = f"--set {setting} cannot be used.\n  expected: {expected}\n"
    assert said in capsys.readouterr().err


def test_promise_20_numbers_of_flags_have_a_range():
    assert not [action.dest for action in all_actions() if action.type in (int, float)]


@pytest.mark.parametrize(
    "words",
    [
        ("agreement", "--seed=-1"),
        ("judges", "--cut=nan"),
        ("judges", "--range=0,inf"),
        ("judges", "--confidence=1"),
        ("plan", "--budget=inf"),
        ("compare", "--seed=1e9"),
        ("agreement", f"--resamples={10**30}"),
    ],
    ids=lambda words: words[1],
)
def test_promise_20_numbers_of_flags_are_checked_before_any_work(words, capsys):
    command, flag = words
    assert main([command, "gone.csv", flag]) == 2
    assert f"argument {flag.partition('=')[0]}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("X.csv", "model"), "fix:      crowdwise predict model X.csv"),
        (("model", "model"), "model is a model, but features are expected"),
        (("votes.csv", "X.csv"), "votes.csv is not a model"),
        (("model", "votes.csv"), "votes.csv has annotations instead of features"),
        (("crowd", "X.csv"), "The MajorityVote in crowd does not predict from features"),
    ],
)
def test_promise_20_predict_says_which_file_it_expects(words, fact, home, capsys):
    from crowdwise.aggregate import MajorityVote

    fit = ["fit", "votes.csv", "--features", "X.csv", "--method", "TwoStage", "-o", "model", "-q"]
    assert main(fit) == 0
    MajorityVote().fit(home / "votes.csv").save("crowd")
    assert main(["predict", *words]) in (1, 2)
    err = capsys.readouterr().err
    assert fact in err
    assert "expected:" in err


@pytest.mark.parametrize("name", ["page.pdf", "page.PDF", "page.csv", "page.docx"])
def test_promise_20_a_report_is_a_page_or_json(name, home, capsys):
    import crowdwise

    assert main(["report", "votes.csv", "-o", name]) == 2
    err = capsys.readouterr().err
    assert f"A report cannot be written as {Path(name).suffix}" in err
    assert "read as" not in err
    with pytest.raises(crowdwise.errors.ParameterError, match="cannot be written"):
        crowdwise.report.write_report(home / "votes.csv", name)
    assert not (home / name).exists()


def test_promise_20_a_folder_of_a_simulated_crowd_is_read(home, capsys, monkeypatch):
    monkeypatch.setattr("crowdwise.demo.EPOCHS", 1)
    monkeypatch.setattr("crowdwise.demo.GROUPS", 500)
    assert main(["simulate", "-o", "crowd", "--tasks", "20", "-q"]) == 0
    assert main(["demo", "-o", "tour", "-q"]) == 0
    capsys.readouterr()
    for folder in ("crowd", "tour"):
        assert main(["aggregate", folder]) == 0
        out, err = capsys.readouterr()
        assert f"of the folder {folder} only votes.csv is read" in err
        assert main(["aggregate", f"{folder}/votes.csv", "-q"]) == 0
        assert capsys.readouterr().out == out
    (home / "crowd" / "bob.csv").write_text("task,worker,label\n1,bob,x\n")
    assert main(["aggregate", "crowd"]) == 1  # no longer such a folder


def test_promise_20_saving_an_aggregator_needs_no_torch(tmp_path):
    code = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch': raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "import crowdwise; from crowdwise.aggregate import MajorityVote\n"
        f"path = {str(tmp_path / 'model')!r}\n"
        "MajorityVote().fit([[0, 0], [1, 1]]).save(path)\n"
        "print(crowdwise.load(path).labels_.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.stdout.split() == [b"[0,", b"1]"], done.stderr
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert any(name.startswith("safetensors") for name in needed)


@pytest.mark.parametrize("command", COMMANDS)
def test_promise_20_every_command_can_be_quiet_or_verbose(command, capsys):
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "-q, --quiet" in out
    assert "-v, --verbose" in out


@pytest.mark.usefixtures("home")
def test_promise_20_short_flags_do_what_long_ones_do(capsys):
    assert main(["aggregate", "votes.csv", "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["aggregate", "votes.csv", "--method", "DawidSkene", "-v"]) == 0
    assert "step 1" in capsys.readouterr().err
    for action in (["list"], ["info", "wsd"], ["where"]):
        assert main(["datasets", *action, "-q"]) == 0


@pytest.mark.usefixtures("home")
def test_promise_20_compare_explains_its_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ["compare", "votes.csv", "--truth", "truth.csv", "--table", "-q"]
    assert main([*words, "--methods", "MajorityVote,Wawa,DawidSkene,GLAD,IBCC"]) == 0
    tables = capsys.readouterr().out.split("\n\n")
    assert max(len(line) for table in tables[:-1] for line in table.splitlines()) <= 80
    heads = [re.split("  +", table.splitlines()[0]) for table in tables[:2]]
    assert main(["compare", "--help"]) == 0
    text = capsys.readouterr().out
    for name in {*heads[0], *heads[1], "same labels"} - {"method", "95% interval"}:
        assert f"\n  {name} " in text


def read_versions(text, sign):
    """The versions that a list of requirements names after a sign, by package."""
    return {
        name.lower(): version for name, version in re.findall(rf"([\w.-]+){sign}([\w.]+)", text)
    }


def test_promise_23_the_oldest_versions_are_those_that_are_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    own = (extras[name] for name in ("excel", "parquet", "plot", "zstd"))
    asked = chain(project["dependencies"], *own)
    allowed = read_versions(" ".join(asked), ">=")
    pinned = read_versions((ROOT / "constraints-oldest.txt").read_text().partition("\n\n")[0], "==")
    tools = read_versions(" ".join(extras["test"]), ">=")
    assert set(allowed) <= set(pinned)
    for name, version in pinned.items():
        if name != "torch":  # older builds pull several gigabytes
            assert pad(version) == pad({**tools, **allowed}[name]), name


def pad(version):
    """A version with three numbers."""
    return [*version.split("."), "0", "0"][:3]


def test_promise_23_one_command_runs_every_python_and_both_ends():
    config = configparser.ConfigParser()
    config.read(ROOT / "tox.ini")
    assert config["tox"]["env_list"] == "py3{11,12,13,14}-{oldest,newest}"
    assert config["tox"]["skip_missing_interpreters"] == "true"
    for end in ("oldest", "newest"):
        assert f"constraints-{end}.txt" in config["testenv"]["set_env"]
        assert "torch==2.13.0" in (ROOT / f"constraints-{end}.txt").read_text()
    assert config["testenv"]["commands"] == "make smoke BIN={env_bin_dir}"
    assert "tox run" in re.search(r"^matrix:(.*\n)+?\n", (ROOT / "Makefile").read_text(), re.M)[0]


def test_promise_23_what_was_run_is_declared():
    page = (ROOT / "docs" / "dependencies.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {
        re.search(r"3\.\d\d", text)[0] for text in project["classifiers"] if ":: 3.1" in text
    }
    assert declared == {row[1] for row in re.finditer(r"^\| (3\.\d\d)\.\d+ ", page, re.M)}
