"""crowdwise fit and crowdwise predict: from features and annotations to labels of new tasks."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import crowdwise
from crowdwise.cli import main

BRIEF = ("--method", "SpeeLFC", "--set")
QUICK = (*BRIEF, "epochs=5", "--seed", "0", "--quiet")


def run(*words):
    assert main([str(word) for word in words]) == 0


@pytest.fixture
def model(files):
    path = files.folder / "model.crowdwise"
    run("fit", files.votes, "--features", files.features, "-o", path, *QUICK)
    return path


class TestFit:
    def test_learns_what_python_learns(self, files, capsys):
        target = files.folder / "model.crowdwise"
        flags = ["--set", "n_rounds=2", "--seed", 3]
        run("fit", files.votes, "--features", files.features, "-o", target, *flags)
        saved = crowdwise.load(target)
        assert type(saved).__name__ == "AutoClassifier"
        assert saved.n_rounds == 2
        X = files.table.set_index("task")[["a", "b", "c"]]
        again = crowdwise.learn.AutoClassifier(n_rounds=2, random_state=3)
        again.fit(X, crowdwise.read(files.votes))
        probe = X.to_numpy()
        assert saved.predict_proba(probe) == pytest.approx(again.predict_proba(probe))
        out, err = capsys.readouterr()
        assert out == ""
        assert "3 features of 80 rows" in err
        assert "column 'task'" in err
        assert "A committee of" in err
        assert "AutoClassifier learned 2 classes in" in err

    def test_takes_every_kind_of_features(self, files, capsys):
        files.write("X.parquet", files.table)
        np.savez(files.folder / "X.npz", X=files.X, ids=files.names)
        found = []
        for name in ("X.csv", "X.parquet", "X.npz"):
            target = files.folder / f"{name}.model"
            run("fit", files.votes, "--features", files.folder / name, "-o", target, *QUICK)
            found.append(crowdwise.load(target).predict_proba(files.X))
        assert found[1] == pytest.approx(found[0])
        assert found[2] == pytest.approx(found[0])

    def test_learns_from_gold_when_asked(self, files):
        target = files.folder / "model"
        both = []
        for flags in ([], ["--gold-file", files.gold], ["--gold", files.gold]):
            words = ["fit", files.votes, "--features", files.features, "-o", target]
            run(*words, *flags, *QUICK)
            both.append(crowdwise.load(target).posterior_)
        known = both[1].argmax(axis=1)
        order = pd.Series(files.truth, index=files.names).sort_index()
        assert (known == order.to_numpy()).all()
        assert (both[1] == both[2]).all()
        assert not (both[0] == both[1]).all()

    def test_chooses_columns(self, files):
        wide = files.write("wide.csv", files.table.rename(columns={"task": "clip"}).assign(d="x"))
        target = files.folder / "model"
        words = ["fit", files.votes, "--features", wide, "-o", target, *QUICK]
        run(*words, "--feature-id", "clip", "--feature-columns", "a,b")
        assert crowdwise.load(target).feature_shape_ == (2,)

    def test_every_step_is_reported_on_request(self, files, capsys):
        words = ["fit", files.votes, "--features", files.features, "-o", files.folder / "m"]
        run(*words, *BRIEF, "epochs=20")
        assert "epoch" not in capsys.readouterr().err
        run(*words, *BRIEF, "epochs=20", "--verbose")
        assert "epoch 20: loss" in capsys.readouterr().err

    @pytest.mark.parametrize("name", ["LIA", "Raykar", "CrowdLab", "PersonalClassifier", "MBEM"])
    def test_learners_of_every_family_can_be_fitted_saved_and_asked(self, files, name, capsys):
        target = files.folder / "model"
        epochs = ["--set", "epochs=2"] if "training" in _params(name) else []
        words = ["fit", files.votes, "--features", files.features, "-o", target]
        run(*words, "--method", name, "--quiet", *epochs)
        run("predict", target, files.features, "--quiet")
        table = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert table["task"].tolist() == pd.read_csv(files.features)["task"].tolist()
        assert set(table["label"]) <= {"no", "yes"}


def _params(name):
    return getattr(crowdwise.learn, name)().get_params(deep=False)


class TestPredict:
    def test_labels_new_tasks(self, files, model, capsys):
        fresh = files.write("fresh.csv", files.table[:5].assign(task=list("vwxyz")))
        run("predict", model, fresh, "--proba")
        out, err = capsys.readouterr()
        table = pd.read_csv(io.StringIO(out))
        proba = crowdwise.load(model).predict_proba(files.X[:5])
        assert list(table) == ["task", "label", "confidence", "proba_no", "proba_yes"]
        assert table["task"].tolist() == list("vwxyz")
        assert table[["proba_no", "proba_yes"]].to_numpy() == pytest.approx(proba, rel=1e-5)
        assert table["confidence"].to_numpy() == pytest.approx(proba.max(axis=1), rel=1e-5)
        assert (table["label"] == np.array(["no", "yes"])[proba.argmax(axis=1)]).all()
        assert "5 tasks labeled by SpeeLFC" in err

    def test_json_for_machines_and_files_for_people(self, files, model, capsys):
        run("predict", model, files.features, "--json", "--quiet")
        rows = json.loads(capsys.readouterr().out)
        assert set(rows[0]) == {"task", "label", "confidence"}
        run("predict", model, files.features, "-o", files.folder / "labels.parquet")
        assert pd.read_parquet(files.folder / "labels.parquet")["task"].tolist() == [
            row["task"] for row in rows
        ]

    def test_rows_without_names_are_numbered(self, files, model, capsys):
        np.save(files.folder / "X.npy", files.X[:3])
        run("predict", model, files.folder / "X.npy", "--quiet")
        assert pd.read_csv(io.StringIO(capsys.readouterr().out))["task"].tolist() == [0, 1, 2]

    def test_other_features_are_refused(self, files, model, fails):
        narrow = files.write("narrow.csv", files.table[["task", "a", "b"]])
        assert "lacks 1 of 3 features" in fails("predict", model, narrow)
        np.save(files.folder / "narrow.npy", files.X[:, :2])
        assert "the 3 features" in fails("predict", model, files.folder / "narrow.npy")

    @pytest.mark.parametrize("name", ["SpeeLFC", "TwoStage", "Raykar"])
    def test_by_every_family(self, files, name, fails):
        target = files.folder / "model"
        epochs = ["--set", "epochs=1"] if name == "SpeeLFC" else []
        words = ["fit", files.votes, "--features", files.features, "-o", target, "--quiet"]
        run(*words, "--method", name, *epochs)
        narrow = files.write("narrow.csv", files.table[["task", "a", "b"]])
        assert "lacks 1 of 3 features" in fails("predict", target, narrow)

    def test_what_is_no_model(self, files, model, fails):
        assert "votes.csv is not a model" in fails("predict", files.votes, files.features)
        assert "no file" in fails("predict", files.folder / "nowhere", files.features)
        assert "is a folder" in fails("predict", files.folder, files.features)
        aggregator = files.folder / "aggregator"
        crowdwise.aggregate.MajorityVote().fit(files.votes).save(aggregator)
        assert "does not predict from features" in fails("predict", aggregator, files.features)

    def test_a_failure_leaves_the_old_labels(self, files, model, fails):
        old = files.folder / "labels.csv"
        old.write_text("precious\n")
        bad = files.write("bad.csv", files.table.assign(a=np.nan))
        assert "missing or infinite" in fails("predict", model, bad, "-o", old)
        assert old.read_text() == "precious\n"


class TestBadInput:
    def fit(self, files, fails, features, *flags, votes=None):
        target = files.folder / "model"
        words = ["fit", votes or files.votes, "--features", features, "-o", target]
        message = fails(*words, *QUICK, *flags)
        assert not target.exists()
        return message

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            (lambda table: table.assign(a=np.nan), "missing or infinite values: 80"),
            (lambda table: table[:70], "no row for 10 of 80 tasks"),
            (lambda table: pd.concat([table, table[:1]]), "repeats a task in 1 row"),
            (lambda table: table.drop(columns="task"), "no column for the task"),
            (lambda table: table.assign(a="text"), "not all numbers"),
            (lambda table: table[["task"]], "no column of features"),
            (lambda table: table[:0], "no row for 80 of 80 tasks"),
        ],
        ids=["nan", "missing", "duplicate", "no names", "text", "no features", "no rows"],
    )
    def test_features(self, files, fails, change, told):
        path = files.write("bad.csv", change(files.table))
        message = self.fit(files, fails, path)
        assert told in message or "no rows" in message

    def test_features_that_are_no_table(self, files, fails):
        junk = files.folder / "junk.csv"
        junk.write_bytes(bytes(range(256)) * 40)
        assert "UTF-8" in self.fit(files, fails, junk)
        junk.write_bytes(b"")
        assert "empty" in self.fit(files, fails, junk)
        assert "folder" in self.fit(files, fails, files.folder)
        assert "no file" in self.fit(files, fails, files.folder / "nowhere.npz")
        np.save(files.folder / "X.npy", files.X[:7])
        assert "7 rows for 80 tasks" in self.fit(files, fails, files.folder / "X.npy")
        assert "'color'" in self.fit(files, fails, files.features, "--feature-id", "color")
        assert "'d'" in self.fit(files, fails, files.features, "--feature-columns", "a,d")

    def test_annotations(self, files, fails):
        bad = files.folder / "bad.csv"
        for content in ("", "task,worker,label\n", "when,weather\n2024,rain\n"):
            bad.write_text(content)
            self.fit(files, fails, files.features, votes=bad)
        self.fit(files, fails, files.features, votes=files.folder / "nowhere.csv")

    def test_one_class(self, files, fails):
        one = files.folder / "one.csv"
        pd.read_csv(files.votes).assign(label="yes").to_csv(one, index=False)
        target = files.folder / "model"
        message = fails(
            "fit", one, "--features", files.features, "-o", target, "--method", "TwoStage"
        )
        assert "same inferred class" in message
        run("fit", one, "--features", files.features, "-o", target, *QUICK)

    def test_methods_and_parameters(self, files, fails):
        words = ["fit", files.votes, "--features", files.features, "-o", files.folder / "model"]
        assert "expected: SpeeLFC" in fails(*words, "--method", "SpeeLCF", status=2)
        assert "no parameter 'wat'" in fails(*words, "--set", "wat=1", status=2)
        assert "--set epochs=many cannot be used" in fails(*words, *BRIEF, "epochs=many", status=2)
        assert "learning_rate=fast cannot be used" in fails(
            *words, *BRIEF, "learning_rate=fast", status=2
        )
        assert "scale" in fails(*words, *BRIEF, "scale=7", status=2)

    def test_paths_are_looked_at_before_the_work(self, files, fails):
        words = ["fit", files.votes, "--features", files.features]
        assert "no folder" in fails(*words, "-o", files.folder / "no" / "model")
        assert "folder" in fails(*words, "-o", files.folder)
        assert "--output" in fails(*words, status=2)
        assert "--features" in fails("fit", files.votes, "-o", "m", status=2)
