"""Counts of positive labels, dealt to slots."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from crowdwise.datasets.parsers import neucrowd
from crowdwise.datasets.parsers.neucrowd import deal


@pytest.mark.parametrize("n_workers", [3, 7])
def test_every_task_gets_all_its_labels_and_every_slot_one(n_workers):
    counts = np.tile(np.arange(n_workers + 1), 30)
    tasks = np.array([f"t{i}" for i in range(len(counts))])
    rows = deal(tasks, counts, n_workers)
    grid = rows.pivot(index="task", columns="worker", values="label").loc[tasks]
    assert grid.columns.tolist() == [f"v{k + 1}" for k in range(n_workers)]
    assert grid.sum(axis=1).tolist() == counts.tolist()
    shares = grid.mean(axis=0)  # no slot is favored
    assert shares.between(0.35, 0.65).all()
    in_order = np.array([[1] * n + [0] * (n_workers - n) for n in counts])
    assert_array_equal(grid, np.random.default_rng(0).permuted(in_order, axis=1))


def test_dealing_leaves_no_trace_in_the_global_generator():
    np.random.seed(0)  # noqa: NPY002 - the very thing that must not change
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    first = deal(np.array(["a", "b"]), np.array([3, 4]), 7)
    assert np.random.random() == expected  # noqa: NPY002
    assert deal(np.array(["a", "b"]), np.array([3, 4]), 7).equals(first)


def test_hotel_has_three_parts_and_headers_with_a_blank(published):
    files = published(
        train__csv="mv_fluency, votes,0,1\n1,7.0,0.5,-1\n0,2.0,1,2\n",
        valid__csv="mv_fluency, votes,0,1\n0,0.0,3,4\n",
        test__csv="mv_fluency,votes,0,1\n1,4.0,5,6\n",
    )
    tables = neucrowd.hotel(files)
    assert tables.X_tasks.tolist() == ["train-0000", "train-0001", "valid-0000", "test-0000"]
    assert tables.X.tolist() == [[0.5, -1], [1, 2], [3, 4], [5, 6]]
    assert tables.truth.tolist() == [1, 0, 0, 1]
    assert tables.split.tolist() == ["train", "train", "valid", "test"]
    assert tables.annotations.groupby("task")["label"].sum().to_dict() == {
        "test-0000": 4,
        "train-0000": 7,
        "train-0001": 2,
        "valid-0000": 0,
    }


def test_the_synthetic_truth_is_not_the_majority(published):
    files = published(valid__csv="label,votes,ground_truth,col_0\n1,4,0,0.25\n0,3,0,0.5\n")
    tables = neucrowd.synthetic(files)
    assert tables.truth.tolist() == [0, 0]
    assert tables.X.tolist() == [[0.25], [0.5]]
