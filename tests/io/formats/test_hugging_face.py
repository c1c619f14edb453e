"""Lists of annotators and annotations in the cells of a data set."""

import pandas as pd
import pytest

import crowdwise as cw
from crowdwise.errors import FormatError

ROWS = [("q1", "ann", 2), ("q1", "bob", 0), ("q2", "cy", 1)]
LE_WI_DI = [(7, "Ann1", 0), (7, "Ann2", 1), (7, "Ann3", 0), (8, "Ann2", 1), (8, "Ann3", 1)]


def test_reads_lists(export, triples):
    annotations = export("hugging_face.jsonl")
    assert triples(annotations) == ROWS
    assert annotations.notes == (
        "read as hugging_face",
        "task from 'id'",
        "worker from 'annotators'",
        "label from 'annotations'",
    )


def test_reads_lists_in_parquet(exports, tmp_path, triples):
    path = tmp_path / "data.parquet"
    pd.read_json(exports / "hugging_face.jsonl", lines=True).to_parquet(path)
    assert triples(cw.read(path)) == ROWS


@pytest.mark.parametrize("text", ["ann,bob|2,0|cy|1", "['ann', 'bob']|[2, 0]|['cy']|[1]"])
def test_reads_lists_written_as_text(text, tmp_path, triples):
    cells = text.split("|")
    path = tmp_path / "data.csv"
    path.write_text(
        "id;annotators;labels\n" + f'q1;"{cells[0]}";"{cells[1]}"\nq2;"{cells[2]}";"{cells[3]}"\n'
    )
    assert triples(cw.read(path)) == ROWS


@pytest.mark.parametrize("name", ["le_wi_di.json", "le_wi_di_2025.json"])
def test_reads_le_wi_di(name, export, triples):
    assert triples(export(name)) == LE_WI_DI


def test_reads_lists_inside_one_field(export, triples):
    assert triples(export("hatexplain.jsonl")) == [("q1", 203, 2), ("q1", 204, 0), ("q2", 203, 1)]


def test_reads_a_list_of_pairs(triples):
    pairs = [{"annotator_id": "ann", "label": 2}, {"annotator_id": "bob", "label": 0}]
    rows = [{"id": "q1", "annotators": pairs}]
    assert triples(cw.read(rows, "hugging_face")) == ROWS[:2]


def test_numbers_the_rows_without_an_id(triples):
    rows = [
        {"annotators": ["a", "b"], "labels": ["x", "y"]},
        {"annotators": ["a"], "labels": ["y"]},
    ]
    annotations = cw.read(rows, "hugging_face")
    assert triples(annotations) == [(0, "a", "x"), (0, "b", "y"), (1, "a", "y")]
    assert "task from the row number" in annotations.notes


@pytest.mark.parametrize(
    "row",
    [
        {"annotators": ["a", "b"], "labels": ["x"]},
        {"annotators": [{"name": "a"}]},
        {"annotators": {"name": ["a"]}},
        {"annotators": ["a"], "labels": 3},
    ],
)
def test_refuses_lists_that_do_not_fit(row):
    with pytest.raises(FormatError, match="do not match"):
        cw.read([row], "hugging_face")


def test_named_columns_overrule(triples):
    rows = [{"id": "q1", "who": ["a", "b"], "said": ["x", "y"], "key": 9}]
    annotations = cw.read(rows, "hugging_face", worker="who", label="said", task="key")
    assert triples(annotations) == [(9, "a", "x"), (9, "b", "y")]


def test_prints_of_arrays_are_lists(triples):
    rows = [{"id": "q1", "annotators": "[3 4]", "labels": "[1 0]"}]
    assert triples(cw.read(rows, "hugging_face")) == [("q1", 3, 1), ("q1", 4, 0)]
