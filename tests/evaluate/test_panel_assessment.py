"""What a panel is worth, how right it is, what it costs, and what to do next."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from crowdwise.aggregate import JudgePanel
from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError
from crowdwise.evaluate import advise, assess_panel, estimate


def panel(n_tasks=300, seed=0, scores=False):
    """Six judges; the first two are one, the last one guesses."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_tasks) < 0.4).astype(int)
    z = rng.normal(size=(n_tasks, 6)) + np.array([2, 2, 1.6, 1.6, 1.2, 0]) * (truth[:, None] - 0.5)
    z[:, 1] = z[:, 0]
    if scores:
        votes = Annotations.from_matrix(np.round(z * 2 + 5).clip(0, 10).astype(int))
        return votes.with_scores(5, low=0, high=10), truth
    return Annotations.from_matrix((z > 0).astype(int)), truth


def test_each_part_is_what_its_own_function_gives():
    votes, truth = panel()
    gold = dict(enumerate(truth[:60].tolist()))
    found = assess_panel(votes, gold)
    assert found.of == "share of 1"
    share = estimate(votes, gold)
    assert found.estimate.value == pytest.approx(share.value, abs=0.03)
    assert found.estimate.low < truth.mean() < found.estimate.high
    labels = votes.to_matrix().to_numpy()
    assert_allclose(found.judges["accuracy"], (labels[:60] == truth[:60, None]).mean(axis=0))
    assert found.dependence.effective_number.n_tasks == 60
    assert found.judges["redundant"].loc[[0, 1]].sum() == 1


def test_accuracy_is_of_labels_the_panel_did_not_learn_from():
    votes, truth = panel(600)
    found = [
        assess_panel(votes, dict(enumerate(truth[:150].tolist())), random_state=seed).accuracy
        for seed in (0, 1)
    ]
    right = (JudgePanel().fit(votes).posterior_.argmax(axis=1) == truth).mean()
    assert found[0].low < right < found[0].high
    assert found[0].n_tasks == 150
    wrong = assess_panel(votes, dict(enumerate(np.random.default_rng(0).integers(0, 2, 150))))
    assert wrong.accuracy.low < 0.5 < wrong.accuracy.high  # gold at random teaches nothing


def test_without_gold_there_are_no_intervals():
    votes, _ = panel()
    found = assess_panel(votes)
    for number in (found.accuracy, found.estimate, found.dependence.effective_number):
        assert np.isfinite(number.value)
        assert np.isnan(number.low)
    assert "accuracy" not in found.judges
    assert "drawn at random" in advise(found)[0]


def test_truths_may_be_numbers_on_the_scale_of_the_scores():
    votes, truth = panel(scores=True)
    rng = np.random.default_rng(1)
    people = (truth * 4 + 3 + rng.normal(size=len(truth))).clip(0, 10)
    gold = dict(enumerate(people[:80].tolist()))
    found = assess_panel(votes, gold)
    assert found.of == "mean of the truths"
    assert found.estimate.low < people.mean() < found.estimate.high
    assert found.accuracy.n_tasks == 80
    by_label = assess_panel(votes, dict(enumerate((people[:80] >= 5).astype(int).tolist())))
    assert by_label.accuracy == found.accuracy


def test_prices_of_all_and_of_those_who_are_needed():
    votes, truth = panel()
    gold = dict(enumerate(truth[:60].tolist()))
    prices = pd.Series([4.0, 4.0, 2.0, 2.0, 1.0, 1.0])
    costs = assess_panel(votes, gold, prices=prices).costs
    everyone, needed = costs.iloc[0], costs.iloc[1]
    assert everyone["per_task"] == 14
    assert needed["per_task"] <= 10
    assert_allclose(costs["per_correct_label"], costs["per_task"] / costs["accuracy"])
    alone = assess_panel(votes, prices=prices).costs
    assert alone["per_correct_label"].isna().all()
    for bad in (prices.iloc[:5], prices.where(prices.index > 0, np.inf)):
        with pytest.raises(CrowdwiseError, match="1 of 6 judges have no price"):
            assess_panel(votes, prices=bad)


def test_advice_names_who_declined_and_who_guesses():
    votes, truth = panel()
    frame = votes.to_frame().astype({"label": object})
    frame.loc[frame["worker"].eq(3) & frame["task"].lt(60), "label"] = None
    some = Annotations.from_frame(frame)
    found = assess_panel(some, dict(enumerate(truth[:100].tolist())))
    assert found.judges.loc[3, "declined"] == pytest.approx(0.2)
    steps = advise(found)
    assert any("3 20%" in step for step in steps)
    assert steps[0].startswith("100 gold labels give ±")
    turned = np.column_stack([votes.to_matrix().to_numpy()[:, :5], 1 - truth])
    found = assess_panel(turned)
    assert any(step.startswith("Check the prompt or the scale of 5") for step in advise(found))


def test_too_little_gold_is_refused():
    votes, truth = panel()
    with pytest.raises(CrowdwiseError, match="There are 3 gold labels"):
        assess_panel(votes, dict(enumerate(truth[:3].tolist())))
    few = assess_panel(votes, dict(enumerate(truth[:12].tolist())))
    assert np.isnan(few.dependence.effective_number.low)
    with pytest.raises(CrowdwiseError, match="no class 7"):
        assess_panel(votes, label=7)


def test_more_judges_of_a_family_that_guesses_are_not_advised():
    """Guesses are independent, and so would add most to the number."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 500)
    shared = rng.random(500) < 0.2
    wrong = np.where(rng.random((500, 3)) < 0.8, shared[:, None], rng.random((500, 3)) < 0.2)
    labels = np.where(wrong, 1 - truth[:, None], truth[:, None])
    votes = Annotations.from_matrix(np.column_stack([labels, rng.integers(0, 2, (500, 2))]))
    about = {"worker": range(5), "family": ["good"] * 3 + ["guess"] * 2}
    found = assess_panel(votes.with_workers(about), dict(enumerate(truth[:50].tolist())))
    assert found.dependence.families["adds"].idxmax() == "guess"
    assert not any("guess" in step for step in advise(found))
