"""Where confusion matrices start, against plain loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowdwise.learn.noise import count_log_confusion


@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_counts_equal_the_plain_loops(lopsided, options):
    annotations = lopsided.votes(**options)
    shares = annotations.shares()
    count = np.full((lopsided.n_workers, 3, 3), 0.4)
    for task, worker, share, weight in lopsided.rows_of(annotations):
        count[worker] += weight * np.outer(shares[task], share)
    found = count_log_confusion(lopsided.data_of(annotations), 0.4).exp()
    assert_allclose(found, count / count.sum(axis=2, keepdims=True), rtol=1e-5)


def test_gold_counts_as_truth(lopsided):
    annotations = lopsided.votes()
    gold = np.full(lopsided.n_tasks, 2)
    found = count_log_confusion(lopsided.data_of(annotations, gold), 0.5).exp()
    labels = np.full((lopsided.n_workers, 3), 0.5)
    np.add.at(labels, (annotations.worker, annotations.label), 1)
    assert_allclose(found[:, 2], labels / labels.sum(axis=1, keepdims=True), rtol=1e-5)
    assert_allclose(found[:, :2], 1 / 3, rtol=1e-5)
