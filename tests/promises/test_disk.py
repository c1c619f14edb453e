"""What docs/promises.md says of annotations on disk."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import crowdwise as cw
from crowdwise import Annotations
from crowdwise.aggregate import DawidSkene
from crowdwise.cli import main
from crowdwise.errors import AnnotationError, FileError, FormatError
from crowdwise.io import stream, stream_labels

pytest.importorskip("pyarrow")


def spoil(kind, change):
    """A change of a file of numbers."""

    def make(path):
        array = np.fromfile(path, dtype=kind)
        path.write_bytes(change(array).astype(kind).tobytes())

    return make


def rename(**changed):
    """A change of the names and pairs."""

    def make(path):
        arrays = dict(np.load(path))
        changes = {name: change(arrays[name]) for name, change in changed.items()}
        np.savez(path, **(arrays | changes))

    return make


def tell(**changed):
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def start(change):
    return lambda path: np.save(path, change(np.load(path)))


def name_tasks(n):
    table = io.BytesIO()
    pd.DataFrame({"task": range(n)}).to_parquet(table)
    return lambda path: path.write_bytes(table.getvalue())


def set_first(value):
    return lambda array: np.r_[value, array[1:]]


DAMAGE = {
    "codes.bin": [spoil("<i4", set_first(value)) for value in (-1, 15, 2**31 - 1)],
    "sizes.bin": [spoil("u1", set_first(200)), lambda path: path.write_bytes(b"1")],
    "starts.npy": [
        start(lambda starts: starts - 5),
        start(lambda starts: starts + 10**9),
        start(lambda starts: starts[:0]),
        start(lambda starts: starts.astype(str)),
        lambda path: path.write_bytes(b"junk"),
    ],
    "names.npz": [
        rename(pair_worker=lambda own: own + 100),
        rename(pair_label=lambda own: own - 100),
        rename(pair_label=lambda own: own[:-1]),
        rename(pair_label=lambda own: own[:3], pair_worker=lambda own: own[:3]),
        rename(classes=lambda own: own[:2]),
        rename(classes=lambda own: own[[0, 0, 0]]),
        rename(workers=lambda own: own[None]),
        lambda path: path.write_bytes(b"PK\x03\x04junk"),
    ],
    "about.json": [
        tell(n_tasks=-1),
        tell(n_annotations=10**12),
        tell(size_type="O"),
        lambda path: path.write_bytes(b"\xff[]"),
    ],
    "tasks.parquet": [name_tasks(20), name_tasks(200), lambda path: path.write_bytes(b"junk")],
}


def test_promise_18_a_damaged_folder_on_disk_is_refused(tmp_path):
    path = tmp_path / "votes.csv"
    rows = [(f"t{t}", f"w{w}", "xyz"[(t + w) % 3]) for t in range(50) for w in range(5)]
    pd.DataFrame(rows, columns=["task", "worker", "label"]).to_csv(path, index=False)
    home = Annotations.open(path).folder
    for name, changes in DAMAGE.items():
        sound = (home / name).read_bytes()
        for number, change in enumerate(changes):
            change(home / name)
            try:
                stream_labels(DawidSkene().fit(Annotations.open(home)), tmp_path / "labels.parquet")
            except FormatError:
                continue
            pytest.fail(f"{name} {number} was read")
        (home / name).write_bytes(sound)
    stream_labels(DawidSkene().fit(Annotations.open(home)), tmp_path / "labels.parquet")


def rows_in_memory(path):
    frame = cw.read(path, "long").to_frame()
    return sorted(map(repr, frame[["task", "worker", "label"]].itertuples(index=False, name=None)))


def rows_on_disk(path):
    stored = Annotations.open(path)
    cells = stored.cells(0, stored.n_tasks)
    tasks = [name for some in stored.task_names() for name in some.tolist()]
    workers = stored.workers[stored.pairs.worker[cells.code]].tolist()
    labels = stored.classes[stored.pairs.label[cells.code]].tolist()
    named = np.repeat(np.array(tasks, dtype=object), np.diff(cells.indptr)).tolist()
    return sorted(map(repr, zip(named, workers, labels, strict=True)))


TEXTS = {
    "whole numbers": "1,1,1\n1.0,2.0,2\n2,1,1.0\n",
    "digits of other scripts": "1\u0663,1,1\n12,2,2\n",
    "apostrophes": "'=1,'+b,'@x\n''=1,w,y\n",
    "words without a label": "NA,w,\n1,1,1\n1,NA,NA\n2,1,2\n",
    "apostrophes of others": "'=1,'+b,'@x\n=1,+c,@x\n",
    "quoted line ends": '"t\n1",w,"x\r\ny"\n"t""2",w,y\n',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_promise_16_a_file_that_stays_on_disk_is_read_by_the_same_rules(tmp_path, text):
    path = tmp_path / "votes.csv"
    path.write_text(f"task,worker,label\n{text}", encoding="utf-8", newline="")
    assert rows_on_disk(path) == rows_in_memory(path)


@pytest.mark.parametrize("role", ["task", "worker", "label"])
@pytest.mark.parametrize(
    "values", [[1.0, 2.0, 1.0], [1.5, 2.0, 1.5], [1.0, np.nan, 2.0], [0.0, -0.0, 0.5]]
)
def test_promise_16_numbers_of_parquet_on_disk_are_read_by_the_same_rules(tmp_path, role, values):
    columns = {"task": ["1", "1", "2"], "worker": ["a", "b", "a"], "label": ["x", "y", "x"]}
    path = tmp_path / "votes.parquet"
    pd.DataFrame(columns | {role: values}).to_parquet(path)
    if role != "label" and np.isnan(values[1]):
        for read in (rows_in_memory, rows_on_disk):
            with pytest.raises(AnnotationError, match=f"The {role} is missing in 1 of 3"):
                read(path)
    else:
        assert rows_on_disk(path) == rows_in_memory(path)


def test_promise_10_weights_on_disk_are_found_by_the_same_names(tmp_path):
    path = tmp_path / "votes.csv"
    for name in ("weight", "Weight", "WEIGHT_", "_weight"):
        path.write_text(f"task,worker,label,{name}\n1,a,x,2.5\n1,b,y,0\n")
        assert cw.read(path).weight.tolist() == [2.5, 0]
        stored = Annotations.open(path)
        assert stored.cells(0, 1).value.tolist() == [2.5]


def test_promise_16_probabilities_do_not_stay_on_disk(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,proba_x,proba_y\n1,a,x,.6,.4\n")
    with pytest.raises(AnnotationError, match=r"Probabilities(.|\n)*proba_x(.|\n)*fix: "):
        Annotations.open(path)


@pytest.mark.parametrize("other", ["task,worker,answer", "worker,task,label,weight", "task,worker"])
def test_promise_16_files_with_other_columns_are_refused_on_disk(tmp_path, other):
    folder = tmp_path / "votes"
    folder.mkdir()
    (folder / "a.csv").write_text("task,worker,label\n1,a,x\n")
    (folder / "b.csv").write_text("label,worker,task\ny,b,1\n")
    assert sorted(rows_on_disk(folder)) == ["(1, 'a', 'x')", "(1, 'b', 'y')"]
    (folder / "b.csv").write_text(f"{other}\n{','.join('1' * len(other.split(',')))}\n")
    with pytest.raises(AnnotationError, match=r"is not the same in .*b.csv(.|\n)*fix: "):
        Annotations.open(folder)


def test_promise_16_files_with_other_types_are_refused_on_disk(tmp_path):
    folder = tmp_path / "votes"
    folder.mkdir()
    for name, task in (("a", 1), ("b", "01")):
        table = pd.DataFrame({"task": [task], "worker": ["a"], "label": ["x"]})
        table.to_parquet(folder / f"{name}.parquet")
    with pytest.raises(AnnotationError, match=r"'task' is not the same in .*b.parquet"):
        Annotations.open(folder)


def test_promise_13_a_folder_of_others_is_not_replaced(tmp_path):
    path, home = tmp_path / "votes.csv", tmp_path / "site"
    path.write_text("task,worker,label\n1,a,x\n")
    home.mkdir()
    assert Annotations.open(path, home).n_annotations == 1  # an empty folder
    path.write_text("task,worker,label\n1,a,x\n1,b,x\n")
    assert Annotations.open(path, home).n_annotations == 2  # one of ours
    for text in ('{"title": "mine"}', "[]", "no JSON"):
        (home / "about.json").write_text(text)
        with pytest.raises((FileError, FormatError), match=r"does not contain(.|\n)*fix: "):
            Annotations.open(path, home)
        assert (home / "about.json").read_text() == text
    with pytest.raises(FileError, match="does not contain"):
        Annotations.open(path, path)
    assert path.read_text().startswith("task")


def test_promise_16_an_open_quote_swallows_no_rows_on_disk(tmp_path):
    path = tmp_path / "votes.csv"
    rows = "".join(f'{t},w{t % 7},"yes"\n' for t in range(200_000))  # more than is looked at
    for whole in ("1,a,x\n", rows):
        for end in ('7,a,"x\n8,b,y\n9,c,y\n', '7,a,x,"\n8,b,y,\n'):
            head = "task,worker,label,note\n" if end.count(",") > 6 else "task,worker,label\n"
            body = whole if "note" not in head else whole.replace("\n", ",\n")
            path.write_text(head + body + end)
            with pytest.raises(FormatError, match=r"ends inside quotes(.|\n)*fix: "):
                Annotations.open(path)
            path.write_text(head + body)
            assert Annotations.open(path).n_annotations == whole.count("\n")


def test_promise_09_a_null_character_is_not_lost_on_disk(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\nt\0,a\0b,x\nt,a,y\n")
    assert rows_on_disk(path) == rows_in_memory(path)
    path.write_text("task,worker,label\nt,a\0,x\nt,a,y\n")
    with pytest.raises(AnnotationError, match=r"null character(.|\n)*fix: "):
        Annotations.open(path)


def test_promise_16_a_weight_that_single_precision_lacks_is_refused_on_disk_too(tmp_path):
    path = tmp_path / "votes.csv"
    for weight in ("1e-40", "1e-60", "1e39"):
        path.write_text(f"task,worker,label,weight\nt,a,x,{weight}\nt,b,y,1\n")
        with pytest.raises(AnnotationError, match="1 weight cannot be used"):
            Annotations.open(path)
    path.write_text("task,worker,label,weight\nt,a,x,0\nt,b,y,0\n")
    with pytest.raises(AnnotationError, match="There are no annotations"):
        Annotations.open(path)


def test_promise_16_every_table_of_a_folder_is_read_on_disk(tmp_path):
    folder = tmp_path / "votes"
    folder.mkdir()
    (folder / "_SUCCESS").write_text("")
    (folder / "_a.csv").write_text("task,worker,label\n1,a,x\n")
    (folder / "b.csv").write_text("task,worker,label\n2,b,y\n")
    assert Annotations.open(folder).n_annotations == 2
    pd.DataFrame({"task": [1], "worker": ["a"], "label": ["x"]}).to_parquet(folder / "c.parquet")
    with pytest.raises(FileError, match="all of one kind"):
        Annotations.open(folder)


@pytest.mark.parametrize(
    "flags", [["--repeats", "first"], ["--question", "q"], ["--format", "wide"], ["--score", "s"]]
)
def test_promise_16_no_flag_is_ignored_for_a_large_file(tmp_path, monkeypatch, capsys, flags):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n1,a,x\n1,a,y\n2,b,y\n")
    monkeypatch.setattr(stream, "available_memory", lambda: 10)
    asked = ["aggregate", str(path), "-o", str(tmp_path / "labels.parquet")]
    assert main(asked) == 0
    assert main([*asked, *flags]) == 2
    assert f"{flags[0]} cannot be used" in capsys.readouterr().err
