"""Every command on good input: what it prints, and where."""

import io
import json
import logging
import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

from crowdwise import __version__, aggregate, progress
from crowdwise.cli import COMMANDS, main
from crowdwise.simulate import confused_crowd

NAMES = np.array(["cat", "dog", "eel"])


@pytest.fixture(scope="session")
def crowd():
    """Eleven workers who see most, and one who answers at random."""
    confusion = np.tile(0.75 * np.eye(3) + 0.25 / 3, (12, 1, 1))
    confusion[0] = 1 / 3
    return confused_crowd(confusion, 200, 6, prior=[0.5, 0.3, 0.2], random_state=0)


@pytest.fixture
def votes(crowd, tmp_path):
    """A CSV of the crowd's annotations."""
    frame = crowd.annotations.to_frame()
    frame = frame.assign(
        task=[f"q{task}" for task in frame["task"]],
        worker=[f"w{worker}" for worker in frame["worker"]],
        label=NAMES[frame["label"]],
    )
    path = tmp_path / "votes.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def truth(crowd, tmp_path):
    """A CSV of the truths of half of the tasks."""
    tasks = range(0, 200, 2)
    path = tmp_path / "truth.csv"
    table = pd.DataFrame({"task": [f"q{i}" for i in tasks], "label": NAMES[crowd.truth[::2]]})
    table.to_csv(path, index=False)
    return path


def labels_of(text):
    return pd.read_csv(io.StringIO(text), index_col="task")


def write_gold(votes, truth):
    path = votes.with_name("gold.csv")
    pd.DataFrame({"task": np.arange(len(truth)), "label": truth}).to_csv(path, index=False)
    return path


