"""The file itself: what goes in comes out, and nothing else is taken for it."""

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch
from numpy.testing import assert_array_equal

import crowdwise
from crowdwise.errors import (
    CrowdwiseError,
    FileError,
    FormatError,
    ParameterError,
)
from crowdwise.persist import container
from crowdwise.persist.container import Content, read_container, write_container


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.safetensors"
    write_container(
        path, Content('{"a": "é"}', {"x": np.arange(3.0), "y": np.array([True, False])})
    )
    return path


@pytest.mark.parametrize(
    "array",
    [
        np.array(2.5),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.arange(6, dtype=np.uint8).reshape(2, 3),
        np.array([-(2**62), 7]),
        np.array([np.nan, -np.inf, 5e-324]),
        np.arange(4, dtype=np.float32),
    ],
    ids=str,
)
def test_arrays_come_back_as_they_were(array, tmp_path):
    write_container(tmp_path / "x", Content("{}", {"a": array}))
    found = read_container(tmp_path / "x").arrays["a"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert_array_equal(found, array)
    found[...] = 0  # its own memory, to be written to


def test_text_and_writer_come_back(file):
    content = read_container(file)
    assert content.text == '{"a": "é"}'
    assert content.writer == crowdwise.__version__


class Bomb:
    """What a malicious pickle does: it runs something when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def packed(write_to):
    stream = io.BytesIO()
    write_to(stream)
    return stream.getvalue()


FOREIGN = {
    "nothing": b"",
    "a few bytes": b"crowd",
    "random bytes": np.random.default_rng(0).bytes(5000),
    "text": b"task,worker,label\n1,2,3\n" * 50,
    "numpy": packed(lambda stream: np.savez(stream, a=np.ones(3))),
    "torch": packed(lambda stream: torch.save({"a": torch.ones(3)}, stream)),
    "other tensors": safetensors.numpy.save({"a": np.ones(3)}),
    "others' metadata": safetensors.numpy.save({"a": np.ones(3)}, {"format": "pt"}),
    "a header of 2^60 bytes": (2**60).to_bytes(8, "little") + b"{}",
    "a header of 99 MB, cut off": (99_000_000).to_bytes(8, "little") + b"{}" * 50,
    "a header that is a list": (2).to_bytes(8, "little") + b"[]",
    "a header nested deeply": (50_000).to_bytes(8, "little") + b'{"a":' * 10_000,
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_foreign_file_is_one_clear_error(data, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"is not a complete crowdwise model.*\n.*\n.*\n  fix:"):
        crowdwise.load(path)


def test_tensors_of_others_are_distinguished_from_damage(tmp_path):
    for metadata in (None, {"format": "pt", "format_version": "1"}):
        (tmp_path / "x").write_bytes(safetensors.numpy.save({"a": np.ones(3)}, metadata))
        with pytest.raises(FormatError, match="they are not marked as a crowdwise model"):
            read_container(tmp_path / "x")


def test_a_pickle_is_refused_and_not_run(tmp_path):
    path, mark = tmp_path / "model", tmp_path / "ran"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Bomb(mark), protocol))
        with pytest.raises(FormatError):
            crowdwise.load(path)
    assert not mark.exists()


def test_a_file_cut_off_anywhere_is_refused(file):
    data = file.read_bytes()
    for size in range(len(data)):
        file.write_bytes(data[:size])
        with pytest.raises(FormatError):
            read_container(file)
    file.write_bytes(data + b"\0")
    with pytest.raises(FormatError):
        read_container(file)


def test_no_changed_byte_goes_unnoticed(file):
    data, whole = bytearray(file.read_bytes()), read_container(file)
    for place in range(len(data)):
        for flip in (1, 0x20):
            data[place] ^= flip
            file.write_bytes(data)
            data[place] ^= flip
            try:
                found = read_container(file)
            except CrowdwiseError:
                continue
            # spaces that pad the header, say: the contents are the same
            assert found.text == whole.text
            assert found.arrays.keys() == whole.arrays.keys()
            for name, array in whole.arrays.items():
                assert_array_equal(found.arrays[name], array)


def test_a_newer_format_asks_for_a_newer_version(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "VERSION", 2)
    write_container(tmp_path / "x", Content("{}", {}, writer="9.0"))
    monkeypatch.undo()
    with pytest.raises(FormatError, match=r"format 2, written by crowdwise 9\.0(.|\n)*upgrade"):
        read_container(tmp_path / "x")


@pytest.mark.parametrize("number", ["", "0", "-1", "one", "²", "1" * 5000])
def test_a_format_that_is_no_number_is_refused(number, tmp_path):
    metadata = {"format": container.FORMAT, "format_version": number}
    (tmp_path / "x").write_bytes(safetensors.numpy.save({}, metadata))
    with pytest.raises(FormatError):
        read_container(tmp_path / "x")


def test_a_missing_file_and_a_folder_are_file_errors(tmp_path):
    with pytest.raises(FileError, match="There is no file"):
        crowdwise.load(tmp_path / "none")
    with pytest.raises(FileError, match="is a folder"):
        crowdwise.load(tmp_path)


def test_a_file_that_may_not_be_read_is_a_file_error(file, unprivileged):
    file.chmod(0)
    with unprivileged(), pytest.raises(FileError, match="cannot be read"):
        read_container(file)


def test_a_write_that_fails_keeps_what_was_there(file, monkeypatch):
    before = file.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.numpy, "save", lambda *_: memoryview(b"half"))
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(FileError, match="cannot be written"):
        write_container(file, Content("{}", {}))
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_more_text_than_a_header_holds_is_refused_in_time(file, monkeypatch):
    before = file.read_bytes()
    monkeypatch.setattr(container, "MOST_TEXT", 10)
    with pytest.raises(ParameterError, match="11 characters"):
        write_container(file, Content("x" * 11, {}))
    assert file.read_bytes() == before
