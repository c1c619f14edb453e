"""Too many classes for a matrix per worker."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.annotations import Annotations
from crowdwise.report import gather
from crowdwise.report.facts import limits
from crowdwise.report.facts.limits import OTHER, merge_rare_classes
from crowdwise.simulate import confused_crowd, one_coin_confusion


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(limits, "MOST_CELLS", 2 * 4**2)  # two workers, four classes
    monkeypatch.setattr(limits, "FEWEST", 2)
    label = [0, 0, 0, 1, 1, 2, 3, 4, 4, 5, 5, 5]
    gold = [0, -1, 2, 4, 5, 3]
    return Annotations.from_codes(
        np.repeat(np.arange(6), 2), np.tile([0, 1], 6), label, classes=list("abcdef"), gold=gold
    )


def test_the_most_frequent_keep_their_names_and_the_rest_share_one(many):
    truth = pd.Series(["a", "c", "f"], index=[0, 2, 4])
    found, known, note = merge_rare_classes(many, truth)
    assert found.classes.tolist() == ["a", "b", "f", OTHER]
    names = found.classes[found.label].tolist()
    assert names == ["a", "a", "a", "b", "b", *[OTHER] * 4, "f", "f", "f"]
    assert found.gold.tolist() == [0, -1, 3, 3, 2, 3]
    assert known.tolist() == ["a", OTHER, "f"]
    assert note.startswith("3 rare classes are merged")


def test_few_classes_are_left_alone(many, monkeypatch):
    monkeypatch.setattr(limits, "FEWEST", 6)
    found, _, note = merge_rare_classes(many, None)
    assert found is many
    assert note == ""


def test_the_report_says_so(many):
    found = gather(many, methods=())
    assert found.data.n_classes == 4
    assert any("rare classes are merged" in note for note in found.data.notes)


def test_the_seed_of_a_simulation_may_be_that_of_the_report():
    """Random numbers that made the data do not choose from them again."""
    coins = confused_crowd(
        one_coin_confusion([0.7] * 9, 2), 1500, 5, prior=[0.5, 0.5], random_state=0
    )
    truth = pd.Series(coins.truth, index=coins.annotations.tasks)
    found = gather(
        coins.annotations, truth=truth, method="MajorityVote", methods=(), random_state=0
    )
    assert found.curve.points[0].measured == pytest.approx(0.69, abs=0.02)
