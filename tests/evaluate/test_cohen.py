"""Cohen's kappa: two-by-two examples, plain loops over pairs, and its interval."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowdwise import Annotations
from crowdwise.errors import ParameterError
from crowdwise.evaluate import cohen_kappa, cohen_kappa_matrix
from crowdwise.evaluate.cohen import average_kappa, shared_tasks
from crowdwise.simulate import confused_crowd

KERNELS = {
    "identity": np.eye(3),
    "linear": 1 - np.abs(np.subtract.outer(range(3), range(3))) / 2,
    "quadratic": 1 - np.subtract.outer(range(3), range(3)) ** 2 / 4,
}


def two_by_two(both, first, second, neither):
    return [[1, 1]] * both + [[1, 0]] * first + [[0, 1]] * second + [[0, 0]] * neither


def lopsided(n_tasks=50, n_workers=5):
    rng = np.random.default_rng(2)
    truth = rng.choice(3, n_tasks, p=[0.2, 0.3, 0.5])
    chance = np.linspace(0.9, 0.4, n_workers)
    right = rng.random((n_tasks, n_workers)) < chance
    labels = np.where(right, truth[:, None], rng.choice(3, (n_tasks, n_workers), p=[0.6, 0.3, 0.1]))
    labels[rng.random((n_tasks, n_workers)) < 0.35] = -1
    return labels


def plain_kappa(one, other, kernel, weight=None):
    """Cohen's kappa of two rows of labels, where both have one."""
    weight = np.ones(len(one)) if weight is None else weight
    rows = [(a, b, w) for a, b, w in zip(one, other, weight, strict=True) if a >= 0 and b >= 0]
    total = sum(w for _, _, w in rows)
    shares = np.zeros(3), np.zeros(3)
    agree = 0.0
    for a, b, w in rows:
        agree += w * kernel[a, b] / total
        shares[0][a] += w / total
        shares[1][b] += w / total
    chance = shares[0] @ kernel @ shares[1]
    return (agree - chance) / (1 - chance), total


def plain_average(labels, kernel, least, weight=None):
    found = [
        plain_kappa(labels[:, a], labels[:, b], kernel, weight)
        for a, b in combinations(range(labels.shape[1]), 2)
        if np.sum((labels[:, a] >= 0) & (labels[:, b] >= 0)) >= least
    ]
    return sum(kappa * n for kappa, n in found) / sum(n for _, n in found)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [((20, 5, 10, 15), 0.4), ((45, 15, 25, 15), 0.1304), ((25, 35, 5, 35), 0.2593)],
)
def test_textbook_tables(cells, expected):
    assert_allclose(cohen_kappa(two_by_two(*cells)).value, expected, atol=5e-5)


@pytest.mark.parametrize("weights", KERNELS)
def test_equals_plain_loops(weights):
    labels, kernel = lopsided(), KERNELS[weights]
    matrix = cohen_kappa_matrix(labels, weights=weights).to_numpy()
    for a, b in combinations(range(5), 2):
        expected = plain_kappa(labels[:, a], labels[:, b], kernel)[0]
        assert_allclose([matrix[a, b], matrix[b, a]], expected)
    for least in (2, 20):
        found = cohen_kappa(labels, weights=weights, min_overlap=least).value
        assert_allclose(found, plain_average(labels, kernel, least))


def test_order_of_rows_leaves_no_trace():
    labels = lopsided()
    frame = Annotations.from_matrix(labels).to_frame().sample(frac=1, random_state=0)
    assert_allclose(cohen_kappa_matrix(frame), cohen_kappa_matrix(labels))
    assert_allclose(cohen_kappa(frame).high, cohen_kappa(labels).high)


@pytest.mark.parametrize("weights", ["identity", "quadratic"])
def test_influence_is_the_derivative(weights):
    labels, kernel = lopsided(), KERNELS[weights]
    given = None if weights == "identity" else kernel
    pairs = shared_tasks(Annotations.from_matrix(labels), given, 10)
    _, influence = average_kappa(pairs, pairs.kappa)
    tasks = np.unique(pairs.task)
    step = 1e-5
    for number in (0, 7, 20):
        weight = np.ones(len(labels))
        weight[tasks[number]] += step
        up = plain_average(labels, kernel, 10, weight)
        weight[tasks[number]] -= 2 * step
        slope = (up - plain_average(labels, kernel, 10, weight)) / (2 * step)
        assert_allclose(influence[number], slope, rtol=1e-5, atol=1e-9)
    assert_allclose(influence.sum(), 0, atol=1e-12)


def test_interval_holds_the_truth_about_as_often_as_it_says():
    confusion = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.8, 0.2], [0.1, 0.9]]] * 2)
    draw = {"per_task": 3, "prior": [0.6, 0.4]}
    truth = cohen_kappa(confused_crowd(confusion, 50_000, random_state=0, **draw).annotations).value
    found = [
        cohen_kappa(confused_crowd(confusion, 200, random_state=seed, **draw).annotations)
        for seed in range(150)
    ]
    held = np.mean([e.low <= truth <= e.high for e in found])
    assert 0.89 <= held <= 0.995
    spread = np.std([e.value for e in found])
    claimed = np.mean([(e.high - e.low) / (2 * 1.96) for e in found])
    assert_allclose(claimed, spread, rtol=0.15)


def test_says_why_there_is_no_number():
    few = cohen_kappa(lopsided(12), min_overlap=13)
    assert np.isnan(few.value)
    assert few.note == "No two workers share 13 tasks or more."
    same = cohen_kappa([[2, 2]] * 20)
    assert np.isnan(same.value)
    assert "one and the same label" in same.note


def test_no_interval_when_not_asked_for():
    found = cohen_kappa(lopsided(), n_resamples=0)
    assert np.isfinite(found.value)
    assert np.isnan(found.low)


def test_matrix_names_its_workers_and_leaves_gaps():
    votes = {f"t{i}": {"ann": i % 2, "bob": i % 2} for i in range(4)}
    votes |= {"t9": {"cy": 1}}
    matrix = cohen_kappa_matrix(votes)
    assert matrix.loc["ann", "bob"] == 1
    assert np.isnan(matrix.loc["ann", "cy"])
    assert (np.diag(matrix) == 1).all()
    assert np.isnan(cohen_kappa_matrix(votes, min_overlap=5).loc["ann", "bob"])


def test_many_pairs_are_sampled_by_worker(monkeypatch):
    crowd = confused_crowd(np.tile([[0.8, 0.2], [0.2, 0.8]], (40, 1, 1)), 300, 20, random_state=0)
    every = cohen_kappa(crowd.annotations)
    monkeypatch.setattr("crowdwise.evaluate.cohen.MOST_ROWS", 15_000)
    some = cohen_kappa(crowd.annotations)
    assert "of 40 workers, drawn at random" in some.note
    assert_allclose(some.value, every.value, atol=0.04)
    assert some == cohen_kappa(crowd.annotations)


def test_refuses_a_matrix_too_large_to_hold(monkeypatch):
    monkeypatch.setattr("crowdwise.evaluate.cohen.MOST_WORKERS", 3)
    with pytest.raises(ParameterError, match="select_workers"):
        cohen_kappa_matrix(lopsided())
