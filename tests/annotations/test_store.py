"""Annotations on disk: what is written is what is read, in blocks, whatever the order of rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from crowdwise import Annotations
from crowdwise.annotations import StoredAnnotations, store, streaming
from crowdwise.errors import AnnotationError, FileError, FormatError

pytest.importorskip("pyarrow")


def rows(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    worker = (rng.pareto(1.0, n) * 5).astype(int) % 200
    task, label = rng.integers(0, 900, n), (worker + rng.integers(0, 3, n)) % 7
    names = np.array(list("gfedcba"))
    return pd.DataFrame(
        {
            "task": [f"q{t}" for t in task],
            "worker": [f"w{w}" for w in worker],
            "label": names[label],
        }
    )


def triples(stored):
    """All rows again, from the file."""
    cells = stored.cells(0, stored.n_tasks)
    tasks = np.repeat(np.concatenate(list(stored.task_names())), np.diff(cells.indptr))
    worker, label = stored.pairs.worker[cells.code], stored.pairs.label[cells.code]
    return pd.DataFrame(
        {"task": tasks, "worker": stored.workers[worker], "label": stored.classes[label]}
    )


@pytest.fixture(params=[1 << 22, 1000], ids=["one part", "parts"])
def parts(request, monkeypatch):
    monkeypatch.setattr(streaming, "ROWS_PER_PART", request.param)
    monkeypatch.setattr(streaming, "ROWS_AT_ONCE", 700)
    monkeypatch.setattr(store, "STRIDE", 64)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("kind", ["parquet", "csv", "folder"])
def test_every_row_is_there_once(kind, tmp_path):
    frame = rows()
    path = tmp_path / ("votes" if kind == "folder" else f"votes.{kind}")
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        path.mkdir()
        frame[:2000].to_parquet(path / "a.parquet")
        frame[2000:].to_parquet(path / "b.parquet")
    stored = Annotations.open(path)
    assert (stored.n_tasks, stored.n_annotations) == (frame["task"].nunique(), len(frame))
    columns = ["task", "worker", "label"]
    found = triples(stored)
    expected = frame.sort_values(columns).reset_index(drop=True).astype(object)
    assert found.sort_values(columns).reset_index(drop=True).astype(object).equals(expected)
    for task in found["task"].unique()[:20]:  # in the order of the file
        same = found.loc[found["task"] == task, columns[1:]].to_numpy().tolist()
        assert same == frame.loc[frame["task"] == task, columns[1:]].to_numpy().tolist()
    assert sorted(file.name for file in stored.folder.iterdir()) == [
        "about.json", "codes.bin", "names.npz", "sizes.bin", "sources.json", "starts.npy",
        "tasks.parquet",
    ]  # fmt: skip
    assert "5,000 annotations" in repr(stored)


@pytest.mark.usefixtures("parts")
def test_blocks_are_parts_of_the_whole(tmp_path):
    rows().to_parquet(tmp_path / "votes.parquet")
    stored = Annotations.open(tmp_path / "votes.parquet")
    whole = stored.cells(0, stored.n_tasks)
    for start, stop in ((0, 1), (63, 65), (100, 500), (640, stored.n_tasks)):
        some = stored.cells(start, stop)
        low, high = whole.indptr[start], whole.indptr[stop]
        assert_array_equal(some.code, whole.code[low:high])
        assert_array_equal(some.indptr, whole.indptr[start : stop + 1] - low)
    cells = np.array([0.5, 1.0, 777.7, 2500.0, 4999.0, 5000.0])
    assert_array_equal(stored.find(cells), np.searchsorted(whole.indptr, cells))


def test_a_folder_is_used_again_until_the_file_changes(tmp_path, monkeypatch):
    path = tmp_path / "votes.parquet"
    rows().to_parquet(path)
    first = Annotations.open(path)
    assert first.folder == tmp_path / "votes.parquet.crowd"
    assert Annotations.open(first.folder).n_tasks == first.n_tasks
    with monkeypatch.context() as patch:
        patch.setattr(streaming, "_build", None)
        assert Annotations.open(path).n_tasks == first.n_tasks
    rows(300).to_parquet(path)
    assert Annotations.open(path).n_annotations == 300
    elsewhere = Annotations.open(path, tmp_path / "other" / "place")
    assert elsewhere.folder == tmp_path / "other" / "place"


def test_numbers_stay_numbers_and_empty_cells_are_left_out(tmp_path):
    frame = pd.DataFrame(
        {"unit": [10, 10, 7, 7], "who": ["b", "a", "b", "a"], "answer": [2, 1, 2, None]}
    ).astype({"answer": "Int64"})
    frame.to_parquet(tmp_path / "votes.parquet")
    names = {"task": "unit", "worker": "who", "label": "answer"}
    stored = Annotations.open(tmp_path / "votes.parquet", **names)
    assert stored.classes.tolist() == [1, 2]
    assert np.concatenate(list(stored.task_names())).tolist() == [10, 7]
    assert stored.n_annotations == 3


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_weights_stay_with_their_rows(kind, tmp_path):
    frame = rows()
    frame["weight"] = np.random.default_rng(1).choice([0.25, 1.0, 2.5], len(frame))
    path = tmp_path / f"votes.{kind}"
    text = frame.to_csv(index=False)
    path.write_text(text + text.partition("\n")[0]) if kind == "csv" else frame.to_parquet(path)
    stored = Annotations.open(path)
    found = triples(stored).assign(weight=stored.cells(0, stored.n_tasks).value)
    columns = list(frame)
    whole = (own.sort_values(columns, ignore_index=True) for own in (found[columns], frame))
    pd.testing.assert_frame_equal(*whole, check_dtype=False)
    some = stored.cells(10, 20)
    place = slice(*stored.cells(0, 20).indptr[[10, 20]])
    assert_array_equal(some.value, found["weight"][place])
    named = frame.rename(columns={"weight": "trust"})
    named.to_parquet(tmp_path / "named.parquet")
    plain = Annotations.open(tmp_path / "named.parquet")
    assert plain.cells(0, 9).value is None
    again = Annotations.open(tmp_path / "named.parquet", weight="trust")  # not the folder of before
    assert again.cells(0, again.n_tasks).value.sum() == frame["weight"].sum()


@pytest.mark.parametrize("bad", ["-1", "", "many", "inf", "1e39"])
def test_weights_that_cannot_be_used_are_refused(bad, tmp_path):
    (tmp_path / "votes.csv").write_text(f"task,worker,label,weight\n1,a,x,1\n1,b,y,{bad}\n")
    with pytest.raises(AnnotationError, match=r"1 weight cannot be used"):
        Annotations.open(tmp_path / "votes.csv")
    (tmp_path / "votes.csv").write_text(f"task,worker,label,weight\n1,a,x,1\n1,b,,{bad}\n")
    assert Annotations.open(tmp_path / "votes.csv").n_left_out == 1
    (tmp_path / "votes.csv").write_text("task,worker,label,weight\n1,a,x,1\n2,b,y,0\n")
    assert Annotations.open(tmp_path / "votes.csv").n_left_out == 1


def test_damaged_weights_are_one_clear_error(tmp_path):
    rows(50).assign(weight=2.0).to_parquet(tmp_path / "votes.parquet")
    stored = Annotations.open(tmp_path / "votes.parquet")
    np.full(50, np.nan, dtype="<f4").tofile(stored.folder / "weights.bin")
    with pytest.raises(FormatError, match="weights of annotations"):
        stored.cells(0, 3)
    (stored.folder / "weights.bin").write_bytes(b"1234")
    with pytest.raises(FormatError, match="is incomplete"):
        StoredAnnotations.load(stored.folder)


def test_mistakes_are_one_clear_error(tmp_path):
    path = tmp_path / "votes.parquet"
    with pytest.raises(FileError, match="not there"):
        Annotations.open(path)
    rows(50).to_parquet(path)
    with pytest.raises(AnnotationError, match=r"(?s)no column for the who.*worker='…'"):
        Annotations.open(path, worker="who")
    assert not list(tmp_path.glob("*.crowd"))
    assert not list(tmp_path.glob(".*"))  # nothing half-made is left
    (tmp_path / "votes.xlsx").write_text("")
    with pytest.raises(FileError, match=r"(?s)stream.*\.parquet"):
        Annotations.open(tmp_path / "votes.xlsx")
    stored = Annotations.open(path)
    with (stored.folder / "codes.bin").open("ab") as file:
        file.write(b"x")
    with pytest.raises(FormatError, match="is incomplete"):
        StoredAnnotations.load(stored.folder)
    (stored.folder / "about.json").write_text("{")
    with pytest.raises(FormatError, match="does not contain annotations"):
        StoredAnnotations.load(stored.folder)


def test_a_damaged_file_is_one_clear_error_and_leaves_nothing(tmp_path):
    path = tmp_path / "votes.csv"
    lines = [f"{i},w{i % 3},{i % 2}" for i in range(200_000)]
    path.write_text("\n".join(["task,worker,label", *lines, "7,w1"]) + "\n")
    with pytest.raises(FileError, match=r"(?s)cannot be read.*7,w1.*Parquet"):
        Annotations.open(path)
    assert [file.name for file in tmp_path.iterdir()] == ["votes.csv"]
