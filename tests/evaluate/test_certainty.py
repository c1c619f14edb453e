"""Certainty equals the plain loops of its definition, and its levels are those of the votes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowdwise import Annotations
from crowdwise.errors import ParameterError
from crowdwise.evaluate import certainty

CLASSES = 3


def crowd():
    """Unequal redundancy and weights, a repeated pair, a task without labels."""
    rng = np.random.default_rng(0)
    task, worker = rng.integers(0, 12, 50), rng.integers(0, 6, 50)
    label, weight = rng.choice(CLASSES, 50, p=[0.7, 0.2, 0.1]), rng.uniform(0.5, 2.0, 50)
    names = {"tasks": np.arange(13), "workers": np.arange(6), "classes": np.arange(CLASSES)}
    return Annotations.from_codes(task, worker, label, weight=weight, **names)


def plain_certainty(votes, floor):
    """Mean squared distance of one-hot labels from their mean, task by task."""
    found = []
    for task in range(votes.n_tasks):
        rows = [row for row in range(votes.n_annotations) if votes.task[row] == task]
        if not rows:
            found.append(0.0)
            continue
        total = sum(votes.weight[row] for row in rows)
        mean = sum(votes.weight[row] * np.eye(CLASSES)[votes.label[row]] for row in rows) / total
        spread = 0.0
        for row in rows:
            away = np.eye(CLASSES)[votes.label[row]] - mean
            spread += votes.weight[row] / total * float(away @ away)
        found.append(1 / (spread + floor))
    return found


@pytest.mark.parametrize("floor", [0.05, 1e-3])
def test_equals_the_plain_loops(floor):
    votes = crowd()
    assert_allclose(
        certainty(votes, floor=floor)["certainty"], plain_certainty(votes, floor), rtol=1e-6
    )


def test_levels_are_the_highest_distinct_values():
    # Of seven workers: all agree, one dissents (either way), two, three; and no label.
    dissent = [0, 1, 6, 2, 3, 7, 4, 5]
    matrix = [[1] * n + [0] * (7 - n) for n in dissent] + [[np.nan] * 7]
    table = certainty(np.array(matrix, dtype=float))
    assert table["level"].tolist() == [1, 2, 2, 3, 0, 1, 0, 3, 0]
    assert table["certainty"].iloc[0] == pytest.approx(20)
    assert table["certainty"].iloc[-1] == 0
    assert certainty(np.array(matrix), n_levels=1)["level"].tolist() == [1, 0, 0, 0, 0, 1, 0, 0, 0]


def test_names_are_kept_and_one_label_is_certain():
    table = certainty({"a": {"x": "yes"}, "b": {"x": "no", "y": "yes"}})
    assert table.index.tolist() == ["a", "b"]
    assert table["level"].tolist() == [1, 2]


def test_refuses_a_floor_of_nothing():
    with pytest.raises(ParameterError, match="floor"):
        certainty([[0, 1]], floor=0.0)
