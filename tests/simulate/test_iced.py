"""ICED's sets have the published counts, and workers that agree as often as published."""

import itertools
import os
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import crowdwise.datasets
from crowdwise.errors import ParameterError
from crowdwise.simulate import iced
from crowdwise.simulate.iced import (
    SOURCES,
    Population,
    binary_confusion,
    draw_workers,
    expected_agreed,
    expected_majority,
    gisette_features,
    split_classes,
)


@pytest.fixture
def real(monkeypatch):
    """Class sizes and features of the real sets, where this machine has them."""
    place = os.environ.get("CROWDWISE_DATA")
    if not place:
        pytest.skip("the real sets are not here: set CROWDWISE_DATA")

    class Found:
        def __init__(self, name):
            with np.load(f"{place}/{name}/features.npz") as stored:
                self.X = stored["X"]
            rows = np.genfromtxt(f"{place}/{name}/truth.csv", dtype=str, delimiter=",")[1:]
            self.truth = self
            self.y = rows[:, 1].astype(int)

        def to_numpy(self):
            return self.y

    monkeypatch.setattr(crowdwise.datasets, "load", lambda name, **_: Found(name))


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(
    ("name", "sizes", "n_test", "shape"),
    [
        ("usps", [668, 66], 166, (734, 256)),
        ("gsad", [2341, 234], 585, (2575, 128)),
        ("gisette_like", [2800, 280], 700, (3080, 5000)),
    ],
)
def test_counts_are_the_published_ones(name, sizes, n_test, shape):
    crowd = iced(name, random_state=0)
    assert np.bincount(crowd.truth).tolist() == sizes
    assert np.bincount(crowd.y_test).tolist() == [n_test, n_test]
    assert crowd.X.shape == shape
    assert (crowd.annotations.redundancy == SOURCES[name].n_workers).all()
    wanted = SOURCES[name].workers
    assert crowd.agreed == pytest.approx(wanted.agreed, abs=0.02)
    if wanted.majority is not None:
        assert crowd.majority == pytest.approx(wanted.majority, abs=0.02)
    votes = crowd.annotations.votes()
    assert (votes.min(axis=1) <= 2).mean() == pytest.approx(crowd.agreed, abs=0.04)
    # The published matrices are those that the labels were drawn from.
    label, truth = crowd.annotations.label, crowd.truth[crowd.annotations.task]
    for worker in range(SOURCES[name].n_workers):
        own = crowd.annotations.worker == worker
        right = (label == truth)[own & (truth == 0)].mean()
        assert right == pytest.approx(crowd.confusion[worker, 0, 0], abs=0.06)


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_difficulties(difficulty):
    crowds = [iced("usps", difficulty=difficulty, random_state=seed) for seed in range(3)]
    right = np.array([np.einsum("wkk->wk", crowd.confusion) for crowd in crowds])
    low, high = {"easy": (0.6, 0.95), "medium": (0.5, 0.9), "hard": (0.1, 0.9)}[difficulty]
    assert right.min() >= low
    assert right.max() <= high
    below = (right < 0.5).all(axis=2).sum(axis=1)
    assert below.tolist() == [3 if difficulty == "hard" else 0] * 3
    assert not np.array_equal(crowds[0].X, crowds[1].X)


@pytest.mark.usefixtures("real")
def test_another_minority():
    crowd, again = (iced("usps", minority=3, random_state=0) for _ in range(2))
    assert crowd.annotations.equals(again.annotations)
    assert_array_equal(crowd.X, again.X)
    assert crowd.classes == (6, 3)
    assert np.bincount(crowd.truth).tolist() == [668, 66]
    with pytest.raises(ParameterError, match="minority=77"):
        iced("usps", minority=77)


def test_split_takes_each_row_once():
    y = np.array([0] * 103 + [1] * 40 + [2] * 9)
    train, test = split_classes(y, (0, 1), np.random.RandomState(0))
    assert len(set(train) & set(test)) == 0
    assert np.bincount(y[train]).tolist() == [83, 8]  # a fifth of 103 is 20
    assert np.bincount(y[test]).tolist() == [20, 20]
    with pytest.raises(ParameterError, match="9 tasks"):
        split_classes(y, (0, 2), np.random.RandomState(0))


def test_expected_agreement_equals_all_outcomes():
    accuracy = np.array([[0.9, 0.2], [0.6, 0.7], [0.55, 0.3], [0.8, 0.9], [0.3, 0.5], [0.7, 0.6]])
    accuracy = np.concatenate([accuracy, [[0.4, 0.85]]])
    shares = []
    for right in accuracy.T:
        total = 0.0
        for outcome in itertools.product([0, 1], repeat=7):
            chance = np.prod([p if o else 1 - p for p, o in zip(right, outcome, strict=True)])
            total += chance * (min(sum(outcome), 7 - sum(outcome)) <= 2)
        shares.append(total)
    assert expected_agreed(accuracy, 0.2) == pytest.approx(0.8 * shares[0] + 0.2 * shares[1])


@pytest.mark.parametrize("n_workers", [4, 5])
def test_expected_majority_equals_all_outcomes(n_workers):
    accuracy = np.random.RandomState(n_workers).uniform(size=(n_workers, 2))
    shares = []
    for right in accuracy.T:
        total = 0.0
        for outcome in itertools.product([0, 1], repeat=n_workers):
            chance = np.prod([p if o else 1 - p for p, o in zip(right, outcome, strict=True)])
            total += chance * (2 * sum(outcome) > n_workers)
            total += chance * 0.5 * (2 * sum(outcome) == n_workers)
        shares.append(total)
    assert expected_majority(accuracy) == pytest.approx(np.mean(shares))


def test_crowds_are_drawn_until_they_fit(monkeypatch):
    for seed in range(5):
        rng = np.random.RandomState(seed)
        accuracy = draw_workers(9, SOURCES["usps"].workers, 0.09, rng)
        assert expected_agreed(accuracy, 0.09) == pytest.approx(103 / 734, abs=0.02)
        assert expected_majority(accuracy) == pytest.approx(0.8494, abs=0.02)
        assert (accuracy.mean(axis=0) > 0.5).all()
    monkeypatch.setattr(sys.modules["crowdwise.simulate.iced"], "MOST_DRAWS", 100)
    with pytest.raises(ParameterError, match="No crowd"):
        draw_workers(9, Population((0.9, 0.95), agreed=0.1), 0.09, np.random.RandomState(0))


def test_confusion_by_hand():
    expected = [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]]
    assert_allclose(binary_confusion(np.array([[0.9, 0.7], [0.6, 0.8]])), expected)


def test_half_of_gisettes_features_are_probes():
    rng = np.random.RandomState(0)
    truth = rng.permutation(np.repeat([0, 1], 150))
    pixels = (rng.randint(0, 255, (300, 20)) * (0.5 + 0.5 * truth[:, None])).astype(np.uint8)
    pixels[:, 5] = 0  # never varies
    X = gisette_features(pixels, np.random.RandomState(1), n_features=80)
    assert X.shape == (300, 80)
    assert (X.min(), X.max()) == (0, pytest.approx(999, abs=15))
    gap = np.abs(X[truth == 1].mean(axis=0) - X[truth == 0].mean(axis=0)) / X.std(axis=0)
    assert (gap > 0.4).sum() == 40  # pixels and products tell the classes apart, probes do not


@pytest.mark.parametrize("settings", [{"name": "mnist"}, {"difficulty": "awful"}], ids=str)
def test_refuses_what_is_unknown(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        iced(**{"name": "usps", **settings})
