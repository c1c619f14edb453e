"""Promises about tables: what a row, a column, a name and a missing value is taken for."""

import gzip
import io
import json
import os
import socket
import threading
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import crowdwise
from crowdwise import Annotations, memory
from crowdwise.aggregate import KOS, DawidSkene, MajorityVote
from crowdwise.cli import main
from crowdwise.compat.crowdkit import GoldMajorityVote
from crowdwise.embed import RLL
from crowdwise.errors import AnnotationError, CrowdwiseError, FileError, ParameterError
from crowdwise.evaluate import compare_methods, reliability_table, score, worker_quality
from crowdwise.io import write_annotations
from crowdwise.io.features import read_features, write_features
from crowdwise.io.gold import add_gold_file
from crowdwise.learn import SpeeLFC, TwoStage
from crowdwise.plot import plot_confusions, plot_redundancy
from crowdwise.report import gather
from crowdwise.report.facts.maps import align_rows

N = 30
ROWS_OR_TASKS = r"may be tasks or rows: 29 of 30(.|\n)*rename_axis"


@pytest.fixture(scope="module")
def crowd():
    """Five workers, right nine times in ten, on the tasks 1 to 30; and the truths by task."""
    rng = np.random.default_rng(0)
    truth = pd.Series(rng.integers(0, 3, N), index=pd.RangeIndex(1, N + 1, name="task"))
    grid = np.where(rng.random((N, 5)) < 0.9, truth.to_numpy()[:, None], rng.integers(0, 3, (N, 5)))
    return Annotations.from_matrix(grid, tasks=truth.index), truth


