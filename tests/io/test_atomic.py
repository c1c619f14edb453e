"""Files appear whole or not at all."""

import os
import threading
from pathlib import Path

import pytest

from crowdwise.errors import FileError
from crowdwise.io.atomic import replace_file


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "labels.csv"
    for text in ("one", "two\r\n"):
        with replace_file(path) as file:
            file.write(text)
        assert path.read_bytes() == text.encode()
    assert [p.name for p in tmp_path.iterdir()] == ["labels.csv"]


def test_nothing_is_there_before_all_is_written(tmp_path):
    path = tmp_path / "labels.csv"
    with replace_file(path, binary=True) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_keeps_what_was_there_if_anything_goes_wrong(tmp_path, error):
    path = tmp_path / "labels.csv"
    path.write_text("precious")

    def write_half():
        with replace_file(path) as file:
            file.write("half")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["labels.csv"]


def test_keeps_permissions_and_follows_links(tmp_path):
    path, link = tmp_path / "labels.csv", tmp_path / "latest.csv"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    with replace_file(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_new_files_have_the_usual_permissions(tmp_path):
    mask = os.umask(0o022)
    try:
        with replace_file(tmp_path / "labels.csv") as file:
            file.write("x")
    finally:
        os.umask(mask)
    assert (tmp_path / "labels.csv").stat().st_mode & 0o777 == 0o644


def test_writes_straight_to_a_pipe(tmp_path):
    pipe, seen = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: seen.append(pipe.read_text()))
    reader.start()
    with replace_file(pipe) as file:
        file.write("through")
    reader.join()
    assert seen == ["through"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match=r"cannot be written(.|\n)*No such file(.|\n)*fix:"):
        replace_file(tmp_path / "no" / "labels.csv").__enter__()


def test_a_folder_in_the_way(tmp_path):
    with pytest.raises(FileError, match="a folder has this name"):
        replace_file(tmp_path).__enter__()


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(FileError, match="Permission denied"):
        replace_file(tmp_path / "labels.csv").__enter__()


def test_an_error_of_ours_stays_as_it_is(tmp_path):
    with pytest.raises(FileError, match=r"^mine$"), replace_file(tmp_path / "a"):
        raise FileError("mine")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk():
    with (
        pytest.raises(FileError, match=r"No space left(.|\n)*fix:.*free some space"),
        replace_file(Path("/dev/full")) as file,
    ):
        file.write("too much")
