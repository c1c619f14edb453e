"""doccano's files, one for each user."""

import json
import zipfile

import pytest

import crowdwise as cw
from crowdwise.errors import FormatError

ROWS = [(1, "ann", "good"), (1, "bob", "bad + good"), (2, "ann", "bad")]


def test_reads_a_folder_with_one_file_per_user(export, triples):
    annotations = export("doccano")
    assert triples(annotations) == ROWS
    assert annotations.notes[0] == "read as doccano, 2 files"
    assert "worker from the file name" in annotations.notes
    assert "rows without a label left out: 1" in annotations.notes


def test_reads_a_list_of_files(exports, triples):
    files = [exports / "doccano" / "bob.jsonl", exports / "doccano" / "ann.jsonl"]
    assert sorted(triples(cw.read(files, "doccano"))) == ROWS


def test_reads_the_zip_that_doccano_exports(exports, tmp_path, triples):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("ann.jsonl", "bob.jsonl"):
            archive.write(exports / "doccano" / name, name)
    assert triples(cw.read(path)) == ROWS


def test_takes_the_worker_from_a_field(tmp_path, triples):
    path = tmp_path / "all.jsonl"
    path.write_text(json.dumps({"text": "Great!", "label": ["good"], "username": "cy"}) + "\n")
    annotations = cw.read(path)
    assert triples(annotations) == [("Great!", "cy", "good")]
    assert "worker from 'username'" in annotations.notes


def test_refuses_spans():
    rows = [{"id": 1, "text": "Ann sat", "label": [[0, 3, "PER"]]}]
    with pytest.raises(FormatError, match="marks parts of a text"):
        cw.read(rows, "doccano")