class TestRowsAreNotTasks:
    """Point 1: truths whose index numbers rows 0 to 29, where tasks are 1 to 30."""

    @pytest.fixture(params=["series", "floats", "objects", "named", "shuffled", "dict"])
    def by_row(self, request, crowd):
        rows = crowd[1].reset_index(drop=True)
        return {
            "series": rows,
            "floats": rows.set_axis(np.arange(N) * 1.0),
            "objects": rows.set_axis(pd.Index(range(N), dtype=object)),
            "named": rows.rename_axis("row"),
            "shuffled": rows.sample(frac=1.0, random_state=0),
            "dict": rows.to_dict(),
        }[request.param]

    def test_promise_01_row_numbers_are_refused_as_gold(self, crowd, by_row):
        with pytest.raises(AnnotationError, match=ROWS_OR_TASKS):
            MajorityVote().fit(crowd[0], gold=by_row)
        with pytest.raises(AnnotationError, match=ROWS_OR_TASKS):
            worker_quality(crowd[0], gold=by_row)
        with pytest.raises(AnnotationError, match=ROWS_OR_TASKS):
            plot_confusions(DawidSkene().fit(crowd[0]), crowd[0], truth=by_row)

    def test_promise_01_row_numbers_are_refused_as_truth(self, crowd, by_row):
        model = MajorityVote().fit(crowd[0])
        for predicted in (model, model.labels_, model.probas_):
            with pytest.raises(AnnotationError, match=ROWS_OR_TASKS):
                score(predicted, by_row)
        with pytest.raises(AnnotationError, match=ROWS_OR_TASKS):
            reliability_table(model, by_row)
        with pytest.raises(AnnotationError, match=ROWS_OR_TASKS):
            gather(crowd[0], truth=by_row)
        with pytest.raises(AnnotationError, match=ROWS_OR_TASKS):
            plot_redundancy(MajorityVote(), crowd[0], by_row)

    def test_promise_01_row_numbers_are_refused_as_predictions(self, crowd):
        labels = MajorityVote().fit(crowd[0]).labels_
        with pytest.raises(AnnotationError, match=ROWS_OR_TASKS):
            score(labels.reset_index(drop=True), crowd[1])
        assert score(labels, crowd[1]).loc["accuracy", "value"] > 0.9

    def test_promise_01_rows_from_0_do_not_stand_for_tasks_from_1(self, crowd):
        more = pd.Series(np.zeros(N + 10, dtype=int))  # so that every task is the number of a row
        with pytest.raises(AnnotationError, match="may be tasks or rows: 30 of 40"):
            MajorityVote().fit(crowd[0], gold=more)
        assert score(crowd[1].rename_axis("task"), more.rename_axis("task")) is not None

    def test_promise_01_numbers_that_fit_in_part_are_refused(self, crowd):
        votes = Annotations.from_matrix(crowd[0].to_snorkel(), tasks=np.arange(10, N + 10))
        with pytest.raises(AnnotationError, match="may be tasks or rows: 20 of 30"):
            MajorityVote().fit(votes, gold=crowd[1].reset_index(drop=True))

    def test_promise_01_a_row_without_a_truth_counts(self, crowd):
        rows = crowd[1].reset_index(drop=True).astype(float)
        rows[0] = np.nan  # so that every truth would be for a task
        with pytest.raises(AnnotationError, match=ROWS_OR_TASKS):
            score(MajorityVote().fit(crowd[0]), rows)

    def test_promise_01_numbers_that_are_tasks_are_taken(self, crowd):
        votes, truth = crowd
        model, plain = MajorityVote().fit(votes), truth.rename_axis(None)
        best = score(model, truth).loc["accuracy", "value"]
        some = truth.loc[[3, 7]]
        elsewhere = pd.concat([some, pd.Series({99: 0})])  # and others of other tasks
        assert score(model, plain).loc["accuracy", "value"] == best > 0.9
        assert score(model, some.rename_axis(None)).loc["accuracy", "n_tasks"] == 2
        assert score(model, elsewhere.rename_axis("task")).loc["accuracy", "n_tasks"] == 2
        assert score(model, elsewhere.to_dict()).loc["accuracy", "n_tasks"] == 2
        assert score(MajorityVote().fit(votes[2:9]), plain).loc["accuracy", "n_tasks"] == 7
        frame = pd.DataFrame({"task": np.arange(N), "label": 0})  # a column of tasks is a name too
        assert score(model, frame).loc["accuracy", "n_tasks"] == N - 1

    def test_promise_01_row_numbers_are_refused_under_crowd_kits_names(self, crowd, by_row):
        model, frame = GoldMajorityVote(), crowd[0].to_frame()
        with pytest.raises(AnnotationError, match=ROWS_OR_TASKS):
            model.fit(frame, by_row)
        assert (model.fit_predict(frame, crowd[1]) == crowd[1]).mean() > 0.9

    def test_promise_01_truths_of_rows_go_by_name(self, crowd):
        votes, truth = crowd
        X = pd.DataFrame({"x": truth}, index=truth.index)
        model = TwoStage().fit(X, votes)
        best = model.score(X, truth)
        assert best == model.score(X, truth.to_numpy()) > 0.9
        shuffled = truth.sample(frac=1.0, random_state=0)
        weight = pd.Series(np.arange(N), index=truth.index)
        assert model.score(X, shuffled) == best
        assert model.score(X, shuffled, weight[::-1]) == model.score(X, truth, weight)
        assert model.score(X[5:9], truth) == model.score(X[5:9], truth[5:9])
        with pytest.raises(AnnotationError, match="1 of 30 row names are missing"):
            model.score(X, truth.reset_index(drop=True).set_axis(np.arange(N)))
        plain = X.reset_index(drop=True)  # whose rows have no names
        assert model.score(plain, truth) == best


