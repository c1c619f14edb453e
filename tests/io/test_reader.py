"""The one door in: which format, which question, which columns."""

from dataclasses import replace

import pandas as pd
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.errors import FormatError, ParameterError
from crowdwise.io import reader
from crowdwise.io.formats import FORMATS, long

ROWS = [{"task": 1, "worker": "a", "label": "x"}, {"task": 1, "worker": "b", "label": "y"}]


def test_every_format_says_what_it_is():
    assert len({form.name for form in FORMATS}) == len(FORMATS)
    assert all(form.about and "\n" not in form.about for form in FORMATS)


@pytest.mark.parametrize("name", ["label_studio", "Label-Studio", "label studio"])
def test_names_of_formats_are_forgiving(name, export):
    assert export("label_studio.json", name, question="animal").n_annotations == 3


def test_an_unknown_format_lists_the_known_ones():
    with pytest.raises(
        ParameterError, match=r"format='excel' is unknown(.|\n)*label_studio(.|\n)*csv"
    ):
        cw.read("votes.xlsx", "excel")


def test_another_format_than_the_file_has(export):
    with pytest.raises(FormatError, match="no questions to read labels from"):
        export("long.csv", "argilla")


def test_what_trips_a_parser_up_is_an_error_about_the_file(monkeypatch):
    def trip(*_):
        raise KeyError("oops")

    changed = replace(long.FORMAT, parse=trip)
    monkeypatch.setattr(reader, "FORMATS", (changed,))
    with pytest.raises(FormatError, match=r"cannot be read as long(.|\n)*KeyError: 'oops'"):
        cw.read(ROWS)


def test_what_trips_a_detector_up_is_another_format(monkeypatch):
    def trip(_):
        raise TypeError

    broken = replace(long.FORMAT, name="broken", matches=trip)
    monkeypatch.setattr(reader, "FORMATS", (broken, *FORMATS))
    assert cw.read(ROWS).n_annotations == 2


def test_takes_what_is_in_memory():
    expected = cw.read(ROWS)
    assert expected.n_annotations == 2
    assert cw.read(pd.DataFrame(ROWS)).equals(expected)
    assert cw.read({"rows": ROWS}).equals(expected)
    assert cw.read(pl.DataFrame(ROWS)).equals(expected)
    assert cw.read(pl.DataFrame(ROWS).to_arrow()).equals(expected)
    with pytest.raises(ParameterError, match=r"A int cannot be read(.|\n)*a path"):
        cw.read(3)


def test_frames_with_twins_are_refused():
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["task", "worker", "label", "label"])
    with pytest.raises(FormatError, match="more than once"):
        cw.read(frame)


def test_frames_with_lists_in_cells():
    frame = pd.DataFrame({"id": [5], "annotators": [["a", "b"]], "labels": [["x", "y"]]})
    assert cw.read(frame).n_annotations == 2


def test_files_without_annotations_say_what_was_left_out():
    rows = [{"_input_hash": 1, "_session_id": "s", "accept": ["a"], "answer": "ignore"}]
    with pytest.raises(FormatError, match=r"has no annotations(.|\n)*answer 'ignore' left out: 1"):
        cw.read(rows, "prodigy")


def test_several_nested_files_keep_their_empty_tasks(tmp_path):
    (tmp_path / "a.json").write_text('{"1": {"ann": "x"}, "2": {}}')
    (tmp_path / "b.json").write_text('{"2": {"bob": "y"}, "3": {}}')
    annotations = cw.read(tmp_path)
    assert annotations.tasks.tolist() == [1, 2, 3]
    assert annotations.redundancy.tolist() == [1, 1, 0]


def test_declared_names_overrule_the_order_of_the_file(export):
    annotations = export("nested.json", tasks=[2, 1, 0], workers=["4", "3", "9"])
    assert annotations.tasks.tolist() == [2, 1, 0]
    assert annotations.workers.tolist() == ["4", "3", "9"]


@pytest.mark.parametrize("name", ["labelme", "sp_amt"])
def test_reads_real_crowds(name, real_crowd):
    import real_crowds

    crowd = real_crowd(name)
    folder = real_crowds.folder() / name
    file = next(path for path in folder.glob("annotations.csv*"))
    annotations = cw.read(file, repeats="last")
    assert annotations.n_annotations == crowd.annotations.n_annotations
    assert annotations.shape == crowd.annotations.shape