class TestAggregate:
    def test_prints_labels_as_csv_and_words_on_the_other_stream(self, votes, capsys):
        assert main(["aggregate", str(votes)]) == 0
        out, err = capsys.readouterr()
        found = labels_of(out)
        expected = aggregate.DEFAULT().fit(votes)
        assert found["label"].to_dict() == expected.labels_.to_dict()
        assert found["confidence"].to_numpy() == pytest.approx(
            expected.posterior_.max(axis=1), abs=1e-6
        )
        assert re.search(r"200 tasks labeled by BayesBag in \d+\.\d s", err)
        assert re.search(r"expected accuracy \d+% \(\d+% to \d+%\)", err)
        assert "err together" not in err

    def test_warns_where_workers_err_together(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        truth, right = rng.integers(0, 2, 100), rng.random((100, 6)) < 0.8
        right[:, 1:4] = right[:, :1]  # one worker under four names
        labels = np.where(right, truth[:, None], 1 - truth[:, None])
        labels[::7, 4:] = 1 - labels[::7, 4:]
        task, worker = np.indices(labels.shape)
        path = tmp_path / "copied.csv"
        columns = {"task": task.ravel(), "worker": worker.ravel(), "label": labels.ravel()}
        pd.DataFrame(columns).to_csv(path, index=False)
        assert main(["aggregate", str(path), "--gold-file", str(write_gold(path, truth))]) == 0
        assert "no method's confidence can be trusted" in capsys.readouterr().err
        assert main(["aggregate", str(path), "--quiet"]) == 0
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize("name", ["MajorityVote", "majority-vote", "majority_vote"])
    def test_takes_a_method_by_name(self, votes, capsys, name):
        assert main(["aggregate", str(votes), "--method", name]) == 0
        out, err = capsys.readouterr()
        assert "by MajorityVote" in err
        expected = aggregate.MajorityVote().fit_predict(votes)
        assert labels_of(out)["label"].to_dict() == expected.to_dict()

    def test_sets_parameters(self, votes, capsys):
        flags = ["--set", "max_iter=2", "--set", "tol=0", "--set", "class_prior=[0.2, 0.3, 0.5]"]
        flags += ["--method", "DawidSkene"]
        assert main(["aggregate", str(votes), "--proba", *flags]) == 0
        model = aggregate.DawidSkene(max_iter=2, tol=0, class_prior=[0.2, 0.3, 0.5]).fit(votes)
        found = labels_of(capsys.readouterr().out)
        proba = found[[f"proba_{name}" for name in NAMES]].to_numpy()
        assert proba == pytest.approx(model.posterior_, rel=1e-5)  # six digits

    @pytest.mark.parametrize("value", ["abstain", "'abstain'", '"abstain"'])
    def test_words_need_no_quotes(self, votes, capsys, value):
        flags = ["--method", "MajorityVote", "--set", f"ties={value}"]
        assert main(["aggregate", str(votes), *flags]) == 0
        assert labels_of(capsys.readouterr().out)["label"].isna().any()

    def test_a_seed_decides_random_ties(self, votes, capsys):
        def labels(seed):
            flags = ["--method", "MajorityVote", "--set", "ties=random", "--seed", seed]
            assert main(["aggregate", str(votes), *flags]) == 0
            return labels_of(capsys.readouterr().out)["label"]

        assert labels("1").equals(labels("1"))
        assert not labels("1").equals(labels("2"))

    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".csv.gz"])
    def test_the_suffix_says_what_to_write(self, votes, tmp_path, capsys, suffix):
        target = tmp_path / f"labels{suffix}"
        assert main(["aggregate", str(votes), "-o", str(target)]) == 0
        assert capsys.readouterr().out == ""
        readers = {
            ".csv": pd.read_csv,
            ".tsv": lambda path: pd.read_csv(path, sep="\t"),
            ".json": pd.read_json,
            ".jsonl": lambda path: pd.read_json(path, lines=True),
            ".parquet": pd.read_parquet,
            ".csv.gz": pd.read_csv,
        }
        found = readers[suffix](target).set_index("task")["label"]
        assert found.to_dict() == aggregate.DEFAULT().fit_predict(votes).to_dict()

    def test_learns_from_gold_when_asked(self, votes, truth, capsys):
        assert main(["aggregate", str(votes), "--gold-file", str(truth)]) == 0
        found = labels_of(capsys.readouterr().out)["label"]
        known = pd.read_csv(truth, index_col="task")["label"]
        assert (found[known.index] == known).all()

    def test_leaves_gold_alone_when_not_asked(self, votes, truth, tmp_path, capsys):
        table = pd.read_csv(votes)
        known = pd.read_csv(truth, index_col="task")["label"]
        both = tmp_path / "both.csv"
        table.assign(gold=table["task"].map(known)).to_csv(both, index=False)
        assert main(["aggregate", str(both)]) == 0
        out, err = capsys.readouterr()
        assert "100 gold labels not used" in err
        plain = aggregate.DEFAULT().fit_predict(votes)
        assert labels_of(out)["label"].to_dict() == plain.to_dict()
        assert main(["aggregate", str(both), "--gold", "gold"]) == 0
        assert (labels_of(capsys.readouterr().out)["label"][known.index] == known).all()

    def test_reads_standard_input(self, votes, monkeypatch, capsys):
        stream = io.TextIOWrapper(io.BytesIO(votes.read_bytes()))
        monkeypatch.setattr("sys.stdin", stream)
        assert main(["aggregate", "-"]) == 0
        assert len(labels_of(capsys.readouterr().out)) == 200

    def test_shows_steps_when_asked(self, votes, capsys):
        assert main(["aggregate", str(votes), "--verbose"]) == 0
        assert "step 1: objective" in capsys.readouterr().err
        assert main(["--verbose", "aggregate", str(votes)]) == 0
        assert "step 1: objective" in capsys.readouterr().err
        assert main(["aggregate", str(votes)]) == 0
        assert "step 1: objective" not in capsys.readouterr().err
        assert logging.getLogger("crowdwise").handlers == []

    @pytest.mark.parametrize(
        ("terminal", "flags", "drawn"),
        [
            (True, [], True),
            (False, [], False),
            (False, ["--verbose"], True),
            (True, ["--quiet"], False),
            (True, ["--quiet", "--verbose"], False),
        ],
    )
    def test_draws_bars_where_somebody_looks(
        self, votes, capsys, monkeypatch, terminal, flags, drawn
    ):
        monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
        monkeypatch.setattr("crowdwise.progress.shown", partial(progress.shown, delay=0, every=0))
        assert main(["aggregate", str(votes), "--set", "n_bags=5", *flags]) == 0
        assert ("bags, at most: " in capsys.readouterr().err) == drawn

    def test_is_quiet_when_asked(self, votes, capsys):
        flags = ["--quiet", "--method", "DawidSkene", "--set", "max_iter=1"]
        assert main(["aggregate", str(votes), *flags]) == 0
        assert capsys.readouterr().err == ""

    def test_words_a_warning(self, votes, capsys):
        assert main(["aggregate", str(votes), "--method=DawidSkene", "--set", "max_iter=1"]) == 0
        err = capsys.readouterr().err
        assert "crowdwise: warning: EM stopped after max_iter=1" in err
        assert "Raise max_iter" in err

    def test_leaves_the_filters_of_warnings_as_they_were(self, votes, capsys):
        before = list(warnings.filters), warnings.showwarning
        assert main(["aggregate", str(votes)]) == 0
        assert (list(warnings.filters), warnings.showwarning) == before


