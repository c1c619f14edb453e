"""What docs/promises.md says of input that reads like something else."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from crowdwise import Annotations, read
from crowdwise.errors import AnnotationError, FormatError
from crowdwise.io import as_annotations

TRIPLES = [[task, worker, (task + worker) % 2] for task in range(1, 7) for worker in range(1, 4)]
SHUFFLED = np.random.default_rng(0).permutation([[10 * t, 5 * w + 1, c] for t, w, c in TRIPLES])


@pytest.mark.parametrize("rows", [TRIPLES, TRIPLES[:4], SHUFFLED.tolist()])
@pytest.mark.parametrize(
    "make",
    [
        np.array,
        pd.DataFrame,
        lambda rows: np.array(rows, dtype=float),
        lambda rows: pl.DataFrame(rows, orient="row"),
    ],
)
def test_promise_05_arrays_that_look_like_triples_are_refused(make, rows):
    with pytest.raises(FormatError, match=r"may hold \(task, worker, label\)"):
        as_annotations(make(rows))
    assert Annotations.from_matrix(np.array(rows)).n_workers == 3


def test_promise_05_four_rows_in_order_are_refused():
    with pytest.raises(FormatError, match=r"may hold \(task, worker, label\)"):
        as_annotations([[1, 1, 0], [1, 2, 0], [2, 1, 1], [2, 2, 1]])


@pytest.mark.parametrize("k", [2, 3, 5, 100])
def test_promise_05_labels_of_three_workers_in_an_array_are_read(k):
    rng = np.random.default_rng(k)
    truth = rng.integers(0, k, 60)
    wrong = rng.random((60, 3)) < 0.3
    labels = np.where(wrong, rng.integers(0, k, (60, 3)), truth[:, None])
    assert as_annotations(labels).shape == (60, 3)
    assert as_annotations(pd.DataFrame(labels)).shape == (60, 3)


def test_promise_05_rows_named_like_workers_are_refused():
    wide = pd.DataFrame([[0, 1, 1], [0, 1, 0]], index=pd.Index(["ann", "bob"], name="worker"))
    with pytest.raises(AnnotationError, match=r"like workers(.|\n)*transpose"):
        as_annotations(wide.rename(columns=str))
    assert as_annotations(wide.rename(columns=str).T.rename_axis("task")).shape == (3, 2)


@pytest.mark.parametrize("blank", ["", " ", "\t "])
def test_promise_06_blank_labels_are_missing(blank, tmp_path):
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": list("aba"), "label": ["x", blank, "y"]})
    frame.to_csv(tmp_path / "votes.csv", index=False)
    with pytest.warns(UserWarning, match="taken as missing: '' 1"):
        found = as_annotations(frame)
    for votes in (found, read(tmp_path / "votes.csv")):
        assert (votes.classes.tolist(), votes.n_annotations) == (["x", "y"], 2)
    assert read(frame, missing=None).classes.tolist() == [blank, "x", "y"]


@pytest.mark.parametrize("weight", [1e-60, 1e-39, 1e39])
def test_promise_16_a_weight_that_single_precision_lacks_is_refused(weight):
    frame = pd.DataFrame({"task": [1, 1], "worker": list("ab"), "label": list("xy")})
    with pytest.raises(AnnotationError, match="1 weight that cannot be used"):
        as_annotations(frame.assign(weight=[0.0, weight]))
    with pytest.raises(AnnotationError, match="of weight cannot be used"):
        Annotations.from_codes([0, 0], [0, 1], [0, 1], weight=[0.0, weight])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["1", "1.0", "b"], "'1' and '1.0'"),
        (["001", "1", "b"], "'001' and '1'"),
        (["a", "a\u200b", "b"], "'a'"),
        (["123456789012345678", "123456789012345679", "b"], ""),
        (["52_0", "5_20", "520"], ""),  # numbers to Python, names to people
        (["1e5", "10e4", "100000"], ""),  # parts of hashes
    ],
)
def test_promise_09_tasks_that_look_alike_are_reported(names, said):
    frame = pd.DataFrame({"task": names, "worker": list("uvw"), "label": list("xyx")})
    alike = [note for note in as_annotations(frame).notes if "tasks differ only" in note]
    assert len(alike) == bool(said)
    assert said in "".join(alike)


def test_promise_09_labels_that_read_like_several_others_are_reported():
    frame = pd.DataFrame({"task": [1, 1, 2, 2], "worker": list("abab")})
    notes = as_annotations(frame.assign(label=["x;y", "x", "y", "x; y"])).notes
    assert "2 labels read like several others together, such as 'x; y'" in notes
    notes = as_annotations(frame.assign(label=["w;y", "x", "y", "and/or"])).notes
    assert "together" not in " ".join(notes)
