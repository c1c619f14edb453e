"""Files of features: what is read, what is said, and what is refused."""

import gzip

import numpy as np
import pandas as pd
import pytest

from crowdwise.errors import AnnotationError, CrowdwiseError, FileError, FormatError
from crowdwise.io.features import read_features

TASKS = np.array(["a", "b", "c"], dtype=object)
FRAME = pd.DataFrame({"task": ["c", "a", "b"], "size": [3.0, 1.0, 2.0], "age": [30, 10, 20]})
SORTED = [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]  # rows of a, b and c


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".json":
        frame.to_json(path, orient="records")
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


class TestTables:
    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".json", ".csv.gz"])
    def test_rows_are_matched_by_name(self, tmp_path, suffix):
        path = write(FRAME, tmp_path / f"X{suffix.removesuffix('.gz')}")
        if suffix.endswith(".gz"):
            packed = tmp_path / "X.csv.gz"
            packed.write_bytes(gzip.compress(path.read_bytes()))
            path = packed
        table = read_features(path, tasks=TASKS)
        values, notes = table.take_tasks(TASKS)
        assert values.tolist() == SORTED
        assert notes == (f"2 features of 3 rows from {path}, tasks from column 'task'",)

    def test_whole_numbers_are_the_same_names_in_every_kind_of_file(self, tmp_path):
        tasks = np.array([1, 2, 3])
        frame = FRAME.assign(task=[3, 1, 2])
        for name in ("X.csv", "X.parquet"):
            values, _ = read_features(write(frame, tmp_path / name)).take_tasks(tasks)
            assert values.tolist() == SORTED
        floats = write(frame.assign(task=[3.0, 1.0, 2.0]), tmp_path / "floats.parquet")
        assert read_features(floats).take_tasks(tasks)[0].tolist() == SORTED

    def test_names_keep_their_leading_zeros(self, tmp_path):
        path = write(FRAME.assign(task=["03", "01", "1"]), tmp_path / "X.csv")
        assert read_features(path).ids.tolist() == ["03", "01", "1"]

    def test_a_name_like_missing_is_a_name(self, tmp_path):
        path = write(FRAME.assign(task=["NA", "None", "b"]), tmp_path / "X.csv")
        assert read_features(path).ids.tolist() == ["NA", "None", "b"]

    def test_the_column_that_matches_is_taken(self, tmp_path):
        path = write(FRAME.assign(id=[7, 8, 9]), tmp_path / "X.csv")
        table = read_features(path, tasks=TASKS)
        assert table.ids.tolist() == ["c", "a", "b"]
        table = read_features(path, tasks=np.array([7, 8, 9]), columns=["size", "age"])
        assert table.ids.tolist() == ["7", "8", "9"]

    def test_an_index_that_pandas_wrote_is_recognized(self, tmp_path):
        path = tmp_path / "X.csv"
        FRAME.set_index("task").rename_axis(None).to_csv(path)
        assert read_features(path, tasks=TASKS).take_tasks(TASKS)[0].tolist() == SORTED

    def test_columns_are_chosen(self, tmp_path):
        path = write(FRAME.assign(x_1=1.5, x_2=2.5, title="text"), tmp_path / "X.csv")
        table = read_features(path, tasks=TASKS, columns=["x_*", "age"])
        assert table.take_tasks(TASKS)[0].tolist()[0] == [10.0, 1.5, 2.5]

    def test_a_label_is_no_feature(self, tmp_path):
        path = write(FRAME.assign(label=[1, 0, 1], truth=[1, 0, 1]), tmp_path / "X.csv")
        table = read_features(path, tasks=TASKS)
        assert table.values.shape == (3, 2)
        assert any("'label', 'truth'" in note for note in table.notes)
        assert read_features(path, tasks=TASKS, columns="label").values.tolist() == [[1], [0], [1]]

    def test_spare_rows_are_reported(self, tmp_path):
        table = read_features(write(FRAME, tmp_path / "X.csv"), tasks=TASKS[:2])
        values, notes = table.take_tasks(TASKS[:2])
        assert values.tolist() == SORTED[:2]
        assert notes[-1].startswith("rows of")
        assert notes[-1].endswith("without annotations, left out: 1")

    def test_without_names_rows_are_rows(self, tmp_path):
        table = read_features(write(FRAME.drop(columns="task"), tmp_path / "X.csv"))
        assert table.ids is None
        assert table.values.tolist() == [[3.0, 30.0], [1.0, 10.0], [2.0, 20.0]]


class TestArrays:
    def test_npz_has_names(self, tmp_path):
        for key in ("ids", "task", "tasks"):
            np.savez(tmp_path / "X.npz", X=np.array([[3.0], [1.0]]), **{key: ["c", "a"]})
            table = read_features(tmp_path / "X.npz", tasks=np.array(["a"], dtype=object))
            assert table.take_tasks(np.array(["a"], dtype=object))[0].tolist() == [[1.0]]
            assert f"tasks from '{key}'" in table.notes[0]

    def test_rows_of_npy_are_numbers_or_the_sorted_tasks(self, tmp_path):
        path = tmp_path / "X.npy"
        np.save(path, np.array([[0.0], [1.0], [2.0]]))
        values, notes = read_features(path).take_tasks(np.array([0, 2]))
        assert values.tolist() == [[0.0], [2.0]]
        assert "row 1 is task 1" in notes[-1]
        values, notes = read_features(path).take_tasks(TASKS)
        assert values.tolist() == [[0.0], [1.0], [2.0]]
        assert "sorted order: 'a', 'b', 'c'" in notes[-1]
        for tasks in ([7, 8, 9], [1, 2, 3]):  # no row has all of these numbers
            values, _ = read_features(path).take_tasks(np.array(tasks))
            assert values.tolist() == [[0.0], [1.0], [2.0]]

    def test_images_keep_their_shape(self, tmp_path):
        np.savez_compressed(tmp_path / "X.npz", images=np.ones((2, 3, 4, 4), dtype=np.uint8))
        assert read_features(tmp_path / "X.npz").values.shape == (2, 3, 4, 4)


