"""What is written reads back the same, and a failed write leaves what was there."""

import gzip
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import crowdwise as cw
from crowdwise import Annotations
from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.errors import (
    AnnotationError,
    FileError,
    FormatError,
    MissingExtraError,
    ParameterError,
)
from crowdwise.io import consensus_frame, write_annotations, write_labels
from crowdwise.io.write import TABLES, WRITERS, write_json

VOTES = {"q1": {"ann": "yes", "bob": "no"}, "q2": {"bob": "no", "cy": "?"}}


@pytest.fixture
def votes():
    return Annotations.from_dict(VOTES)


@pytest.fixture
def rich():
    """Integer names, weights, times and gold."""
    frame = pd.DataFrame(
        {
            "task": [7, 7, 9],
            "worker": [1, 2, 1],
            "label": ["x", "y", "x"],
            "weight": [0.5, 1.0, 0.25],
            "time": pd.to_datetime(["2024-05-01 10:00", "2024-05-01 11:00", "2024-05-01 12:30"]),
            "gold": ["x", "x", None],
        }
    )
    return Annotations.from_frame(frame, weight="weight", time="time", gold="gold")


@pytest.mark.parametrize(
    "name", ["v.csv", "v.tsv", "v.json", "v.jsonl", "v.parquet", "v.csv.gz", "v"]
)
def test_long_files_read_back_the_same(name, rich, tmp_path):
    write_annotations(tmp_path / name, rich)
    assert cw.read(tmp_path / name).equals(rich)


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "parquet", "wide", "nested"])
def test_every_kind_reads_back_the_same(kind, votes, tmp_path):
    write_annotations(tmp_path / "votes.dat", votes, kind)
    said = kind if kind == "wide" else None  # too small a table to tell
    assert cw.read(tmp_path / "votes.dat", said).equals(votes)


def test_a_snorkel_matrix_keeps_the_numbers(votes, tmp_path):
    write_annotations(tmp_path / "L.npy", votes)
    assert np.load(tmp_path / "L.npy").tolist() == [[2, 1, -1], [-1, 1, 0]]
    again = cw.read(tmp_path / "L.npy")
    assert again.label.tolist() == votes.label.tolist()
    assert again.indptr.tolist() == votes.indptr.tolist()


def test_soft_labels_read_back(tmp_path):
    soft = [[0.25, 0.75], [1.0, 0.0]]
    annotations = Annotations.from_codes([0, 1], [0, 0], [1, 0], classes=["a", "b"], soft=soft)
    write_annotations(tmp_path / "v.csv", annotations)
    assert cw.read(tmp_path / "v.csv").equals(annotations)


# Without digits, because text that is all whole numbers comes back as integers.
letters = st.characters(codec="utf-8", exclude_characters="0123456789\0")
names = st.text(letters, min_size=1, max_size=4)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        names, st.dictionaries(names, names, min_size=1, max_size=3), min_size=1, max_size=4
    ),
    st.sampled_from(["csv", "tsv", "jsonl", "nested"]),
)
@pytest.mark.filterwarnings("ignore:Labels .* are taken as missing when they are read back")
def test_any_names_read_back(triples, labels, kind):
    annotations = Annotations.from_dict(labels, missing=None)
    stream = io.BytesIO()
    write_annotations(stream, annotations, kind)
    stream.seek(0)
    stream.name = f"votes.{'json' if kind == 'nested' else kind}"
    again = cw.read(stream, kind if kind == "nested" else "long", missing=None)
    assert sorted(triples(again)) == sorted(triples(annotations))


@pytest.mark.parametrize("kind", ["csv", "tsv", "wide"])
def test_a_carriage_return_reads_back(kind, tmp_path):
    votes = Annotations.from_dict({"a\rb": {"u": "z", "w\rv": "x\ry"}, "c": {"u": "z"}})
    path = tmp_path / "votes.csv"
    write_annotations(path, votes, kind)
    assert cw.read(path, "wide" if kind == "wide" else "long").equals(votes)


