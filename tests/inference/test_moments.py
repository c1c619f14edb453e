"""Trimmed means of sparse rows against plain lists."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from crowdwise.inference import moments
from crowdwise.inference.moments import trimmed_mean


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    dense = rng.exponential(size=(30, 12)) * (rng.random((30, 12)) < 0.6)
    dense[4] = 0.0  # a row without values
    return csr_array(dense)


def slow(rows, current, n_trimmed):
    means = current.copy()
    for i in range(rows.shape[0]):
        values = sorted(rows.data[rows.indptr[i] : rows.indptr[i + 1]].tolist())
        below = [v for v in values if v < current[i]][n_trimmed:]
        above = [v for v in values if v > current[i]]
        above = above[: max(len(above) - n_trimmed, 0)]
        kept = below + [v for v in values if v == current[i]] + above
        if kept:
            means[i] = sum(kept) / len(kept)
    return means


@pytest.mark.parametrize("n_trimmed", [0, 1, 3, 50])
@pytest.mark.parametrize("at_once", [1, 30, 1 << 22])
def test_equals_the_plain_lists(rows, n_trimmed, at_once, monkeypatch):
    monkeypatch.setattr(moments, "NUMBERS_AT_ONCE", at_once)
    current = np.random.default_rng(1).exponential(size=30)
    current[7] = rows.data[rows.indptr[7]]  # one that is exactly a value of its row
    assert_allclose(trimmed_mean(rows, current, n_trimmed), slow(rows, current, n_trimmed))


def test_nothing_stored_changes_nothing():
    assert_allclose(trimmed_mean(csr_array((3, 3)), np.array([1.0, 2.0, 3.0]), 2), [1, 2, 3])
