"""A set as a folder: everything comes back, nothing is overwritten unasked."""

import logging

import numpy as np
import pandas as pd
import pytest

import crowdwise as cw
from crowdwise import Annotations
from crowdwise.errors import FileError
from crowdwise.simulate import OneCoinWorker, classroom, simulate_dataset, write_set


@pytest.fixture(scope="module")
def lessons():
    return classroom()


def test_everything_comes_back(lessons, tmp_path):
    paths = write_set(lessons, tmp_path / "new" / "folder")
    votes, truth, features, workers, split = paths
    back = cw.read(votes, classes=lessons.annotations.classes)
    same = Annotations.from_frame(lessons.annotations.to_frame(), time="time")
    assert back.to_frame().to_dict("list") == same.to_frame().to_dict("list")
    assert pd.read_csv(truth, index_col="task")["label"].to_dict() == lessons.truth.to_dict()
    X = pd.read_csv(features, index_col="task")
    assert X.columns.tolist() == lessons.extra["feature_names"]
    assert X.to_numpy() == pytest.approx(lessons.X)
    assert X.index.tolist() == lessons.annotations.tasks.tolist()
    assert pd.read_csv(workers, index_col="worker")["kind"].equals(lessons.workers["kind"])
    assert pd.read_csv(split, index_col="task")["split"].to_dict() == lessons.split.to_dict()


def test_features_go_to_arrays_if_asked(lessons, tmp_path):
    paths = write_set(lessons, tmp_path, npz=True)
    assert [path.name for path in paths if "features" in path.name] == ["features.npz"]
    arrays = np.load(tmp_path / "features.npz")
    assert arrays["X"] == pytest.approx(lessons.X)
    assert arrays["ids"].tolist() == lessons.annotations.tasks.tolist()


def test_a_set_without_a_split_has_no_such_file(tmp_path):
    made = simulate_dataset(2 * [OneCoinWorker(0.8)], 20, n_features=2, random_state=0)
    names = [path.name for path in write_set(made, tmp_path)]
    assert names == ["votes.csv", "truth.csv", "features.csv", "workers.csv"]
    assert pd.read_csv(tmp_path / "features.csv").columns.tolist() == ["task", "x_0", "x_1"]


def test_what_is_there_is_kept_unless_asked(lessons, tmp_path, caplog):
    (tmp_path / "truth.csv").write_text("mine")
    with pytest.raises(FileError, match=r"already holds truth.csv\."):
        write_set(lessons, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["truth.csv"]
    with caplog.at_level(logging.WARNING, "crowdwise.simulate"):
        write_set(lessons, tmp_path, replace=True)
    assert caplog.messages == [f"{tmp_path}: replaced truth.csv"]
    assert (tmp_path / "truth.csv").read_text().startswith("task,label\n")


def test_files_of_an_earlier_set_do_not_stay_behind(lessons, tmp_path):
    write_set(lessons, tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    made = simulate_dataset(2 * [OneCoinWorker(0.8)], 20, random_state=0)
    write_set(made, tmp_path, npz=True, replace=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("features.npz", "notes.txt", "truth.csv", "votes.csv", "workers.csv"),
    ]


def test_a_file_in_place_of_the_folder_is_one_clear_error(lessons, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be created"):
        write_set(lessons, tmp_path / "file" / "folder")
