"""Label matrices: arrays, and integers written as text."""

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.errors import FormatError

GRID = np.array([[1, -1, 0], [-1, 0, 0], [2, 1, -1], [-1, -1, -1]])
ROWS = [(0, 0, 1), (0, 2, 0), (1, 1, 0), (1, 2, 0), (2, 0, 2), (2, 1, 1)]


def test_reads_an_array(tmp_path, triples):
    np.save(tmp_path / "L.npy", GRID)
    annotations = cw.read(tmp_path / "L.npy")
    assert triples(annotations) == ROWS
    assert annotations.shape == (4, 3)  # the task without a label stays


def test_reads_integers_between_spaces(export, triples):
    assert triples(export("rodrigues.txt")) == ROWS


def test_reads_one_array_of_an_archive(tmp_path, triples):
    np.savez(tmp_path / "all.npz", L=GRID, Y=np.arange(4))
    assert triples(cw.read(tmp_path / "all.npz", question="L")) == ROWS
    with pytest.raises(FormatError, match=r"2 arrays(.|\n)*'L', 'Y'"):
        cw.read(tmp_path / "all.npz")


def test_reads_a_list_of_lists(triples):
    grid = [["a", None], ["b", "a"]]
    assert triples(cw.read(grid)) == [(0, 0, "a"), (1, 0, "b"), (1, 1, "a")]


def test_missing_can_be_another_value(tmp_path, triples):
    np.save(tmp_path / "L.npy", GRID)
    rows = triples(cw.read(tmp_path / "L.npy", missing=[0, -1]))
    assert rows == [(0, 0, 1), (2, 0, 2), (2, 1, 1)]
    as_text = triples(cw.read(tmp_path / "L.npy", missing=["0", "-1"]))
    assert as_text == rows


@pytest.mark.parametrize(
    "array", [np.arange(3), np.zeros((2, 2, 2)), np.zeros((2, 2), dtype="M8[s]")]
)
def test_refuses_other_shapes_and_types(array, tmp_path):
    np.save(tmp_path / "L.npy", array)
    with pytest.raises(FormatError, match="rows are tasks, columns are workers"):
        cw.read(tmp_path / "L.npy")


def test_refuses_objects_and_rectangles_that_are_none(tmp_path):
    np.save(tmp_path / "L.npy", np.array([{}, []], dtype=object))
    with pytest.raises(FormatError, match="cannot be read"):
        cw.read(tmp_path / "L.npy")
    with pytest.raises(FormatError, match="are not a table"):
        cw.read([[1, 2], [3]])