def test_a_carriage_return_in_labels_reads_back(tmp_path):
    frame = pd.DataFrame({"task": ["a\rb", "c"], "label": [None, "x"], "p\rq": [0.5, 0.25]})
    for part in (frame, frame.iloc[1:, 1:].reset_index(drop=True)):
        write_labels(tmp_path / "l.csv", part)
        assert pd.read_csv(tmp_path / "l.csv").equals(part)


@pytest.mark.parametrize("kind", ["wide", "nested", "snorkel"])
def test_what_a_layout_cannot_hold_is_reported(kind, rich, tmp_path):
    with pytest.warns(UserWarning, match=r"cannot hold weight, time, gold: left out(.|\n)*csv"):
        write_annotations(tmp_path / "v", rich, kind)


@pytest.mark.parametrize("kind", ["csv", "tsv", "wide", "nested"])
def test_names_that_become_the_same_text_are_reported(kind, tmp_path):
    mixed = Annotations.from_dict({1: {"a": "x"}, "1": {"a": "y"}, "q": {"a": "y"}})
    with pytest.warns(
        UserWarning, match=r"names in task become the same text(.|\n)*1 and '1'(.|\n)*jsonl"
    ):
        write_annotations(tmp_path / "v", mixed, kind)
    write_annotations(tmp_path / "v.jsonl", mixed)
    assert cw.read(tmp_path / "v.jsonl").equals(mixed)


def test_tasks_that_become_the_same_text_are_reported(tmp_path):
    frame = pd.DataFrame({"task": [1, "1", ("a", 2), None], "label": ["x", "y", "x", "y"]})
    with pytest.warns(UserWarning, match="names in task become the same text"):
        write_labels(tmp_path / "l.csv", frame)


def test_an_empty_name_cannot_be_text(tmp_path):
    annotations = Annotations.from_dict({"q": {"ann": "", "bob": "x"}}, missing=None)
    back = "Labels '' are taken as missing when they are read back"
    with (
        pytest.warns(UserWarning, match=back),
        pytest.raises(AnnotationError, match="An empty name cannot be written"),
    ):
        write_annotations(tmp_path / "v.csv", annotations)
    assert list(tmp_path.iterdir()) == []
    with pytest.warns(UserWarning, match=back):
        write_annotations(tmp_path / "v.json", annotations)
    assert cw.read(tmp_path / "v.json", missing=None).equals(annotations)


def test_repeats_do_not_fit_a_wide_table(tmp_path):
    annotations = Annotations.from_codes([0, 0], [0, 0], [0, 1])
    for kind in ("wide", "nested", "snorkel"):
        with pytest.raises(AnnotationError, match="labeled the same task again"):
            write_annotations(tmp_path / "v", annotations, kind)


def test_streams_of_text_and_bytes(votes):
    text, data = io.StringIO(), io.BytesIO()
    write_annotations(text, votes)
    write_annotations(data, votes)
    assert text.getvalue() == data.getvalue().decode()
    assert text.getvalue().splitlines()[:2] == ["task,worker,label", "q1,ann,yes"]
    screen = io.TextIOWrapper(io.BytesIO())
    write_annotations(screen, votes, "parquet")
    assert screen.buffer.getvalue()[:4] == b"PAR1"


def test_gzip_is_the_same_every_time(votes, tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_annotations(tmp_path / name, votes)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert (tmp_path / "a.csv.gz").read_bytes()[4:8] == b"\0\0\0\0"  # no time of writing
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"task,")


def test_unknown_kinds_list_the_known_ones(votes, tmp_path):
    with pytest.raises(ParameterError, match=r"suffix '\.xlsx'(.|\n)*csv, tsv"):
        write_annotations(tmp_path / "v.xlsx", votes)
    with pytest.raises(ParameterError, match=r"format='wide'(.|\n)*csv, tsv"):
        write_labels(tmp_path / "v.csv", pd.DataFrame(), "wide")
    assert set(TABLES) < set(WRITERS)


def test_consensus_of_the_fitted_tasks(votes):
    model = MajorityVote().fit(votes, gold={"q1": "no"})
    frame = consensus_frame(model, votes, probabilities=True)
    assert frame.columns.tolist() == [
        "task", "label", "confidence", "votes", "proba_?", "proba_no", "proba_yes",
    ]  # fmt: skip
    assert frame.iloc[0].tolist() == ["q1", "no", 1.0, 2, 0.0, 1.0, 0.0]
    assert frame.iloc[1].tolist() == ["q2", "?", 0.5, 2, 0.5, 0.5, 0.0]


