"""Kinds of files: empty, JSON, JSONL, Parquet, arrays, and none of these."""

import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

import crowdwise as cw
from crowdwise.errors import FormatError, MissingExtraError
from crowdwise.io.document import File, Matrix, RecordTable, Table, Tree
from crowdwise.io.open import open_document
from crowdwise.io.text import TextTable

ROW = {"task": 1, "worker": 2, "label": 3}


def content(data, name="file", **options):
    return open_document(
        File(name, data=data if isinstance(data, bytes) else data.encode()), **options
    )


@pytest.mark.parametrize("data", [b"", b"  \n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("name", ["votes.csv", "votes.json", "votes.jsonl", "votes"])
def test_empty_files(data, name):
    with pytest.raises(FormatError, match="is empty"):
        content(data, name)


def test_a_header_without_rows(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n")
    with pytest.raises(FormatError, match=r"has no annotations(.|\n)*at least one row"):
        cw.read(path)


def test_one_column(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task\n1\n2\n")
    with pytest.raises(ValueError, match="no column for the worker"):
        cw.read(path)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (json.dumps([ROW]), RecordTable),
        (json.dumps(ROW) + "\n" + json.dumps(ROW), RecordTable),
        (json.dumps({"q": {"a": 1}}), Tree),
        ("[[1, 0]]", Matrix),
        ("task,worker,label\n1,2,3\n", TextTable),
        ("\ufeff" + json.dumps([ROW]), RecordTable),
    ],
)
def test_is_known_by_its_first_bytes(data, kind):
    assert isinstance(content(data), kind)


def test_a_list_in_a_file_that_should_have_lines():
    assert isinstance(content(json.dumps([ROW], indent=1), "votes.jsonl"), RecordTable)


def test_lines_in_a_file_that_should_be_one_value():
    assert len(content(f"{json.dumps(ROW)}\n\n{json.dumps(ROW)}\n", "votes.json").rows) == 2


@pytest.mark.parametrize(
    ("data", "name", "place"),
    [
        ('[{"task": 1,}]', "votes.json", "line 1, column 13"),
        ('{"task": 1}\n{"task": 2', "votes.jsonl", "line 2, column 11"),
        ('{"task": 1}\n[3]', "votes.jsonl", "line 2: a list, not an object"),
        ("[" * 100_000, "votes.json", "recursion"),
        ("[" * 100_000, "votes.jsonl", "recursion"),
        ('{"a": ' + "9" * 5000 + "}", "votes.json", "first: *Exceeds"),
        ("[1] [2]", "votes.json", "line 1, column 5: Extra data"),
    ],
)
def test_json_says_where_it_is_wrong(data, name, place):
    with pytest.raises(FormatError, match=rf"is not valid JSON(.|\n)*{place}"):
        content(data, name)


@pytest.mark.parametrize("data", ["[]", "{}", "null", "3", '"text"', "[1, 2]", '[{"a": 1}, 2]'])
def test_json_without_records(data):
    with pytest.raises(FormatError, match="a list of objects"):
        content(data, "votes.json")


def test_text_in_another_encoding():
    with pytest.raises(FormatError, match=r"looks like text in UTF-16(.|\n)*cut short"):
        content(json.dumps([ROW]).encode("utf-16")[:-1], "votes.json")


def test_binary_junk():
    with pytest.raises(FormatError, match=r"binary file of an unknown kind(.|\n)*parquet"):
        content(b"\x7fELF\0\0\0\1\0\0", "votes")


def test_parquet_reads_only_what_is_asked_for():
    stream = io.BytesIO()
    frame = pd.DataFrame({"task": [1, None], "worker": ["a", "b"], "label": [["x"], None]})
    frame.to_parquet(stream)
    parsed = content(stream.getvalue())
    assert parsed.columns == ["task", "worker", "label"]
    assert parsed.frame(["worker"]).to_dict("list") == {"worker": ["a", "b"]}
    assert parsed.records() == parsed.sample
    assert parsed.sample[1] == {"task": None, "worker": "b", "label": None}


def test_parquet_keeps_types(tmp_path):
    path = tmp_path / "votes.parquet"
    frame = pd.DataFrame({"item": ["1", "1"], "worker": [7, 8], "label": pd.array([2**60, None])})
    frame.to_parquet(path)
    annotations = cw.read(path)
    assert annotations.tasks.tolist() == ["1"]
    assert annotations.workers.tolist() == [7, 8]
    assert annotations.classes.tolist() == [2**60]


def test_parquet_keeps_each_distinct_text_once():
    stream = io.BytesIO()
    pd.DataFrame({"task": ["b", "a", "b", None], "label": [1, 2, 3, 4]}).to_parquet(stream)
    read = content(stream.getvalue(), "votes.parquet").frame(["task", "label"])
    assert read["task"].cat.categories.tolist() == ["b", "a"]
    assert read["task"].tolist()[:3] == ["b", "a", "b"]
    assert pd.isna(read["task"][3])
    assert read["label"].tolist() == [1, 2, 3, 4]


def test_an_empty_parquet_file():
    stream = io.BytesIO()
    pd.DataFrame({"task": [], "worker": [], "label": []}).to_parquet(stream)
    stream.seek(0)
    assert content(stream.getvalue()).sample == []
    with pytest.raises(FormatError, match="has no annotations"):
        cw.read(stream)


def test_a_damaged_parquet_file():
    with pytest.raises(FormatError, match=r"cannot be read(.|\n)*a complete Parquet file"):
        content(b"PAR1 and then nothing PAR1")


def test_parquet_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r'pip install "crowdwise\[parquet\]"'):
        content(b"PAR1")


def test_twins_in_parquet_are_refused():
    import pyarrow as pa
    from pyarrow import parquet

    stream = io.BytesIO()
    columns = [pa.array([1])] * 4
    parquet.write_table(pa.table(columns, names=["task", "worker", "label", "label"]), stream)
    stream.seek(0)
    with pytest.raises(FormatError, match="column 'label' more than once"):
        cw.read(stream)


def test_numbers_in_text_are_a_matrix_only_if_all_lines_fit():
    assert isinstance(content("1 -1\n0 2\n", "answers.txt"), Matrix)
    assert isinstance(content("1 -1\n0 2 3\n", "answers.txt"), TextTable)
    assert isinstance(content("task worker\n", "answers.txt"), TextTable)


def test_the_kind_of_file_can_be_given(tmp_path):
    path = tmp_path / "votes.dat"
    path.write_text("task\tworker\tlabel\n1\t2\t3\n")
    assert cw.read(path, "tsv").n_annotations == 1
    with pytest.raises(FormatError, match="not valid JSON"):
        cw.read(path, "json")


def test_arrays():
    stream = io.BytesIO()
    np.save(stream, np.eye(2, dtype=int))
    assert content(stream.getvalue()).array.tolist() == [[1, 0], [0, 1]]


def test_a_table_must_say_how_to_read_its_rows():
    with pytest.raises(TypeError, match="abstract class Table"):
        Table("name", "stem")
