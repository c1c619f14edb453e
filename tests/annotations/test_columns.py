"""The sparse matrix tasks x (worker, label), against plain loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowdwise import Annotations
from crowdwise.annotations import columns
from crowdwise.annotations.columns import normalize_votes, to_cells
from crowdwise.errors import AnnotationError


@pytest.fixture(params=["plain", "weights", "soft", "both"])
def crowd(request):
    rng = np.random.default_rng(4)
    n, kind = 40, request.param
    return Annotations.from_codes(
        rng.integers(0, 9, n),
        rng.integers(0, 5, n),
        rng.integers(0, 3, n),
        tasks=range(11),
        weight=rng.uniform(0.1, 2, n) if kind in ("weights", "both") else None,
        soft=rng.dirichlet([1, 2, 3], n) if kind in ("soft", "both") else None,
    )


def slow_cells(annotations):
    """One entry at a time: too slow to ship, too plain to be wrong."""
    dense = np.zeros((annotations.n_tasks, annotations.n_workers, annotations.n_classes))
    for row in range(annotations.n_annotations):
        weight = 1.0 if annotations.weight is None else annotations.weight[row]
        share = np.eye(annotations.n_classes)[annotations.label[row]]
        if annotations.soft is not None:
            share = annotations.soft[row]
        dense[annotations.task[row], annotations.worker[row]] += weight * share
    return dense


def test_cells_equal_the_plain_loops(crowd):
    dense = slow_cells(crowd)
    sparse = to_cells(crowd)
    n_codes = crowd.n_workers * crowd.n_classes
    matrix = sparse.matrix(0, crowd.n_tasks, n_codes).toarray()
    assert sparse.n_tasks == crowd.n_tasks
    assert_allclose(matrix, dense.reshape(crowd.n_tasks, -1), rtol=1e-6)
    assert_allclose(sparse.matrix(3, 7, n_codes).toarray(), matrix[3:7])


@pytest.mark.parametrize("at_once", [1 << 20, 7, 1])
def test_votes_equal_the_plain_loops_in_any_blocks(crowd, at_once, monkeypatch):
    monkeypatch.setattr(columns, "ROWS_AT_ONCE", at_once)
    assert_allclose(crowd.votes(), slow_cells(crowd).sum(axis=1), rtol=1e-6)


def test_shares_are_uniform_where_there_is_no_vote():
    votes = np.array([[1.0, 3.0], [0.0, 0.0]])
    assert normalize_votes(votes).tolist() == [
        [0.25, 0.75],
        [0.5, 0.5],
    ]
    assert normalize_votes(np.zeros((2, 0))).shape == (2, 0)


def test_too_many_workers_and_classes():
    many = Annotations.from_codes([0], [0], [0], workers=range(70_000), classes=range(40_000))
    with pytest.raises(AnnotationError, match=r"70,000 workers with 40,000 classes are too many"):
        to_cells(many)


def test_is_made_once(crowd):
    assert crowd.cells is crowd.cells
