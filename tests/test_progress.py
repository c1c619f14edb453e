"""Bars: nothing unless asked for; else total, rate and time left of every kind of long work."""

import io
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import tqdm

from crowdwise import progress
from crowdwise.aggregate import (
    KOS,
    MACE,
    MMSR,
    PM,
    DawidSkene,
    LabelModel,
    MajorityVote,
    ZeroBasedSkill,
)
from crowdwise.evaluate import agreement, compare_methods, worker_quality
from crowdwise.io import read, write_annotations
from crowdwise.report import gather
from crowdwise.simulate import confused_crowd, one_coin_confusion

# What is done of what there is to do, the time it took < the time left, and the rate.
TEXT = r"{what}: +\d+%\|.*\| +{done}/{total} \[\d\d:\d\d<(\d\d:\d\d|\?), +(\?|[\d.]+k?) ?{unit}"


@pytest.fixture(scope="module")
def crowd():
    confusion = one_coin_confusion([0.9, 0.8, 0.6], n_classes=2)
    return confused_crowd(confusion, 60, 3, random_state=0)


@pytest.fixture
def drawn():
    """A stream, and all bars from the first moment on it."""
    file = io.StringIO()
    with progress.shown(file, delay=0, every=0):
        yield file


def seen(file, what, total, unit, done=r"\d+"):
    values = {"what": what, "total": total, "unit": unit, "done": done}
    return re.search(TEXT.format(**values), file.getvalue())


class TestBars:
    def test_they_have_total_rate_and_time_left(self, drawn, monkeypatch):
        clock = [0.0]
        monkeypatch.setattr(tqdm.std, "time", lambda: clock[0])
        for _ in progress.track(range(4), "work"):
            clock[0] += 2.0
        lines = drawn.getvalue().split("\r")
        texts = [re.search(r"(\d)/4 \[(\S+), +([\d.]+s/step)\]", line) for line in lines]
        assert [text.groups() for text in texts if text] == [
            ("1", "00:02<00:06", "2.00s/step"),
            ("2", "00:04<00:04", "2.00s/step"),
            ("3", "00:06<00:02", "2.00s/step"),
            ("4", "00:08<00:00", "2.00s/step"),
        ]

    def test_short_work_has_none(self):
        file = io.StringIO()
        with progress.shown(file, delay=60):
            assert list(progress.track(range(3), "work")) == [0, 1, 2]
            with progress.bar("more", 3) as bar:
                bar.advance(3)
            progress.write("a line in between")
        assert file.getvalue() == ""

    def test_a_bar_goes_when_the_work_is_done(self, drawn):
        list(progress.track(range(3), "work"))
        assert drawn.getvalue().endswith("\r")
        assert drawn.getvalue().split("\r")[-2].strip() == ""

    def test_nothing_is_drawn_unless_asked_for(self, capfd):
        steps = range(3)
        assert progress.track(steps, "work") is steps
        with progress.bar("work", 3) as bar:
            bar.advance(2)
            bar.skip(1)
        assert bar.done == 2
        assert capfd.readouterr() == ("", "")

    def test_asking_ends_with_the_block(self, drawn):
        steps = range(3)
        with progress.hidden():
            assert progress.track(steps, "work") is steps
        assert progress.track(steps, "work") is not steps

    def test_standard_error_is_the_default(self, capsys):
        with progress.shown(delay=0, every=0):
            list(progress.track(range(3), "work"))
        assert "work: 100%" in capsys.readouterr().err

    def test_what_was_in_vain_is_taken_back_and_what_is_left_out_not_expected(self, drawn):
        with progress.bar("work", 10) as bar:
            bar.advance(5)
            bar.advance(-2)
            bar.skip(3)
            bar.advance()
        assert bar.done == 4
        assert seen(drawn, "work", 7, "step", done=4)

    def test_lines_go_above_the_bars(self, drawn, capsys):
        progress.write("before")
        for _ in progress.track(range(2), "work"):
            progress.write("a line")
        assert capsys.readouterr().err.splitlines() == ["before", "a line", "a line"]

    def test_a_line_does_not_bring_out_a_bar_before_its_time(self, capsys):
        with progress.shown(delay=60), progress.bar("work", 3) as bar:
            bar.advance()
            progress.write("a line")
        assert capsys.readouterr().err == "a line\n"

    def test_a_terminal_of_unknown_width_has_bars(self):
        pty = pytest.importorskip("pty")
        outside, inside = pty.openpty()  # 0 columns wide
        with os.fdopen(inside, "w") as file, progress.shown(file, delay=0, every=0):
            list(progress.track(range(3), "work"))
        seen = b""
        while b"3/3" not in seen:  # a terminal passes on what it gets in pieces, and then refuses
            seen += os.read(outside, 10_000)
        os.close(outside)

    def test_a_generator_that_is_left_early_closes_its_bar(self, drawn):
        for step in progress.track(range(100), "work"):
            if step == 3:
                break
        assert drawn.getvalue().endswith("\r")

    def test_tqdm_is_loaded_only_when_something_is_shown(self):
        program = (
            "import sys; from crowdwise import progress; list(progress.track([1], 'work')); "
            "assert 'tqdm' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", program], check=True)


