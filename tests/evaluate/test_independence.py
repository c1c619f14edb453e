import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowdwise.aggregate import DawidSkene
from crowdwise.aggregate.shared_errors import (
    USUAL,
    Fitted,
    SharedErrors,
    copy_errors,
    correlate_errors,
    draw_crowd,
)
from crowdwise.evaluate import check_independence
from crowdwise.simulate import confused_crowd, one_coin_confusion


def crowd(seed, n_tasks=300, n_classes=2, copying=0.0):
    """Ten workers, five labels a task; the first six copy the first of them so often."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    right = rng.random((n_tasks, 10)) < rng.uniform(0.6, 0.9, 10)
    other = (truth[:, None] + rng.integers(1, n_classes, (n_tasks, 10))) % n_classes
    labels = np.where(right, truth[:, None], other).astype(float)
    copied = rng.random((n_tasks, 10)) < copying
    copied[:, 6:] = False
    labels = np.where(copied, labels[:, :1], labels)
    labels[np.arange(n_tasks)[:, None], rng.random((n_tasks, 10)).argsort(axis=1)[:, 5:]] = np.nan
    return labels, truth


def test_independent_crowds_pass():
    found = [check_independence(crowd(seed, n_classes=2 + seed % 2)[0]) for seed in range(8)]
    assert sum(one.p_value < 0.05 for one in found) <= 1
    assert not any(one.is_severe for one in found)
    assert abs(np.mean([one.correlation for one in found])) < 0.02


def test_workers_who_copy_are_found():
    found = check_independence(crowd(0, 600, copying=0.9)[0])
    assert found.is_dependent
    assert found.correlation > 0.05
    assert found.worth < 0.85 * found.labels_per_task == 0.85 * 5


def test_gold_shows_what_all_share():
    labels, truth = crowd(1, 300)
    labels[:90] = np.where(np.isnan(labels[:90]), np.nan, 1 - truth[:90, None])  # all are wrong
    blind, told = check_independence(labels), check_independence(labels, dict(enumerate(truth)))
    assert not blind.is_severe
    assert told.is_severe
    assert told.worth < 2


def test_the_statistic_equals_plain_loops():
    confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.8], 3)
    votes = confused_crowd(confusion, 40, 3, random_state=0).annotations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DawidSkene(max_iter=3).fit(votes)
    total = scale = 0.0
    for i in range(40):
        own = np.flatnonzero(votes.task == i)
        for k in range(3):
            for a in own:
                for b in own:
                    if a == b:
                        continue
                    p, q = (model.confusion_[votes.worker[c], k, k] for c in (a, b))
                    product = ((votes.label[a] == k) - p) * ((votes.label[b] == k) - q)
                    total += model.posterior_[i, k] * product
                    scale += model.posterior_[i, k] * np.sqrt(p * (1 - p) * q * (1 - q))
    fitted = Fitted(model.posterior_, model.prior_, model.confusion_)
    assert_allclose(correlate_errors(votes, fitted), total / scale)


def test_crowds_are_drawn_from_the_model():
    confusion = np.array([[[0.9, 0.1], [0.3, 0.7]]] * 3)
    votes = confused_crowd(confusion, 4000, 3, prior=[0.8, 0.2], random_state=0).annotations
    model = Fitted(np.zeros(0), np.array([0.8, 0.2]), confusion)
    rng = np.random.RandomState(0)
    drawn, _ = draw_crowd(votes, model, None, rng)
    assert_allclose((drawn.label == 0).mean(), 0.8 * 0.9 + 0.2 * 0.3, atol=0.01)
    known, truth = draw_crowd(votes, model, np.ones(4000, dtype=int), rng)
    assert_allclose((known.label == 0).mean(), 0.3, atol=0.01)
    assert (truth == 1).all()


def test_copied_errors_correlate_as_usual():
    confusion = np.tile([[0.9, 0.1], [0.3, 0.7]], (5, 1, 1))
    votes = confused_crowd(confusion, 20000, 3, prior=[0.5, 0.5], random_state=0).annotations
    model = Fitted(np.zeros(0), np.array([0.5, 0.5]), confusion)
    rng = np.random.RandomState(0)
    crowd, truth = draw_crowd(votes, model, None, rng)
    for votes, correlation in ((crowd, 0.0), (copy_errors(crowd, truth, model, rng), USUAL)):
        known = Fitted(np.eye(2)[truth], model.prior, confusion)
        assert_allclose(correlate_errors(votes, known), correlation, atol=0.01)


def test_the_tail_is_that_of_students_t():
    drawn = np.array([-1.0, 0.0, 1.0])
    assert_allclose(SharedErrors(0.0, drawn, drawn).p_value, 0.5)
    assert 0.01 < SharedErrors(4.0, drawn, drawn).p_value < 0.05  # not a normal tail
    assert np.isnan(SharedErrors(1.0, np.zeros(3), drawn).p_value)


@pytest.mark.parametrize(
    ("labels", "why"),
    [([[0, 1], [1, 1]], "fewer than 10 tasks"), ([["a", "a"]] * 30, "only one class")],
    ids=["tasks", "classes"],
)
def test_what_cannot_be_tested_says_why(labels, why):
    found = check_independence(np.array(labels))
    assert np.isnan(found.p_value)
    assert why in found.note
    assert not found.is_dependent


def test_too_many_matrices_are_not_tested(monkeypatch):
    monkeypatch.setattr("crowdwise.aggregate.shared_errors.MOST_CELLS", 39)
    assert "too many workers" in check_independence(crowd(0)[0]).note


def test_large_crowds_are_sampled(monkeypatch):
    monkeypatch.setattr("crowdwise.aggregate.shared_errors.ENOUGH", 500)
    found = check_independence(crowd(0)[0])
    assert found.n_tasks == 100
    assert found == check_independence(crowd(0)[0])
    assert found != check_independence(crowd(0)[0], random_state=1)


def test_tasks_with_one_label_do_not_count():
    labels = crowd(0)[0]
    lonely = np.vstack([labels, np.where(np.arange(10) == 3, 1.0, np.nan)[None]])
    assert check_independence(lonely).n_tasks == 300