class TestRowsOfFeatures:
    """Points 2 and 9: what names a row of features, and what is none."""

    @pytest.fixture
    def features(self, crowd):
        """Features of 40 tasks of which 30 have labels; the first column is the task's number."""
        rng = np.random.default_rng(1)
        return pd.DataFrame({"x": np.arange(1.0, 41.0), "y": rng.normal(size=40)})

    @pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
    def test_promise_02_row_numbers_are_not_the_tasks_of_features(
        self, crowd, features, tmp_path, ending
    ):
        path, tasks = tmp_path / f"X.{ending}", crowd[0].tasks
        if ending == "parquet":
            features.set_axis(np.arange(40)).to_parquet(path)
        else:
            features.to_csv(path, sep="\t" if ending == "tsv" else ",")
        for known in (None, tasks):
            with pytest.raises(AnnotationError, match=r"only number its rows(.|\n)*--feature-id"):
                read_features(path, tasks=known).take_tasks(tasks)
        own = read_features(path, id="__index_level_0__" if ending == "parquet" else "")
        assert own.take_tasks(tasks)[0][:, 0].tolist() == list(range(2, 32))  # as it was said

    def test_promise_02_a_column_of_tasks_comes_before_row_numbers(self, crowd, tmp_path):
        path, tasks = tmp_path / "X.csv", crowd[0].tasks
        names = np.r_[np.arange(500, 800), tasks]  # the first of them have no labels
        pd.DataFrame({"item": names, "x": names}).to_csv(path)
        values, _ = read_features(path, tasks=tasks).take_tasks(tasks)
        assert values[:, 0].tolist() == tasks.tolist()
        pd.DataFrame({"item": names[:-1], "x": names[:-1]}).to_csv(path)
        with pytest.raises(AnnotationError, match="no row for 1 of 30 tasks"):
            read_features(path, tasks=tasks).take_tasks(tasks)

    def test_promise_02_an_index_without_a_name_may_hold_tasks(self, crowd, features, tmp_path):
        path, tasks = tmp_path / "X.csv", crowd[0].tasks
        features.set_axis(np.arange(1, 41)).to_csv(path)
        assert read_features(path).take_tasks(tasks)[0][:, 0].tolist() == tasks.tolist()
        features.to_csv(path)
        assert read_features(path).take_tasks(np.arange(5))[0][:, 0].tolist() == [1, 2, 3, 4, 5]

    def test_promise_02_rows_without_names_are_not_tasks_from_1(self, crowd, features, tmp_path):
        np.save(tmp_path / "X.npy", features.to_numpy())
        with pytest.raises(AnnotationError, match="40 rows for 30 tasks"):
            read_features(tmp_path / "X.npy").take_tasks(crowd[0].tasks)
        np.save(tmp_path / "X.npy", features.to_numpy()[:N])
        values, notes = read_features(tmp_path / "X.npy").take_tasks(crowd[0].tasks)
        assert values[:, 0].tolist() == crowd[0].tasks.tolist()
        assert "sorted order" in notes[-1]

    def test_promise_02_a_map_takes_rows_in_order_or_by_task(self, crowd, features):
        with pytest.raises(AnnotationError, match="index of X may be tasks or rows"):
            align_rows(features, crowd[0], "X")
        rows, place = align_rows(features[:N], crowd[0], "X")
        assert rows[:, 0].tolist() == crowd[0].tasks.tolist()
        assert place.tolist() == list(range(N))
        rows, _ = align_rows(features.set_axis(np.arange(1, 41)), crowd[0], "X")
        assert rows[:, 0].tolist() == crowd[0].tasks.tolist()

    def test_promise_02_a_model_takes_the_columns_of_a_file_by_name(self, crowd, tmp_path, capsys):
        votes, truth = crowd
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"x": truth + 0.1 * rng.normal(size=N), "y": rng.normal(size=N)})
        files = {"labels.csv": votes.to_frame(), "X.csv": X.reset_index()}
        files["other.csv"] = X[["y", "x"]].assign(day="Monday").reset_index()
        files["renamed.csv"] = X.rename(columns={"x": "size"}).reset_index()
        for name, frame in files.items():
            frame.to_csv(tmp_path / name, index=False)
        paths = {name: str(tmp_path / name) for name in [*files, "model", "out.csv"]}
        fit = ["fit", paths["labels.csv"], "--features", paths["X.csv"], "--method", "TwoStage"]
        assert main([*fit, "-o", paths["model"]]) == 0
        predict = ["predict", paths["model"], "--proba", "-o", paths["out.csv"]]
        found = []
        for name in ("X.csv", "other.csv"):
            assert main([*predict, paths[name]]) == 0
            found.append(Path(paths["out.csv"]).read_text())
        assert found[0] == found[1]
        assert "not features: 'day'" in capsys.readouterr().err
        assert main([*predict, paths["renamed.csv"]]) == 1
        assert "lacks 1 of 2 features of fit" in (said := capsys.readouterr().err)
        assert "first:    'x'" in said
        assert main([*fit, "--feature-columns", "x", "-o", paths["model"]]) == 0
        assert main([*predict, paths["other.csv"]]) == 0  # no need to say again which

    @pytest.mark.parametrize("name", ["item_id", "Question ID", "id"])
    def test_promise_09_another_name_of_a_task_in_a_file_is_no_feature(self, name, tmp_path):
        path = tmp_path / "X.csv"
        pd.DataFrame({"task": [1, 2], name: [11, 12], "x": [0.5, 1]}).to_csv(path, index=False)
        table = read_features(path)
        assert table.columns == ("x",)
        assert f"columns of {path} that are not features: {name!r}" in table.notes

    @pytest.mark.parametrize("name", ["task", "Task ID", "item_id", "id", "Unnamed: 0", "gold"])
    def test_promise_09_a_column_of_names_is_not_a_feature(self, crowd, features, name):
        X = features[:N].assign(**{name: crowd[0].tasks})
        learners = [TwoStage(), SpeeLFC(), RLL()]
        for model in learners:
            with pytest.raises(AnnotationError, match=rf"Column '{name}' of X does not look like"):
                model.fit(X, crowd[0])
        with pytest.raises(AnnotationError, match="like a feature"):
            TwoStage().fit(pl.from_pandas(X), crowd[0])
        with pytest.raises(AnnotationError, match="like a feature"):
            gather(crowd[0], X=X, methods=())
        workers = pd.DataFrame({"worker": range(5), "age": range(5)})
        with pytest.raises(AnnotationError, match="'worker' of worker_features does not look"):
            SpeeLFC().fit(X[["x"]], crowd[0], worker_features=workers)