def refused(path, *, tasks=TASKS, kind=CrowdwiseError, **options):
    with pytest.raises(kind) as caught:
        read_features(path, tasks=tasks, **options).take_tasks(tasks)
    text = str(caught.value)
    assert text.count("\n") >= 1
    return text


class TestRefusals:
    def test_missing_tasks(self, tmp_path):
        text = refused(write(FRAME[:2], tmp_path / "X.csv"), kind=AnnotationError)
        assert "no row for 1 of 3 tasks" in text
        assert "task 'b'" in text

    def test_other_tasks_altogether(self, tmp_path):
        text = refused(write(FRAME.assign(task=["x", "y", "z"]), tmp_path / "X.csv"))
        assert "3 of 3 tasks" in text
        assert "rows of 'x', 'y', 'z'" in text

    def test_duplicates(self, tmp_path):
        text = refused(write(FRAME.assign(task=["a", "a", "b"]), tmp_path / "X.csv"))
        assert "row 2: task 'a'" in text

    def test_rows_without_name(self, tmp_path):
        text = refused(write(FRAME.assign(task=["a", None, "b"]), tmp_path / "X.csv"))
        assert "row 2" in text

    @pytest.mark.parametrize("cell", ["", "NaN", "inf", "NA"])
    def test_missing_values(self, tmp_path, cell):
        path = write(FRAME.assign(size=["1", cell, "2"]), tmp_path / "X.csv")
        text = refused(path)
        assert "missing or infinite values: 1" in text
        assert "row 2, column 'size'" in text

    def test_text(self, tmp_path):
        text = refused(write(FRAME.assign(size=["1", "big", "2"]), tmp_path / "X.csv"))
        assert "Column 'size'" in text
        assert "row 2: 'big'" in text

    def test_no_column_of_names(self, tmp_path):
        text = refused(write(FRAME.drop(columns="task"), tmp_path / "X.csv"))
        assert "--feature-id" in text

    def test_unknown_columns(self, tmp_path):
        path = write(FRAME, tmp_path / "X.csv")
        assert "'name'" in refused(path, id="name")
        assert "'x_*'" in refused(path, columns=["x_*"])

    def test_no_features(self, tmp_path):
        assert "no column of features" in refused(write(FRAME[["task"]], tmp_path / "X.csv"))

    def test_no_rows(self, tmp_path):
        assert "no rows" in refused(write(FRAME[:0], tmp_path / "X.csv"), tasks=TASKS[:0])

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("X.csv", b""),
            ("X.csv", bytes(range(256)) * 40),
            ("X.csv", b"task,size\na,1\nb,2,3,4\n"),
            ("X.npz", b"PK\x03\x04 no"),
            ("X.npz", b"\x00\x01junk" * 20),
            ("X.npy", b"\x93NUMPY junk"),
            ("X.npy", b""),
            ("X.parquet", b"PAR1 no"),
            ("X.json", b'{"a": {"b": 1}}'),
        ],
    )
    def test_junk(self, tmp_path, name, content):
        path = tmp_path / name
        path.write_bytes(content)
        assert name in refused(path, kind=FormatError)

    def test_paths(self, tmp_path):
        assert "folder" in refused(tmp_path, kind=FileError)
        assert "no file" in refused(tmp_path / "nowhere.csv", kind=FileError)

    def test_arrays(self, tmp_path):
        path = tmp_path / "X.npz"
        np.savez(path, one=np.ones((2, 2)), two=np.ones((2, 2)))
        assert "none of them named X" in refused(path)
        np.savez(path, X=np.ones(3))
        assert "shape (3,)" in refused(path)
        np.savez(path, X=np.array([["a"], ["b"]]))
        assert "type <U1" in refused(path)
        np.savez(path, X=np.ones((3, 2)), ids=["a", "b"])
        assert "one name per row" in refused(path)
        np.savez(path, X=np.ones((2, 2)), ids=np.array(["a", "b"], dtype=object))
        assert "dtype=str" in refused(path)
        np.savez(path, X=np.array([[1.0, np.nan]]))
        assert "row 1, column 1" in refused(path)
        np.savez(path, X=np.ones((2, 2)))
        assert "2 rows for 3 tasks" in refused(path)


def test_decimal_commas_are_read(tmp_path):
    path = tmp_path / "features.csv"
    path.write_text("task;size;share\na;0,5;1,25\nb;-2;,5\n")
    assert read_features(path).values.tolist() == [[0.5, 1.25], [-2.0, 0.5]]
    path.write_text("task;share\na;50%\nb;5%\n")
    with pytest.raises(AnnotationError, match="without % or other marks"):
        read_features(path)