class TestWork:
    def test_steps_of_em(self, crowd, drawn):
        DawidSkene(max_iter=9, tol=0).fit(crowd.annotations)
        assert seen(drawn, "EM, at most", 9, "step")

    def test_restarts(self, crowd, drawn):
        MACE(n_restarts=4, max_iter=2, tol=0).fit(crowd.annotations)
        assert seen(drawn, "restarts", 4, "restart", done=3)

    @pytest.mark.parametrize("method", [KOS, MMSR, PM, LabelModel, ZeroBasedSkill])
    def test_steps_of_other_methods(self, crowd, drawn, method):
        model = method().fit(crowd.annotations)
        assert seen(drawn, f"{method.__name__}(, at most)?", model.max_iter, "step")

    def test_epochs(self, crowd, drawn):
        from crowdwise.learn import SpeeLFC, Training

        X = np.random.RandomState(0).normal(size=(60, 2))
        model = SpeeLFC(training=Training(epochs=5), random_state=0).fit(X, crowd.annotations)
        assert seen(drawn, "training", 5, "epoch")
        model.predict_proba(X)
        assert seen(drawn, "predicting", 1, "block")

    @pytest.mark.filterwarnings("ignore:All vectors point the same way")
    def test_embedding(self, crowd, drawn):
        from crowdwise.embed import RLL
        from crowdwise.learn import Training

        X = np.random.RandomState(0).normal(size=(60, 2))
        model = RLL(training=Training(epochs=2), groups_per_epoch=20, random_state=0)
        model.fit_transform(X, crowd.annotations)
        assert seen(drawn, "training", 2, "epoch")
        assert seen(drawn, "embedding", 1, "block")

    def test_rounds_of_iced(self, crowd, drawn):
        from crowdwise.learn import ICED, Training

        X = np.random.RandomState(0).normal(size=(60, 2))
        ICED(rounds=2, training=Training(epochs=1), random_state=0).fit(X, crowd.annotations)
        assert seen(drawn, "ICED, at most", 2, "round")

    def test_epochs_that_patience_saves_are_not_expected(self, crowd, drawn, monkeypatch):
        from crowdwise.learn import SpeeLFC, Training

        skipped = []
        monkeypatch.setattr(progress._Drawn, "skip", lambda _, n: skipped.append(n))

        X = np.random.RandomState(0).normal(size=(60, 2))
        training = Training(epochs=500, patience=2, learning_rate=0.5)
        model = SpeeLFC(training=training, random_state=0).fit(X, crowd.annotations)
        n_epochs = len(model.history_.loss)
        assert n_epochs < 500
        assert seen(drawn, "training", 500, "epoch", done=n_epochs)
        assert skipped == [500 - n_epochs]

    @pytest.mark.parametrize("size", [10_000, 400_000])
    def test_reading(self, drawn, tmp_path, size):
        path = tmp_path / "votes.csv"
        rows = pd.DataFrame({"task": np.arange(size) // 2, "worker": np.arange(size) % 7})
        rows.assign(label="a").to_csv(path, index=False)
        with progress.hidden():
            plain = read(path)
        annotations = read(path)
        assert annotations.n_annotations == size
        assert np.array_equal(annotations.task, plain.task)
        assert seen(drawn, r"reading votes\.csv", r"[\d.]+[kM]", r"M?B/s", done=r"[\d.]+[kM]")

    def test_comparing(self, crowd, drawn):
        compare_methods(crowd.annotations, [MajorityVote(), DawidSkene(max_iter=3, tol=0)])
        assert seen(drawn, "comparing methods", 2, "method")

    def test_a_report(self, crowd, drawn):
        gather(crowd.annotations, methods=("MajorityVote", "Wawa"))
        assert seen(drawn, "report", 6, "stage")
        assert seen(drawn, "fitting methods", 2, "method")
        assert seen(drawn, "predicting held-out labels", 3, "method")
        assert seen(drawn, "forecasting", 12, "crowd")

    def test_writing(self, crowd, drawn, tmp_path):
        for kind in ("csv", "json", "jsonl"):
            write_annotations(tmp_path / f"votes.{kind}", crowd.annotations)
            assert seen(drawn, "writing", 180, "row")
            drawn.truncate(0)

    def test_agreement(self, crowd, drawn):
        agreement(crowd.annotations)
        assert seen(drawn, "agreement", 5, "measure")

    def test_judging_workers(self, crowd, drawn):
        worker_quality(crowd.annotations, DawidSkene().fit(crowd.annotations))
        assert seen(drawn, "leaving labels out", 60, "task")
