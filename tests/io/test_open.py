"""Files: missing, forbidden, packed, damaged, too big."""

import gzip
import io
import os
import threading
import zipfile
from pathlib import Path

import pandas as pd
import pytest

import crowdwise as cw
from crowdwise.errors import FileError, FormatError, ParameterError
from crowdwise.io import unpack
from crowdwise.io.document import File
from crowdwise.io.open import find_files

TABLE = "task,worker,label\n1,2,3\n1,4,5\n"


def test_a_missing_file_names_its_neighbor(tmp_path):
    (tmp_path / "votes.csv").write_text(TABLE)
    with pytest.raises(
        FileError, match=r"no file .*vote\.csv(.|\n)*found: .*votes\.csv(.|\n)*fix:"
    ):
        cw.read(tmp_path / "vote.csv")
    with pytest.raises(OSError, match="no file"):
        cw.read(tmp_path / "else" / "q.csv")


def test_a_folder_without_tables_is_an_error(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / ".hidden.csv").write_text(TABLE)
    with pytest.raises(FileError, match=r"has no file of annotations(.|\n)*give the file itself"):
        cw.read(tmp_path)


def test_a_folder_of_tables_is_read_as_one(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"task,worker,label\n7,2,3\n"))
    annotations = cw.read(tmp_path)
    assert annotations.tasks.tolist() == [1, 7]
    assert annotations.notes[0] == "read as long, 2 files"


def test_what_accompanies_data_is_not_read(tmp_path):
    pytest.importorskip("pyarrow")
    one = pd.DataFrame({"task": [9], "worker": [2], "label": [3]})
    for name in ("part-0.parquet", "_metadata.parquet", ".part-0.parquet"):
        one.to_parquet(tmp_path / name)
    for name in ("_votes.csv", "README.txt", "license.TXT"):
        (tmp_path / name).write_text(TABLE)
    found = [Path(file.name).name for file in find_files(tmp_path)]
    assert found == ["_votes.csv", "part-0.parquet"]


def test_files_of_a_folder_must_be_of_one_format(tmp_path):
    (tmp_path / "ann.csv").write_text(TABLE)
    (tmp_path / "bob.csv").write_text("task,label\n1,3\n")
    with pytest.raises(ValueError, match=r"bob\.csv has no column for the worker"):
        cw.read(tmp_path)


def test_a_forbidden_file(tmp_path, unprivileged):
    path = tmp_path / "votes.csv"
    path.write_text(TABLE)
    path.chmod(0)
    with unprivileged(), pytest.raises(FileError, match=r"cannot be read(.|\n)*permission"):
        cw.read(path)


def test_what_the_system_refuses_is_a_file_error(tmp_path, monkeypatch):
    path = tmp_path / "votes.csv"
    path.write_text(TABLE)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(
        FileError, match=r"cannot be read(.|\n)*Permission denied(.|\n)*permissions"
    ):
        cw.read(path)


def test_a_name_that_is_no_path():
    with pytest.raises(FileError, match="There is no file"):
        cw.read("votes\0.csv")


def test_streams_pipes_and_text(tmp_path):
    expected = cw.read(io.BytesIO(TABLE.encode()))
    assert cw.read(io.StringIO(TABLE)).equals(expected)
    assert cw.read(io.BytesIO(gzip.compress(TABLE.encode()))).equals(expected)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TABLE,))
    writer.start()
    assert cw.read(pipe).equals(expected)
    writer.join()


def test_gzip_is_known_by_its_bytes(tmp_path):
    path = tmp_path / "votes.csv"  # no .gz at the end
    path.write_bytes(gzip.compress(TABLE.encode()))
    assert cw.read(path).n_annotations == 2


def test_a_gzip_cut_short(tmp_path):
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode() * 50)[:-12])
    with pytest.raises(FormatError, match=r"cannot be unpacked(.|\n)*cut short"):
        cw.read(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_damaged_zip(tmp_path, method):
    path = tmp_path / "votes.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("votes.csv", TABLE * 20)
    data = bytearray(path.read_bytes())
    data[60:70] = b"0123456789"
    path.write_bytes(bytes(data))
    with pytest.raises(FormatError, match="cannot be unpacked"):
        cw.read(path)


def test_a_zip_without_tables(tmp_path):
    path = tmp_path / "votes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Readme.txt", "nothing here")
        archive.writestr("__MACOSX/._votes.csv", "nor here")
    with pytest.raises(FormatError, match="an archive without a file of annotations"):
        cw.read(path)


def test_packed_twice(tmp_path):
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(gzip.compress(b"task,worker,label\n1,2,3\n")))
    with pytest.raises(FormatError, match=r"packed twice(.|\n)*unpack it once"):
        cw.read(path)


def test_a_sheet_of_another_kind(tmp_path):
    path = tmp_path / "votes.ods"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    with pytest.raises(FormatError, match=r"an OpenDocument file(.|\n)*save its sheet as CSV"):
        cw.read(path)


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "an old Excel workbook"),
        (b"\n<!DOCTYPE HTML><html>", "a web page, perhaps one that asks to log in"),
        (b'\xef\xbb\xbf<?xml version="1.0"?><annotations/>', "XML, as of CVAT"),
        (b"%PDF-1.7", "a PDF"),
    ],
)
@pytest.mark.parametrize("name", ["x", "x.csv", "x.json"])
def test_what_is_known_and_not_read(start, what, name, tmp_path):
    (tmp_path / name).write_bytes(start)
    with pytest.raises(FormatError, match=rf"is {what}(.|\n)*fix:"):
        cw.read(tmp_path / name)


@pytest.mark.parametrize("kind", ["gz", "zip"])
def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(unpack, "ROOM", 1 << 16)
    path = tmp_path / f"bomb.csv.{kind}"
    zeros = b"0" * (1 << 22)
    if kind == "gz":
        path.write_bytes(gzip.compress(zeros))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", zeros)
    with pytest.raises(FormatError, match=r"unpacks to more than(.|\n)*unpack it first"):
        cw.read(path)


def test_many_small_bombs_in_one_archive(tmp_path, monkeypatch):
    monkeypatch.setattr(unpack, "ROOM", 1 << 20)
    path = tmp_path / "bombs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(8):
            archive.writestr(f"{number}.csv", b"0" * (1 << 18))
    with pytest.raises(FormatError, match="unpacks to more than"):
        find_files(path)


def test_names_of_files():
    assert File("folder/ann.jsonl.gz").stem == "ann"
    assert File("folder/Ann.JSONL.gz").suffix == ".jsonl"


def test_an_empty_path_is_refused(tmp_path, monkeypatch):
    (tmp_path / "votes.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=r"path is empty(.|\n)*the path of a file"):
        cw.read("")
    assert cw.read(".").n_annotations == 2