class TestWorkers:
    def test_prints_csv_into_a_pipe(self, votes, capsys):
        assert main(["workers", str(votes)]) == 0
        out, err = capsys.readouterr()
        table = pd.read_csv(io.StringIO(out), index_col="worker", keep_default_na=False)
        assert table.loc["w0", "flag"] == "answers as if at random"
        assert (table["flag"].drop("w0") == "").all()
        assert "12 workers: 1 'answers as if at random'" in err

    def test_aligns_columns_on_a_terminal(self, votes, capsys, monkeypatch):
        monkeypatch.setattr("crowdwise.cli.workers.MOST_ROWS", 5)
        assert main(["workers", str(votes), "--table"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == ["worker", "labels", "accuracy", "agreement", "skill", "flag"]
        assert lines[1].startswith("w0 ")
        assert lines[1].index("answers as if at random") == lines[0].index("flag")
        assert lines[-1] == "… and 7 more; -o FILE writes all of them"
        assert len(lines) == 7

    def test_writes_a_file(self, votes, tmp_path, capsys):
        target = tmp_path / "workers.json"
        assert main(["workers", str(votes), "-o", str(target), "--table"]) == 0
        assert capsys.readouterr().out == ""
        assert len(json.loads(target.read_text())) == 12

    def test_uses_gold_where_there_is_some(self, votes, truth, capsys):
        assert main(["workers", str(votes), "--gold-file", str(truth)]) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out), index_col="worker")
        assert table["n_gold"].sum() == 600
        assert table.loc["w0", "gold_high"] < 0.6

    def test_thresholds_and_methods_are_flags(self, votes, capsys):
        flags = ["--min-labels", "1000", "--method", "MajorityVote", "--confidence", "0.5"]
        assert main(["workers", str(votes), *flags]) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert (table["flag"] == "too few labels to say").all()
        assert main(["workers", str(votes), "--max-skill", "-0.9"]) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out), index_col="worker")
        assert table.loc["w0", "flag"] == "too few labels to say"


class TestAgreement:
    def test_prints_csv_into_a_pipe(self, votes, capsys):
        assert main(["agreement", str(votes)]) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out), index_col="measure")
        assert (table["low"] < table["value"]).all()
        assert (table["value"] < table["high"]).all()
        assert table["reading"].str.endswith(".").all()

    def test_says_what_each_number_means_on_a_terminal(self, votes, capsys, monkeypatch):
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        assert main(["agreement", str(votes), "--confidence", "0.9"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == ["measure", "value", "90%", "interval", "tasks"]
        assert re.match(r"observed agreement +0\.\d{3}  0\.\d{3} to 0\.\d{3} +200", lines[1])
        assert lines[2].startswith("  Two workers who label the same task")

    def test_level_seed_and_resamples_are_flags(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        path = tmp_path / "ratings.csv"
        rows = [(t, w, min(5, max(1, t % 5 + 1 + rng.integers(-1, 2)))) for t in range(60)
                for w in "abc"]  # fmt: skip
        pd.DataFrame(rows, columns=["task", "worker", "label"]).to_csv(path, index=False)

        def table(*flags):
            assert main(["agreement", str(path), *flags]) == 0
            return pd.read_csv(io.StringIO(capsys.readouterr().out), index_col="measure")

        nominal, interval = table(), table("--level", "interval")
        alpha = "Krippendorff's alpha"
        assert interval.loc[alpha, "value"] > nominal.loc[alpha, "value"] + 0.3
        assert table("--resamples", "0")["low"].isna().all()
        assert table("--seed", "3").loc[alpha, "low"] != nominal.loc[alpha, "low"]

    def test_explains_what_cannot_be_measured(self, tmp_path, capsys):
        path = tmp_path / "one.csv"
        path.write_text("task,worker,label\na,w,x\nb,w,y\n")
        assert main(["agreement", str(path), "--table"]) == 0
        out = capsys.readouterr().out
        assert "there is only one worker" in out
        assert "nan" not in out


class TestMethods:
    def test_lists_every_method(self, capsys):
        assert main(["methods"]) == 0
        lines = capsys.readouterr().out.splitlines()
        names = sorted(aggregate.__all__, key=str.casefold)
        assert [line.split()[0] for line in lines] == names
        assert all(line.endswith(".") for line in lines)

    def test_explains_one(self, capsys):
        assert main(["methods", "dawid_skene"]) == 0
        out = capsys.readouterr().out
        assert out.startswith("DawidSkene(*, smoothing=0.01, pooling=0.0, class_prior='estimate', ")
        assert "doi:10.2307/2346806" in out


class TestHelp:
    def test_names_every_command(self, capsys):
        assert main(["--help"]) == 0
        out = capsys.readouterr().out
        for name in COMMANDS:
            assert re.search(rf"^    {name} +\w", out, re.MULTILINE)
        assert "examples:" in out

    @pytest.mark.parametrize("name", COMMANDS)
    def test_of_a_command_has_an_example(self, name, capsys):
        assert main([name, "--help"]) == 0
        out = capsys.readouterr().out
        assert f"examples:\n  crowdwise {name}" in out
        assert "--verbose" in out

    def test_without_a_command_is_shown_and_wrong(self, capsys):
        assert main([]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "crowdwise aggregate votes.csv" in err

    def test_version(self, capsys):
        assert main(["--version"]) == 0
        assert capsys.readouterr().out == f"crowdwise {__version__}\n"


def test_convert_is_a_command(votes, tmp_path, capsys):
    target = tmp_path / "votes.jsonl"
    assert main(["convert", str(votes), str(target)]) == 0
    assert main(["aggregate", str(target), "--method", "MajorityVote"]) == 0
    assert len(labels_of(capsys.readouterr().out)) == 200