def test_consensus_of_other_tasks(votes):
    model = DawidSkene().fit(votes)
    frame = consensus_frame(model, votes[[1]])
    assert frame["task"].tolist() == ["q2"]
    assert frame["label"].tolist() == model.predict(votes[[1]]).tolist()
    assert frame["confidence"][0] == model.predict_proba(votes[[1]]).to_numpy().max()


@pytest.mark.parametrize("name", ["l.csv", "l.tsv", "l.json", "l.jsonl", "l.parquet"])
def test_labels_are_written_as_the_name_ends(name, votes, tmp_path):
    frame = consensus_frame(MajorityVote(ties="abstain").fit(votes), votes)
    write_labels(tmp_path / name, frame)
    readers = {
        "csv": pd.read_csv,
        "tsv": lambda path: pd.read_csv(path, sep="\t"),
        "json": pd.read_json,
        "jsonl": lambda path: pd.read_json(path, lines=True),
        "parquet": pd.read_parquet,
    }
    again = readers[name.split(".")[1]](tmp_path / name)
    assert again.columns.tolist() == ["task", "label", "confidence", "votes"]
    assert again["label"].isna().all()
    assert again["confidence"].tolist() == [0.5, 0.5]


def test_numbers_lose_nothing(tmp_path):
    frame = pd.DataFrame(
        {"task": [2**62 + 1], "label": ["x"], "confidence": [0.1 + 0.2], "votes": [3]}
    )
    write_labels(tmp_path / "l.jsonl", frame)
    assert json.loads((tmp_path / "l.jsonl").read_text()) == frame.iloc[0].to_dict()


def test_what_is_missing_is_null(tmp_path):
    write_labels(tmp_path / "l.json", pd.DataFrame({"task": [1], "confidence": [float("nan")]}))
    assert json.loads((tmp_path / "l.json").read_text()) == [{"task": 1, "confidence": None}]


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "labels.csv"
    path.write_text("precious")
    frame = pd.DataFrame({"task": [1]})

    def fail(_, file, **__):
        file.write("half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(FileError, match=r"cannot be written(.|\n)*No space left"):
        write_labels(path, frame)
    assert path.read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["labels.csv"]


def test_names_of_two_types_do_not_fit_parquet(tmp_path):
    annotations = Annotations.from_dict({1: {"a": "x"}, "q": {"a": "y"}})
    with pytest.raises(FormatError, match=r"cannot be written to Parquet(.|\n)*CSV or JSON"):
        write_annotations(tmp_path / "v.parquet", annotations)
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_pyarrow(votes, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"crowdwise\[parquet\]"):
        write_annotations(tmp_path / "v.parquet", votes)


def test_json_of_anything(tmp_path):
    write_json(tmp_path / "predictions.json", [{"data": {"task": "ä"}}])
    assert json.loads((tmp_path / "predictions.json").read_text()) == [{"data": {"task": "ä"}}]


@pytest.mark.parametrize("kind", ["csv", "tsv", "json"])
def test_tables_written_in_parts_are_those_written_at_once(kind, monkeypatch):
    frame = pd.DataFrame({"task": [1, 2, 3], "label": ["a\nb", 'é"', None], "p": [0.5, None, 1.0]})
    whole = io.StringIO()
    if kind == "json":
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
        json.dump(records, whole, indent=1, ensure_ascii=False)
        whole.write("\n")
    else:
        frame.to_csv(whole, index=False, lineterminator="\n", sep="," if kind == "csv" else "\t")
    monkeypatch.setattr("crowdwise.io.write.ROWS", 2)
    for part in (frame, frame.iloc[:0]):
        parts = io.StringIO()
        write_labels(parts, part, kind)
        if len(part):
            assert parts.getvalue() == whole.getvalue()
        else:
            assert parts.getvalue().strip() in ("task,label,p", "task\tlabel\tp", "[]")
