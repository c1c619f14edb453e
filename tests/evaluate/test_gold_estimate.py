"""Prediction-powered estimates: cover the truth, never much wider than gold alone."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from crowdwise.aggregate import MajorityVote
from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError
from crowdwise.evaluate import estimate
from crowdwise.evaluate.gold_estimate import Part, conclude

PPI_STRONG = [0.5313838005141577, 0.49033338279007405, 0.5724342182382414]
PPI_WEAK = [0.5186634439996143, 0.4433630965923523, 0.5939637914068763]


def panel(n_tasks=600, seed=0, share=0.3, accuracy=(0.9, 0.8, 0.75, 0.7, 0.85)):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_tasks) < share).astype(int)
    right = rng.random((n_tasks, len(accuracy))) < accuracy
    return Annotations.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None])), truth


def known(truth, tasks):
    return dict(zip(tasks.tolist(), truth[tasks].tolist(), strict=True))


def test_means_are_those_of_ppi_python():
    """Figures of ``ppi_mean_ci`` of ppi-python 0.2.3 on the same numbers."""
    rng = np.random.default_rng(0)
    value = rng.random(60)
    own = 0.6 * value + 0.4 * rng.random(60)
    rest = 0.3 + 0.5 * rng.random(500)
    found = conclude([Part(value, own, np.ones(60), rest).combine(None)], 0.95, "normal", 60, 500)
    assert_allclose([found.value, found.low, found.high], PPI_STRONG, atol=1e-8)
    noise = rng.random(60)
    found = conclude([Part(value, noise, np.ones(60), rest).combine(None)], 0.95, "normal", 60, 500)
    assert_allclose([found.value, found.low, found.high], PPI_WEAK, atol=1e-8)


@pytest.mark.parametrize("finite", [False, True])
def test_intervals_cover_and_are_narrower_than_gold_alone(finite):
    covered, width = [], []
    for seed in range(120):
        votes, truth = panel(400, seed=seed)
        tasks = np.random.default_rng(seed).choice(400, 60, replace=False)
        found = estimate(votes, known(truth, tasks), model=MajorityVote(), finite=finite)
        target = truth.mean() if finite else 0.3
        covered.append(found.low <= target <= found.high)
        width.append((found.high - found.low) / (found.alone.high - found.alone.low))
    assert 0.90 <= np.mean(covered) <= 0.99
    assert np.mean(width) < 0.85


def test_a_useless_proxy_does_no_harm():
    votes, truth = panel(accuracy=(0.5, 0.5, 0.5))
    tasks = np.arange(100)
    found = estimate(votes, known(truth, tasks))
    assert found.power < 0.5
    assert found.high - found.low < 1.02 * (found.alone.high - found.alone.low)
    assert abs(found.value - found.alone.value) < 0.05


def test_gold_drawn_by_difficulty_is_weighed_back():
    """Tasks of the first class are drawn four times as often."""
    votes, truth = panel(4000, seed=1)
    rng = np.random.default_rng(2)
    chance = np.where(truth == 0, 0.08, 0.02)
    tasks = np.flatnonzero(rng.random(4000) < chance)
    weights = pd.Series(1 / chance[tasks], index=tasks)
    plain = estimate(votes, known(truth, tasks))
    weighed = estimate(votes, known(truth, tasks), weights=weights)
    assert weighed.low < truth.mean() < weighed.high
    assert abs(weighed.alone.value - truth.mean()) < abs(plain.alone.value - truth.mean()) / 2
    with pytest.raises(CrowdwiseError, match="no positive weight"):
        estimate(votes, known(truth, tasks), weights=weights[1:])


def test_differences_between_groups():
    votes, truth = panel(1000, seed=3)
    groups = pd.Series(np.where(truth + np.random.default_rng(4).random(1000) > 0.8, "b", "a"))
    tasks = np.arange(0, 1000, 5)
    found = estimate(votes, known(truth, tasks), "difference", groups=groups)
    target = truth[groups == "b"].mean() - truth[groups == "a"].mean()
    assert found.low < target < found.high
    assert found.value > 0.3
    with pytest.raises(CrowdwiseError, match="needs groups"):
        estimate(votes, known(truth, tasks), "difference")
    with pytest.raises(CrowdwiseError, match="groups has 1 group"):
        estimate(votes, known(truth, tasks), "difference", groups=groups.replace("b", "a"))


def test_means_of_numbers_that_are_no_labels():
    rng = np.random.default_rng(5)
    quality = rng.normal(60, 15, 500)
    ratings = quality[:, None] / 10 + rng.normal(size=(500, 6))
    votes = Annotations.from_matrix(ratings.round()).with_scores()
    gold = dict(enumerate(quality[:80].tolist()))
    found = estimate(votes, gold, "mean", finite=True)
    assert found.low < quality.mean() < found.high
    assert found.high - found.low < 0.7 * (found.alone.high - found.alone.low)
    with pytest.raises(CrowdwiseError, match="share of these truths is not defined"):
        estimate(votes, gold)
    with pytest.raises(CrowdwiseError, match=r"mean of these[\s\S]*as the labels are written"):
        estimate(votes, dict.fromkeys(gold, "good"), "mean")


def test_shares_and_means_of_the_same_labels():
    votes, truth = panel()
    gold = known(truth, np.arange(80))
    share, mean = (estimate(votes, gold, of) for of in ("share", "mean"))
    assert_allclose(share.value, mean.value)
    other = estimate(votes, gold, label=0)
    assert_allclose(other.value, 1 - share.value)


def test_more_gold_for_a_narrower_interval():
    votes, truth = panel(5000, seed=6)
    found = estimate(votes, known(truth, np.arange(100)))
    width = found.high - found.low
    assert found.gold_needed(width) == pytest.approx(100, abs=1)
    needed = found.gold_needed(width / 2)
    again = estimate(votes, known(truth, np.arange(int(needed))))
    assert again.high - again.low == pytest.approx(width / 2, rel=0.2)
    assert found.gold_needed(1e-6) == np.inf


def test_the_proxy_never_learned_from_the_label_it_is_compared_with():
    """Judges at random: a panel that learns from gold would look as if it predicted it."""
    found = []
    for seed in range(6):
        votes, truth = panel(200, seed=seed, accuracy=(0.5,) * 20)
        found.append(estimate(votes, known(truth, np.arange(60))).power)
    assert np.mean(found) < 0.35


def test_too_little_gold_is_refused():
    votes, truth = panel()
    with pytest.raises(CrowdwiseError, match="There are 3 gold labels"):
        estimate(votes, known(truth, np.arange(3)))
    with pytest.raises(CrowdwiseError, match="of='median' is unknown"):
        estimate(votes, known(truth, np.arange(30)), "median")


def test_gold_of_one_class_is_no_certainty():
    """None of thirty gold labels is of the class: its share may still be a tenth."""
    labels = np.random.default_rng(0).integers(0, 2, (200, 4))
    found = estimate(labels, dict.fromkeys(range(30), 0))
    assert found.value == pytest.approx(0, abs=1e-9)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 30))
    assert found.alone.high == pytest.approx(found.high)
    assert found.gold_needed(found.high - found.low) == 30
    assert found.gold_needed(found.high / 5) > 200
