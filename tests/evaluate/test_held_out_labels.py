"""Held-out labels: what is chosen, how likely methods find it, and how far they are apart."""

import numpy as np
import pytest
from sklearn.base import clone

from crowdwise.aggregate import DawidSkene
from crowdwise.annotations import Annotations
from crowdwise.evaluate.held_out_labels import (
    choose_held_out,
    compare_with_best,
    fit_to_rest,
    score_held_out,
)
from crowdwise.simulate import confused_crowd, one_coin_confusion

FULL = DawidSkene(tol=1e-4)


@pytest.fixture(scope="module")
def crowd():
    """Lopsided: a good worker, a lazy one, and one who favors a class."""
    confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    confusion[3] = [[0.2, 0.7, 0.1], [0.1, 0.8, 0.1], [0.1, 0.6, 0.3]]
    return confused_crowd(confusion, 150, 3, prior=[0.6, 0.3, 0.1], random_state=1)


def test_held_out_evidence_in_loops(crowd):
    votes = crowd.annotations
    asked = choose_held_out(votes, 0.1, 3)
    kept, out = votes.filter(~asked).to_frame(), votes.filter(asked).to_frame()
    posterior = clone(FULL).fit(votes.filter(~asked)).posterior_
    counts = np.zeros((votes.n_workers, 3, 3))
    for task, worker, label in zip(kept["task"], kept["worker"], kept["label"], strict=True):
        for truth in range(3):
            counts[worker, truth, label] += posterior[task, truth]
    crowd_habit = counts.sum(axis=0) + 1 / 3
    crowd_habit /= crowd_habit.sum(axis=1, keepdims=True)
    expected = []
    for task, worker, label in zip(out["task"], out["worker"], out["label"], strict=True):
        chance = 0.0
        for truth in range(3):
            row = counts[worker, truth] + crowd_habit[truth]
            chance += posterior[task, truth] * row[label] / row.sum()
        expected.append(np.log(chance))
    found = score_held_out(fit_to_rest(FULL, votes, None, asked), votes, asked)
    assert found == pytest.approx(np.array(expected))


def test_what_is_held_out_leaves_every_task_a_label():
    votes = Annotations.from_matrix([[0, 1, 1], [0, -1, -1], [1, 1, -1], [0, 0, 1]])
    for seed in range(20):
        asked = choose_held_out(votes, 0.5, seed)
        assert asked.sum() == 3  # the second task has a single label
        assert np.bincount(votes.task[asked], minlength=4).tolist() == [1, 0, 1, 1]
    assert choose_held_out(votes, 0.25, 0).sum() == 2
    assert choose_held_out(votes, 0.0, 0).sum() == 0


def test_differences_from_the_best_are_paired():
    rng = np.random.default_rng(0)
    base = rng.normal(-1, 1, 300)
    evidence = {"good": base, "same": base + rng.normal(0, 0.01, 300), "bad": base - 0.1}
    rows = compare_with_best(evidence, {"n_resamples": 200, "confidence": 0.95, "random_state": 0})
    best = max(rows, key=lambda name: rows[name]["held_out"])
    assert rows[best]["behind"] == rows[best]["behind_low"] == 0
    assert rows["bad"]["behind_low"] > 0.09  # though both intervals overlap
    assert rows["bad"]["held_out_high"] > rows["good"]["held_out_low"]
    other = "same" if best == "good" else "good"
    assert rows[other]["behind_low"] < 0.005
