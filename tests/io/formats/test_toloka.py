"""Toloka's assignments."""

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.errors import FormatError


def test_reads_assignments(export, triples, gold):
    annotations = export("toloka.tsv")
    assert triples(annotations) == [
        ("t-1", "w-ann", "cat"),
        ("t-1", "w-bob", "dog"),
        ("t-2", "w-ann", "dog"),
    ]
    assert gold(annotations) == {"t-2": "dog"}
    assert annotations.time[1] == np.datetime64("2024-05-01T10:10")
    assert "rejected assignments left out: 1" in annotations.notes


def test_takes_rejected_assignments_when_asked(export, triples):
    assert ("t-2", "w-cy", "cat") in triples(export("toloka.tsv", rejected=True))


@pytest.mark.parametrize("asked", ["result", "OUTPUT:result"])
def test_reads_an_output_by_either_name(asked, export, triples):
    annotations = export("toloka.tsv", question=asked, task="INPUT:image")
    assert triples(annotations)[0] == ("1.jpg", "w-ann", "cat")


def test_without_task_ids_the_only_input_is_the_task(tmp_path, triples):
    path = tmp_path / "pool.tsv"
    path.write_text("INPUT:image\tOUTPUT:a\tOUTPUT:b\tASSIGNMENT:worker_id\n1.jpg\tx\ty\tw\n")
    assert triples(cw.read(path, "toloka", question="b")) == [("1.jpg", "w", "y")]
    with pytest.raises(FormatError, match=r"'a', 'b'"):
        cw.read(path, "toloka")


def test_asks_which_input_is_the_task(tmp_path):
    path = tmp_path / "pool.tsv"
    path.write_text("INPUT:x\tINPUT:y\tOUTPUT:a\tASSIGNMENT:worker_id\n1\t2\tb\tw\n")
    with pytest.raises(
        FormatError, match=r"2 input columns(.|\n)*'INPUT:x', 'INPUT:y'(.|\n)*task="
    ):
        cw.read(path, "toloka")
