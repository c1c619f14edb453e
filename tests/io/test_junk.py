"""Whatever bytes a file holds, reading it gives annotations or one of our errors."""

import gzip
import io
import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import crowdwise as cw
from crowdwise import CrowdwiseError
from crowdwise.io import reader, recognize

EXPORTS = sorted(p for p in (Path(__file__).parent / "exports").rglob("*") if p.is_file())
TREES = [p for p in EXPORTS if p.suffix in (".json", ".jsonl")]
SUFFIXES = [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".npy", ".txt", ".gz", ".zip", ""]
WORDS = [
    "task", "worker", "label", "id", "text", "data", "annotations", "annotators", "result", "value",
    "from_name", "choices", "completed_by", "answer", "accept", "_input_hash", "_session_id",
    "responses", "fields", "q.responses", "q.responses.users", "user_id", "weak_labels", "labels",
    "annotator", "annotation_id", "lead_time", "HITId", "WorkerId", "Answer.q", "Answer.q.a",
    "Answer.taskAnswers", "SubmitTime", "_unit_id", "_worker_id", "mood", "mood_gold", "_golden",
    "OUTPUT:a", "INPUT:b", "ASSIGNMENT:worker_id", "time", "gold", "weight", "proba_a", "",
]  # fmt: skip
EXAMPLES = settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow], derandomize=True)

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4),
    st.sampled_from(["accept", "a,b", "[1]", "{}", "true", "2024-05-01"]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=12,
)
cells = st.one_of(st.sampled_from(["", "1", "0", "a", "1.0", '"', "true"]), st.text(max_size=3))


class Named(io.BytesIO):
    """Bytes that pretend to be a file of some name."""

    def __init__(self, data, name):
        super().__init__(data)
        self.name = name


def survives(data, suffix, **options):
    """Read the bytes; anything but annotations or our own error escapes."""
    with suppress(CrowdwiseError):
        annotations = cw.read(Named(data, "junk" + suffix), **options)
        assert annotations.indptr[-1] == annotations.n_annotations


@pytest.fixture(autouse=True)
def without_a_net(monkeypatch):
    """Let errors of the parsers through that ``read`` would word as errors of the file."""
    monkeypatch.setattr(reader, "MALFORMED", ())
    monkeypatch.setattr(recognize, "MALFORMED", ())


@pytest.fixture(autouse=True)
def little_room(monkeypatch):
    monkeypatch.setattr("crowdwise.io.unpack.ROOM", 1 << 20)


@EXAMPLES
@given(st.binary(max_size=200), st.sampled_from(SUFFIXES))
def test_any_bytes(data, suffix):
    survives(data, suffix)


@EXAMPLES
@given(
    st.sampled_from([b"\x1f\x8b\x08", b"PK\x03\x04", b"PAR1", b"\x93NUMPY\x01\x00"]), st.binary()
)
def test_bytes_that_begin_like_a_known_file(start, data):
    survives(start + data, "")


@EXAMPLES
@given(st.data())
def test_exports_with_bytes_changed(data):
    path = data.draw(st.sampled_from(EXPORTS))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, max(len(content) - 1, 0)))
        stop = start + data.draw(st.integers(0, 6))
        content[start:stop] = data.draw(
            st.binary(max_size=4) | st.sampled_from([b'"', b",", b"\n"])
        )
    packed = data.draw(st.booleans())
    survives(gzip.compress(bytes(content)) if packed else bytes(content), path.suffix)


def packed_files():
    """Small files of the kinds that are not text."""
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "y", None]})
    lists = pd.DataFrame({"id": [1, 2], "annotators": [["a", "b"], ["a"]], "labels": [[1, 0], [1]]})
    files = {name: io.BytesIO() for name in ("long.parquet", "lists.parquet", "a.npy", "a.npz")}
    frame.to_parquet(files["long.parquet"])
    lists.to_parquet(files["lists.parquet"])
    np.save(files["a.npy"], np.array([[1, -1], [0, 2]]))
    np.savez_compressed(files["a.npz"], a=np.array([[1, -1], [0, 2]]))
    return [(Path(name).suffix, stream.getvalue()) for name, stream in files.items()]


PACKED = packed_files()


@EXAMPLES
@given(st.data())
def test_packed_files_with_bytes_changed(data):
    suffix, content = data.draw(st.sampled_from(PACKED))
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(0, 3))):
        changed[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    survives(bytes(changed[: data.draw(st.integers(len(content) // 2, len(content)))]), suffix)


@EXAMPLES
@given(st.data())
def test_exports_cut_short(data):
    path = data.draw(st.sampled_from(EXPORTS))
    content = path.read_bytes()
    size = data.draw(st.integers(0, len(content)))
    survives(content[:size], path.suffix)
    packed = gzip.compress(content)
    survives(packed[: data.draw(st.integers(0, len(packed)))], ".gz")


def replaced(tree, data):
    """The tree with one node, somewhere, replaced by junk."""
    if not isinstance(tree, dict | list) or not tree or data.draw(st.integers(0, 5)) == 0:
        return data.draw(values)
    copy = tree.copy()
    place = data.draw(st.sampled_from(sorted(tree) if isinstance(tree, dict) else range(len(tree))))
    copy[place] = replaced(tree[place], data)
    return copy


@EXAMPLES
@given(st.data())
def test_exports_with_a_node_replaced(data):
    path = data.draw(st.sampled_from(TREES))
    text = path.read_text()
    if path.suffix == ".jsonl":
        tree = [json.loads(line) for line in text.splitlines()]
    else:
        tree = json.loads(text)
    changed = replaced(tree, data)
    question = data.draw(st.sampled_from([None, "animal", "mood", "POSITIVE"]))
    survives(json.dumps(changed).encode(), ".json", question=question)


@EXAMPLES
@given(values)
def test_any_json(value):
    survives(json.dumps(value).encode(), ".json")


@EXAMPLES
@given(
    st.lists(st.dictionaries(st.sampled_from(WORDS), values, min_size=1), min_size=1, max_size=4)
)
def test_any_records(rows):
    survives("\n".join(map(json.dumps, rows)).encode(), ".jsonl")


@EXAMPLES
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
    st.lists(st.lists(cells, max_size=7), max_size=5),
    st.sampled_from(",;\t"),
)
def test_any_table(header, rows, delimiter):
    lines = [delimiter.join(row) for row in [header, *rows]]
    survives("\n".join(lines).encode("utf-8", "surrogatepass"), ".csv")


@EXAMPLES
@given(
    st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=6),
    st.sampled_from(["all", "first", "last", "majority"]),
    st.sampled_from(["auto", None, "a", [1, "0"]]),
)
def test_any_long_table(rows, repeats, missing):
    lines = ["task,worker,label", *(",".join(row) for row in rows)]
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    survives(data, ".csv", repeats=repeats, missing=missing)