class TestClassesOfTruths:
    """Point 9: truths 1 to 3, where labels are 0 to 2."""

    HINT = r"truths are of an unknown class(.|\n)*truths such as 3(.|\n)*subtract 1 from the truths"

    def test_promise_09_unknown_classes_are_reported_where_truths_are_compared(self, crowd):
        votes, truth = crowd
        model = DawidSkene().fit(votes)
        for predicted in (model, model.labels_):
            with pytest.warns(UserWarning, match=self.HINT):
                score(predicted, truth + 1)
        with pytest.warns(UserWarning, match=self.HINT):
            reliability_table(model, truth + 1)
        with pytest.warns(UserWarning, match=r"they are not scored(.|\n)*subtract 1 from"):
            gather(votes, truth=truth + 1, methods=())
        with pytest.raises(AnnotationError, match=r"unknown label(.|\n)*subtract 1 from the"):
            model.fit(votes, gold=truth + 1)
        learner = TwoStage().fit(X := np.eye(3)[truth], votes)
        with pytest.warns(UserWarning, match=self.HINT):
            learner.score(X, truth + 1)

    @pytest.mark.parametrize(
        ("truths", "fix"),
        [
            (["Cat", "dog", "cat"], "case or spaces"),
            (["cat", "dog ", "cat"], "case or spaces"),
            (["cat", "bird", "cat"], "same names"),
        ],
    )
    def test_promise_09_the_hint_fits(self, truths, fix):
        proba = pd.DataFrame({"cat": [0.9, 0.2, 0.9], "dog": [0.1, 0.8, 0.1]})
        with pytest.warns(UserWarning, match=fix):
            score(proba, dict(enumerate(truths)))

    def test_promise_09_truths_in_files_are_compared_too(self, crowd, tmp_path, capsys):
        votes, truth = crowd
        path, other = tmp_path / "votes.csv", tmp_path / "truth.csv"
        frame = votes.to_frame()
        frame.to_csv(path, index=False)
        (truth + 1).rename("label").to_csv(other)
        assert main(["compare", str(path), "--truth", str(other), "--methods", "MajorityVote"]) == 0
        said = capsys.readouterr().err
        assert "of an unknown class" in said
        assert "subtract 1 from the truths" in said
        frame.assign(gold=frame["task"].map(truth + 1)).to_csv(path, index=False)
        with pytest.warns(UserWarning, match=self.HINT):
            crowdwise.read(path)

    def test_promise_09_a_class_that_is_never_predicted_is_no_mistake(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            score(pd.Series(["a", "a", "b"]), {0: "a", 1: "c", 2: "b"})


class TestMissingWords:
    """Point 6: NA, nan, None and null as text."""

    @pytest.fixture
    def read(self, tmp_path):
        def from_text(text, name="votes.csv", **options):
            (tmp_path / name).write_text(text)
            return crowdwise.read(tmp_path / name, **options)

        return from_text

    @pytest.mark.parametrize(
        "word", ["NA", "nan", "NaN", "None", "null", "NULL", "N/A", "n/a", "#N/A", "<NA>", " NA "]
    )
    def test_promise_06_words_for_nothing_are_missing(self, read, word):
        note = f"labels taken as missing: {word.strip()!r} 2 (missing=None"
        long = f"task,worker,label\n1,a,1\n1,b,{word}\n2,a,{word}\n2,b,2\n"
        wide = f"task,a,b\n1,1,{word}\n2,{word},2\n3,2,1\n"
        rows = json.dumps(
            [
                {"task": k // 2, "worker": k % 2, "label": own}
                for k, own in enumerate([1, 2, word, word])
            ]
        )
        nested = f'{{"1": {{"a": 1, "b": "{word}"}}, "2": {{"a": "{word}", "b": 2}}}}'
        for text, name in ((long, "v.csv"), (wide, "w.csv"), (rows, "v.json"), (nested, "n.json")):
            votes = read(text, name)
            assert votes.classes.tolist() == [1, 2]
            assert any(own.startswith(note) for own in votes.notes)

    def test_promise_06_a_word_with_spaces_around_it_is_counted_with_the_others(self, read):
        votes = read('task,worker,label\n1,a,x\n1,b,NA\n2,a, NA\n2,b,NA \n3,a,null\n3,b,"  "\n')
        assert any("'NA' 3, '' 1, 'null' 1 (" in note for note in votes.notes)

    def test_promise_06_a_matrix_may_have_gaps(self, read):
        votes = read("1 2 NA\n2 nan 1\nNA 1 1\n", "L.txt")
        assert votes.classes.tolist() == [1, 2]
        assert votes.n_annotations == 6

    def test_promise_06_words_can_be_kept(self, read, capsys, tmp_path):
        text = "task,worker,label\n1,a,x\n1,b,None\n2,a,?\n2,b,None\n"
        assert read(text).classes.tolist() == ["?", "x"]
        assert read(text, missing=None).classes.tolist() == ["?", "None", "x"]
        assert read(text, missing="?").classes.tolist() == ["None", "x"]
        assert read(text, missing=["?", "None"]).classes.tolist() == ["x"]
        assert read(text, classes=["None", "x", "?"]).n_annotations == 4
        path = str(tmp_path / "votes.csv")
        for options, classes in (
            ([], 2),
            (["--missing", ""], 3),
            (["--missing", "?"], 2),
            (["--missing", "?", "--missing", "None"], 1),
        ):
            assert main(["convert", path, str(tmp_path / "out.csv"), *options]) == 0
            said = capsys.readouterr().err
            assert f"{classes} class" in said
            assert ("labels taken as missing: 'None' 2" in said) == (not options or classes == 1)

    @pytest.mark.parametrize("missing", ["na", "-9", 9, ["?", "x "], ["7.0", "NA"]])
    def test_promise_06_a_word_that_never_occurs_is_reported(self, read, missing):
        rows = [("1", "a", "x"), ("1", "b", "?"), ("2", "a", "9"), ("2", "b", "NA")]
        long = "task,worker,label\n" + "".join(",".join(row) + "\n" for row in rows)
        tree = json.dumps(
            [dict(zip(("task", "worker", "label"), row, strict=True)) for row in rows]
        )
        wide = "task,a,b\n1,x,?\n2,9,NA\n3,x,9\n"
        said = {"na": "'na'", "-9": "'-9'", ("7.0", "NA"): "'7.0'"}
        for text, name in ((long, "v.csv"), (tree, "v.json"), (wide, "w.csv")):
            notes = read(text, name, missing=missing).notes
            found = [note for note in notes if note.startswith("given as missing, but no label: ")]
            key = tuple(missing) if isinstance(missing, list) else missing
            numbers = name != "v.csv" and key in ("-9", ("7.0", "NA"))  # may be in a matrix
            expected = [] if key not in said or numbers else [said[key]]
            assert [note.rpartition(": ")[2] for note in found] == expected

    def test_promise_05_labels_like_scores_are_reported(self, read):
        def notes(values):
            rows = (f"{k // 2},{k % 2},{value}\n" for k, value in enumerate(values))
            return [n for n in read("task,worker,label\n" + "".join(rows)).notes if "scores" in n]

        assert "30 different numbers, such as '0.01', " in notes([k / 100 for k in range(1, 31)])[0]
        assert notes([k / 2 for k in range(2, 11)] * 4) == []  # steps of a scale
        assert notes(range(30)) == []

    def test_promise_06_numbers_beside_words_stay_numbers(self, read):
        text = "task,a,b,gold\n1,1,NA,1\n2,skip,2,NA\n3,2,2,2\n"
        assert read(text, missing=["NA", "skip"]).classes.tolist() == [1, 2]
        assert read(text.replace("skip", "2")).classes.tolist() == [1, 2]
        assert read(text.replace("skip", "2")).gold_labels.to_dict() == {1: 1, 3: 2}

    def test_promise_06_names_like_nothing_are_names_and_reported(self, read):
        votes = read("task,worker,label\n1,None,x\nNA,None,y\nNA,a,x\n")
        assert votes.workers.tolist() == ["None", "a"]
        assert "workers with names like that of a missing value: 'None' 2" in votes.notes
        assert "tasks with names like that of a missing value: 'NA' 2" in votes.notes

    def test_promise_06_truths_may_be_missing_too(self, read, tmp_path):
        votes = read("task,worker,label\n1,a,x\n1,b,y\n2,a,x\n")
        path = tmp_path / "truth.csv"
        path.write_text("task,label\n1,x\n2,NA\n")
        known = add_gold_file(votes, path)
        assert known.gold_labels.to_dict() == {1: "x"}
        assert any(note.startswith("truths taken as missing: 'NA' 1") for note in known.notes)

    def test_promise_06_frames_say_it_too(self):
        frame = pd.DataFrame({"task": [1, 1, 2], "worker": list("aba"), "label": ["x", "nan", "y"]})
        with pytest.warns(UserWarning, match="Labels taken as missing: 'nan' 1"):
            model = MajorityVote().fit(frame)
        assert model.classes_.tolist() == ["x", "y"]
        assert Annotations.from_frame(frame, missing=None).n_classes == 3

    def test_promise_06_a_class_that_reads_as_missing_is_reported_when_written(self, tmp_path):
        votes = Annotations.from_dict({1: {"a": "None", "b": "x"}}, missing=None)
        for name in ("v.csv", "v.json", "v.parquet"):
            with pytest.warns(UserWarning, match="'None' are taken as missing when they are read"):
                write_annotations(tmp_path / name, votes)
            assert crowdwise.read(tmp_path / name, missing=None).equals(votes)


class TestWideTables:
    """Point 8: which columns are workers."""

    TEXT = "id,text,age,ann,bob,truth\n1,u,31,cat,dog,cat\n2,v,44,dog,dog,\n3,w,31,cat,cat,\n"

    def test_promise_08_columns_are_reported(self, tmp_path):
        path = tmp_path / "wide.csv"
        path.write_text(self.TEXT)
        notes = crowdwise.read(path, "wide", worker="[ab]*b*").notes
        assert "workers from 1 column: 'bob'" in notes
        assert "columns left out: 'text', 'age', 'ann'" in notes
        assert {"task from column 'id'", "gold from column 'truth'"} <= set(notes)

    def test_promise_08_a_column_that_shares_no_class_is_doubted(self, tmp_path, capsys):
        path = tmp_path / "wide.csv"
        path.write_text(self.TEXT)
        strange = r"may not be workers: 'age'(.|\n)*'age' holds '31', '44'(.|\n)*--worker"
        with pytest.warns(UserWarning, match=strange):
            votes = crowdwise.read(path, "wide")
        assert "workers from 3 columns: 'age', 'ann', 'bob'" in votes.notes
        frame = pd.DataFrame({"age": [31, 44, 31], "r1": [0, 1, 1], "r2": [1, 1, 0]})
        with pytest.warns(UserWarning, match="may not be workers: 'age'"):
            MajorityVote().fit(frame)
        assert main(["aggregate", str(path), "--format", "wide"]) == 0
        said = capsys.readouterr().err
        assert "may not be workers: 'age'" in said
        assert "columns left out: 'text'" in said

    def test_promise_08_words_for_nothing_are_not_shared(self, tmp_path):
        path = tmp_path / "wide.csv"
        path.write_text("id,color,shape\n1,NA,round\n2,blue,NA\n3,red,NA\n")
        with pytest.raises(AnnotationError, match="no column for the worker"):
            crowdwise.read(path)


class TestNumbersInFiles:
    """Point 20: integers stay integers, and numbers are short."""

    def test_promise_20_a_wide_table_keeps_integers(self, tmp_path, capsys):
        path = tmp_path / "votes.csv"
        path.write_text("task,worker,label\n1,a,1\n1,b,2\n2,a,2\n3,b,1\n")
        assert main(["convert", str(path), "-", "--to", "wide"]) == 0
        text = capsys.readouterr().out
        assert text.split() == ["task,a,b", "1,1,2", "2,2,", "3,,1"]
        (tmp_path / "wide.csv").write_text(text)
        assert crowdwise.read(tmp_path / "wide.csv").equals(crowdwise.read(path))

    def test_promise_20_six_digits_in_csv(self, crowd, tmp_path, capsys):
        path = tmp_path / "votes.csv"
        crowd[0].to_frame().to_csv(path, index=False)
        for command in (["aggregate", "--proba"], ["workers"]):
            assert main([command[0], str(path), *command[1:]]) == 0
            table = pd.read_csv(io.StringIO(capsys.readouterr().out), dtype=str)
            cells = [cell for cell in table.to_numpy().ravel() if isinstance(cell, str)]
            digits = [cell.partition("e")[0].replace(".", "").lstrip("-0") for cell in cells]
            assert max(map(len, (d for d in digits if d.isdigit()))) == 6

    def test_promise_20_data_keep_all_digits(self, tmp_path):
        X, path = np.array([[1 / 3, 2e-9 / 3]]), tmp_path / "X.csv"
        write_features(path, X, [1], ["x", "y"])
        assert read_features(path).values.tolist() == X.tolist()
        votes = Annotations.from_codes([0, 0], [0, 1], [0, 1], time=[1.7e9 + 1 / 3, 5.0])
        write_annotations(tmp_path / "v.csv", votes)
        assert crowdwise.read(tmp_path / "v.csv").time.tolist() == votes.time.tolist()


class TestEndlessInputs:
    """Point 16: devices, sockets, bombs, and files larger than memory."""

    @pytest.fixture
    def little(self, monkeypatch):
        """One megabyte of memory."""
        for module in ("memory", "io.unpack"):
            monkeypatch.setattr(f"crowdwise.{module}.available_memory", lambda: 1_000_000)

    @pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a system without devices")
    def test_promise_16_devices_are_refused(self, tmp_path, capsys):
        good, truth = tmp_path / "v.csv", "/dev/zero"
        good.write_text("task,worker,label\n1,a,x\n")
        link = tmp_path / "folder" / "votes.csv"
        link.parent.mkdir()
        link.symlink_to("/dev/zero")
        for command in (
            ["aggregate", "/dev/zero"],
            ["aggregate", str(link)],
            ["aggregate", str(link.parent)],
            ["aggregate", str(good), "--gold-file", truth],
            ["compare", str(good), "--truth", truth],
            ["fit", str(good), "--features", truth, "-o", str(tmp_path / "m")],
            ["predict", truth, str(good)],
        ):
            assert main(command) != 0
            assert "is a device" in capsys.readouterr().err
        with Path("/dev/zero").open("rb") as stream, pytest.raises(FileError, match="is a device"):
            crowdwise.read(stream)

    @pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="a system without such sockets")
    def test_promise_16_sockets_are_refused(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # the path of a socket must be short
        with socket.socket(socket.AF_UNIX) as own:
            own.bind("votes.csv")
            with pytest.raises(FileError, match="is a socket"):
                crowdwise.read("votes.csv")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes")
    def test_promise_16_pipes_are_read_where_they_are_named(self, tmp_path):
        path = tmp_path / "votes.csv"
        os.mkfifo(path)
        with pytest.raises(FileError, match=r"votes\.csv is a pipe"):
            crowdwise.read(tmp_path)  # where nobody may write to it
        writer = threading.Thread(target=path.write_text, args=["task,worker,label\n1,a,x\n"])
        writer.start()
        assert crowdwise.read(path).n_annotations == 1
        writer.join()

    @pytest.mark.parametrize("name", ["v.csv", "v.json", "v.jsonl", "L.npy", "L.txt", "v.csv.gz"])
    def test_promise_16_memory_is_stated_before_a_file_is_read(self, little, tmp_path, name):
        path = tmp_path / name
        rows = b"task,worker,label\n" + b"1,2,3\n" * 60_000
        start = {"json": b"[", "npy": b"\x93NUMPY", "txt": b"1 2\n" * 30_000, "gz": b"\x1f\x8b"}
        path.write_bytes(start.get(name.rpartition(".")[2], rows))
        os.truncate(path, 100_000_000_000)  # the rest takes no place on the disk
        with pytest.raises(FileError, match=r"would need about \d+ [GT]B(.|\n)*1 MB available"):
            crowdwise.read(path)
        if name == "v.csv":
            with pytest.raises(FileError, match=r"about 16,\d+,\d+,\d+ rows of 2 columns"):
                read_features(path, columns=["label"])

    def test_promise_16_rows_of_parquet_are_counted_before_they_are_read(self, little, tmp_path):
        path = tmp_path / "v.parquet"
        same = {name: np.zeros(300_000, dtype=np.int8) for name in ("task", "worker", "label")}
        pd.DataFrame(same).to_parquet(path)
        assert path.stat().st_size < 100_000
        with pytest.raises(FileError, match="about 300,000 rows of 3 columns"):
            crowdwise.read(path)

    def test_promise_16_a_bomb_ends_where_memory_does(self, little, tmp_path):
        rows = b"task,worker,label\n" + b"1,2,3\n" * 500_000
        (tmp_path / "v.csv.gz").write_bytes(gzip.compress(rows))
        with zipfile.ZipFile(tmp_path / "v.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("v.csv", rows)
        for name in ("v.csv.gz", "v.zip"):
            with pytest.raises(FileError, match=r"needs more memory(.|\n)*more than 500 kB"):
                crowdwise.read(tmp_path / name)

    def test_promise_16_a_stream_ends_where_memory_does(self, little):
        class Endless(io.RawIOBase):
            def read(self, size=-1):
                assert size > 0
                return b"1,2,3\n" * (size // 6)

        with pytest.raises(FileError, match="needs more memory than there is"):
            crowdwise.read(Endless())

    def test_promise_16_what_fits_is_read(self, little, tmp_path):
        path = tmp_path / "v.csv"
        long = "x" * 100_000  # most of this file is never held in memory
        path.write_text(
            "task,worker,label,text\n" + "".join(f"{k},a,1,{long}\n" for k in range(30))
        )
        assert crowdwise.read(path).n_annotations == 30


def test_promise_16_memory_that_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "PROC", tmp_path)
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "groups")
    assert memory.available_memory() is None
    (tmp_path / "meminfo").write_text("MemTotal: 900 kB\nMemAvailable: 700 kB\nSwapFree: 100 kB\n")
    assert memory.available_memory() == 800 * 1024
    own = tmp_path / "groups" / "mine"
    own.mkdir(parents=True)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("0::/mine\n")
    (own / "memory.max").write_text("max\n")
    (own / "memory.current").write_text("400000\n")
    assert memory.available_memory() == 800 * 1024
    (own / "memory.max").write_text("500000\n")
    (own / "memory.stat").write_text("anon 1\ninactive_file 100000\n")
    assert memory.available_memory() == 200_000


def test_promise_06_one_rule_for_every_way_in():
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": list("aba"), "label": [10, "NA", 2]})
    frame["gold"] = ["NA", "NA", 2]
    ways = {
        Annotations.from_frame: frame,
        Annotations.from_dict: {1: {"a": 10, "b": "NA"}, 2: {"a": 2}},
        Annotations.from_matrix: [[10, " NA"], [2, None]],
    }
    for build, data in ways.items():
        with pytest.warns(UserWarning, match=r"Labels taken as missing: 'NA' 1 \(missing=None"):
            built = build(data)
        assert built.classes.tolist() == [2, 10]
        assert built.to_matrix().to_numpy()[:, 0].tolist() == [10, 2]
        assert "rows without a label left out: 1" in built.notes
        assert build(data, missing=None).n_classes == 3
        assert build(data, classes=[2, 10, "NA", " NA"]).n_annotations == 3
        assert build(data, missing=[2]).n_annotations == 2
    with pytest.warns(UserWarning, match="aken as missing: 'NA' 1") as seen:
        built = Annotations.from_frame(frame, gold="gold")
    assert [str(one.message)[:6] for one in seen] == ["Labels", "Truths"]
    assert built.gold_labels.to_dict() == {2: 2}


def test_promise_06_a_column_is_given_by_name():
    frame = pd.DataFrame({"task": [1, 2], "worker": list("ab"), "label": [0, 1]})
    for use in (Annotations.from_frame, crowdwise.read):
        for role in ("task", "label", "gold"):
            with pytest.raises(ParameterError, match=f"{role} is a Series, not the name of a col"):
                use(frame, **{role: frame["label"]})


@pytest.mark.parametrize(
    "use",
    [
        lambda: compare_methods([[0, 1], [1, 1]], [], held_out=0),
        lambda: compare_methods([[0, 1], [1, 1]], {"v": MajorityVote()}, held_out=1.0),
        lambda: compare_methods([[0, 1], [1, 1]], [MajorityVote(), MajorityVote()]),
        lambda: compare_methods([[0, 1, 2], [1, 2, 0], [2, 0, 1]], {"k": KOS()}, held_out=0),
        lambda: crowdwise.read([[1, 2], [3]]),
        lambda: crowdwise.read([]),
        lambda: crowdwise.read(3),
        lambda: crowdwise.read([[0, 1]], "csvv"),
        lambda: Annotations.from_frame(3),
        lambda: Annotations.from_dict({1: [2]}),
        lambda: Annotations.from_matrix([[0, 1]]).select_workers(["bob"]),
    ],
)
def test_promise_20_errors_say_what_to_do(use):
    with pytest.raises(CrowdwiseError, match=r"\n  fix:      \w"):
        use()
